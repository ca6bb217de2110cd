package simulator

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// serve answers one request whose sender has the grant.
func (s *tableService) serve(c *call, g *grant) *answer {
	if len(c.body) > edm.MaxBatchBytes {
		return c.refuse(faultTooLarge())
	}
	a, fault := parseAddress(c.req.URL.Path)
	if fault != nil {
		return c.refuse(fault)
	}
	var answer *answer
	read := c.req.Method == http.MethodGet || c.req.Method == http.MethodHead
	switch {
	case a.kind == addressService:
		answer, fault = s.serveService(c, g)
	case a.kind == addressTables || a.kind == addressTable:
		answer, fault = s.serveTables(c, g, a)
	case a.kind == addressBatch:
		answer, fault = s.serveBatch(c, g)
	case a.kind == addressEntitySet && c.req.URL.RawQuery != "" && queryOf(c.req.URL).Has("comp"):
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
func (s *tableService) serveTables(c *call, g *grant, a address) (*answer, *Fault) {
	container := func(alternatives ...string) bool { return g.allows(need{resourceContainer, false, alternatives}) }
	switch {
	case c.req.Method == http.MethodPost && a.kind == addressTables:
		if !container("c", "w") {
			return nil, faultPermission()
		}
		return s.serveCreate(c)
	case c.req.Method == http.MethodDelete && a.kind == addressTable:
		if !container("d") {
			return nil, faultPermission()
		}
		if fault := s.drop(a.table); fault != nil {
			return nil, fault
		}
		return c.answer(http.StatusNoContent), nil
	case c.req.Method != http.MethodGet:
		return nil, faultMethod()
	case !container("l"):
		return nil, faultPermission()
	}
	return s.serveList(c, a)
}

func (s *tableService) serveCreate(c *call) (*answer, *Fault) {
	m, fault := c.level()
	if fault != nil {
		return nil, fault
	}
	name, fault := readTableName(c.body)
	if fault != nil {
		return nil, fault
	}
	if fault := s.create(name); fault != nil {
		return nil, fault
	}
	address := c.endpoint() + "/Tables('" + name + "')"
	out := c.answer(http.StatusCreated)
	out.header["Location"] = []string{address}
	switch prefer := headerOf(c.req.Header, "Prefer"); prefer {
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

// readTableName reads {"TableName":"x"}.
func readTableName(body []byte) (string, *Fault) {
	raw, fault := readProperties(body)
	if fault != nil {
		return "", fault
	}
	for _, p := range raw {
		if p.name == "TableName" && p.kind == jsontext.Kind('"') {
			return p.text, nil
		}
	}
	return "", refuse(http.StatusBadRequest, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
}
