package tables

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// Refuse returns the response for a fault.
func (s *Service) Refuse(c *protocol.Call, f *protocol.Fault) *protocol.Answer {
	return request.NewCall(c).Refuse(f)
}

// Serve serves one request of a sender with this grant.
func (s *Service) Serve(c *protocol.Call, g *authorization.Grant) *protocol.Answer {
	return s.serve(request.NewCall(c), g)
}

func (s *Service) serve(c *request.Call, g *authorization.Grant) *protocol.Answer {
	if len(c.Body) > edm.MaxBatchBytes {
		return c.Refuse(protocol.BodyTooLarge())
	}
	a, fault := request.ParseAddress(c.Req.URL.Path)
	if fault != nil {
		return c.Refuse(fault)
	}
	var answer *protocol.Answer
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	switch {
	case a.Kind == request.ToService:
		answer, fault = s.serveService(c, g)
	case a.Kind == request.ToTables || a.Kind == request.ToTable:
		answer, fault = s.serveTables(c, g, a)
	case a.Kind == request.ToBatch:
		answer, fault = s.serveBatch(c, g)
	case a.Kind == request.ToEntitySet && c.Req.URL.RawQuery != "" && protocol.Query(c.Req.URL).Has("comp"):
		return s.serveACL(c, g, a.Table)
	case a.Kind == request.ToEntitySet && read:
		answer, fault = s.serveQuery(c, g, a.Table)
	case read:
		answer, fault = s.servePoint(c, g, a)
	default:
		answer, fault = s.serveChange(c, g, a)
	}
	if fault != nil {
		return c.Refuse(fault)
	}
	return answer
}

// serveTables creates, deletes and lists tables.
func (s *Service) serveTables(c *request.Call, g *authorization.Grant, a request.Address) (*protocol.Answer, *protocol.Fault) {
	switch {
	case c.Req.Method == http.MethodPost && a.Kind == request.ToTables:
		if !g.Allows("c c|w") {
			return nil, authorization.PermissionMismatch()
		}
		return s.serveCreate(c)
	case c.Req.Method == http.MethodDelete && a.Kind == request.ToTable:
		if !g.Allows("c d") {
			return nil, authorization.PermissionMismatch()
		}
		if fault := s.drop(a.Table); fault != nil {
			return nil, fault
		}
		return c.Begin(http.StatusNoContent), nil
	case c.Req.Method != http.MethodGet:
		return nil, protocol.MethodNotAllowed()
	case !g.Allows("c l"):
		return nil, authorization.PermissionMismatch()
	}
	return s.serveList(c, a)
}

func (s *Service) serveCreate(c *request.Call) (*protocol.Answer, *protocol.Fault) {
	m, fault := c.Level()
	if fault != nil {
		return nil, fault
	}
	name, fault := entity.ReadString(c.Body, "TableName")
	if fault != nil {
		return nil, fault
	}
	if fault := s.create(name); fault != nil {
		return nil, fault
	}
	address := c.Endpoint() + "/Tables('" + name + "')"
	out := c.Begin(http.StatusCreated)
	out.Header["Location"] = []string{address}
	switch prefer := protocol.Header(c.Req.Header, "Prefer"); prefer {
	case "return-no-content":
		out.Status = http.StatusNoContent
		out.Header["Preference-Applied"] = []string{prefer}
		out.Header["Dataserviceid"] = []string{address}
		return out, nil
	case "return-content":
		out.Header["Preference-Applied"] = []string{prefer}
	}
	out.Header["Content-Type"] = []string{m.ContentType()}
	out.Body = s.oneTable(c, m, name)
	return out, nil
}
