package simulator

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Refuse answers a request with a fault.
func (s *tableService) Refuse(c *Call, f *Fault) *answer { return newTableCall(c).refuse(f) }

// Serve answers one request whose sender has the grant.
func (s *tableService) Serve(c *Call, g *Grant) *answer { return s.serve(newTableCall(c), g) }

func (s *tableService) serve(c *tableCall, g *Grant) *answer {
	if len(c.Body) > edm.MaxBatchBytes {
		return c.refuse(faultTooLarge())
	}
	a, fault := parseAddress(c.Req.URL.Path)
	if fault != nil {
		return c.refuse(fault)
	}
	var answer *answer
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	switch {
	case a.kind == addressService:
		answer, fault = s.serveService(c, g)
	case a.kind == addressTables || a.kind == addressTable:
		answer, fault = s.serveTables(c, g, a)
	case a.kind == addressBatch:
		answer, fault = s.serveBatch(c, g)
	case a.kind == addressEntitySet && c.Req.URL.RawQuery != "" && Query(c.Req.URL).Has("comp"):
		return s.serveACL(c, g, a.table)
	case a.kind == addressEntitySet && read:
		answer, fault = s.serveQuery(c, g, a.table)
	case read:
		answer, fault = s.servePoint(c, g, a)
	default:
		answer, fault = s.serveChange(c, g, a)
	}
	if fault != nil {
		return c.refuse(fault)
	}
	return answer
}

// serveTables creates, drops and lists tables.
func (s *tableService) serveTables(c *tableCall, g *Grant, a address) (*answer, *Fault) {
	switch {
	case c.Req.Method == http.MethodPost && a.kind == addressTables:
		if !g.Allows("c c|w") {
			return nil, faultPermission()
		}
		return s.serveCreate(c)
	case c.Req.Method == http.MethodDelete && a.kind == addressTable:
		if !g.Allows("c d") {
			return nil, faultPermission()
		}
		if fault := s.drop(a.table); fault != nil {
			return nil, fault
		}
		return c.answer(http.StatusNoContent), nil
	case c.Req.Method != http.MethodGet:
		return nil, faultMethod()
	case !g.Allows("c l"):
		return nil, faultPermission()
	}
	return s.serveList(c, a)
}

func (s *tableService) serveCreate(c *tableCall) (*answer, *Fault) {
	m, fault := c.level()
	if fault != nil {
		return nil, fault
	}
	name, fault := readString(c.Body, "TableName")
	if fault != nil {
		return nil, fault
	}
	if fault := s.create(name); fault != nil {
		return nil, fault
	}
	address := c.endpoint() + "/Tables('" + name + "')"
	out := c.answer(http.StatusCreated)
	out.header["Location"] = []string{address}
	switch prefer := Header(c.Req.Header, "Prefer"); prefer {
	case "return-no-content":
		out.status = http.StatusNoContent
		out.header["Preference-Applied"] = []string{prefer}
		out.header["Dataserviceid"] = []string{address}
		return out, nil
	case "return-content":
		out.header["Preference-Applied"] = []string{prefer}
	}
	out.header["Content-Type"] = []string{m.contentType()}
	out.body = s.oneTable(c, m, name)
	return out, nil
}
