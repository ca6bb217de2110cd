package tables

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// servePoint returns one entity.
func (s *Service) servePoint(c *request.Call, g *authorization.Grant, a request.Address) (*protocol.Answer, *protocol.Fault) {
	accept, fields, selected, fault := c.Shape()
	if fault != nil {
		return nil, fault
	}
	if fault := g.Entities(a.Table, "r"); fault != nil {
		return nil, fault
	}
	if !g.Covers(a.Partition, a.Row) {
		return nil, authorization.Failure()
	}
	name, e, fault := s.point(a)
	if fault != nil {
		return nil, fault
	}
	w := entity.NewWriter(accept, c.Endpoint(), s.account, name, fields, selected)
	out := c.Begin(http.StatusOK)
	out.Header["Content-Type"] = []string{accept.ContentType()}
	out.Header["Etag"] = []string{e.ETag}
	out.Body = w.AppendOne(make([]byte, 0, 512), e)
	return out, nil
}

func (s *Service) point(a request.Address) (name string, e *entity.Stored, fault *protocol.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(a.Table)
	if fault != nil {
		return "", nil, fault
	}
	if e = t.rows.Get(a.Partition, a.Row); e == nil {
		return "", nil, resourceNotFound()
	}
	if !s.admit(t, a.Partition, 1) {
		return "", nil, protocol.ServerBusy()
	}
	return t.name, e, nil
}

// serveChange carries out one operation.
func (s *Service) serveChange(c *request.Call, g *authorization.Grant, a request.Address) (*protocol.Answer, *protocol.Fault) {
	op, fault := c.Operation(a)
	if fault != nil {
		return nil, fault
	}
	changes, _, fault := s.commit(g, []*request.Operation{op})
	if fault != nil {
		return nil, fault
	}
	out := c.Begin(http.StatusNoContent)
	s.describe(c, out, changes[0])
	return out, nil
}

// describe adds the ETag and the other headers of a change to a response.
func (s *Service) describe(c *request.Call, out *protocol.Answer, made change) {
	op := made.op
	if made.entity != nil {
		out.Header["Etag"] = []string{made.entity.ETag}
	}
	if op.Verb != request.Insert {
		return
	}
	address := c.Endpoint() + "/" + string(entity.AppendAddress(nil, op.Table, op.Partition, op.Row))
	out.Header["Location"] = []string{address}
	if op.Prefer != "" {
		out.Header["Preference-Applied"] = []string{op.Prefer}
	}
	if op.Prefer == "return-no-content" {
		out.Header["Dataserviceid"] = []string{address}
		return
	}
	w := entity.NewWriter(op.Metadata, c.Endpoint(), s.account, op.Table, nil, false)
	out.Status = http.StatusCreated
	out.Header["Content-Type"] = []string{op.Metadata.ContentType()}
	out.Body = w.AppendOne(nil, made.entity)
}

// serveQuery returns a page of entities.
func (s *Service) serveQuery(c *request.Call, g *authorization.Grant, table string) (*protocol.Answer, *protocol.Fault) {
	values := protocol.Query(c.Req.URL)
	q, fault := request.ParseQuery(values)
	if fault != nil {
		return nil, fault
	}
	accept, fault := c.Level()
	if fault != nil {
		return nil, fault
	}
	if fault := g.Entities(table, "r"); fault != nil {
		return nil, fault
	}
	name, p, fault := s.read(g, table, q)
	if fault != nil {
		return nil, fault
	}
	w := entity.NewWriter(accept, c.Endpoint(), s.account, name, q.Fields, values.Has("$select"))
	out := c.Begin(http.StatusOK)
	out.Header["Content-Type"] = []string{accept.ContentType()}
	if p.next != nil {
		out.Header["X-Ms-Continuation-Nextpartitionkey"] = []string{request.Token(p.next.Partition, p.after)}
		if !p.noRow {
			out.Header["X-Ms-Continuation-Nextrowkey"] = []string{request.Token(p.next.Row, p.after)}
		}
	}
	out.Body = w.AppendPage(nil, p.entities)
	return out, nil
}
