package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// serveList lists tables by name, in pages like those of a query, or names one.
func (s *tableService) serveList(c *tableCall, a address) (*answer, *Fault) {
	values := Query(c.Req.URL)
	if fault := checkOptions(values); fault != nil {
		return nil, fault
	}
	filter, fault := CheckFilter(values.Get("$filter"))
	if fault != nil {
		return nil, fault
	}
	top, fault := parseTop(values)
	if fault != nil {
		return nil, fault
	}
	m, fault := metadataOf(Header(c.Req.Header, "Accept"), values.Get("$format"))
	if fault != nil {
		return nil, fault
	}
	var from string
	if token := values.Get("NextTableName"); token != "" {
		var ok bool
		if from, _, ok = parseToken(token); !ok {
			return nil, faultInput("One of the request inputs is not valid.")
		}
	}
	var names []string
	for _, name := range s.Names() {
		get := func(property string) edm.Value {
			if property == "TableName" {
				return edm.String(name)
			}
			return edm.Value{}
		}
		if strings.ToLower(name) >= from && odata.Match(filter, get) && (a.kind == addressTables || SameName(name, a.table)) {
			names = append(names, name)
		}
	}
	if a.kind == addressTable {
		if len(names) == 0 {
			return nil, faultNotFound()
		}
		top = 1
	}
	out := c.answer(http.StatusOK)
	out.header["Content-Type"] = []string{m.contentType()}
	if len(names) > top {
		if top > 0 {
			out.header["X-Ms-Continuation-Nexttablename"] = []string{appendToken(strings.ToLower(names[top]), false)}
		}
		names = names[:top]
	}
	if a.kind == addressTable {
		out.body = s.oneTable(c, m, names[0])
	} else {
		out.body = s.listBody(c, m, names)
	}
	return out, nil
}

// oneTable is the body of an answer that is one table.
func (s *tableService) oneTable(c *tableCall, m metadata, name string) []byte {
	body := []byte{'{'}
	if m != noMetadata {
		body = append(body, `"odata.metadata":"`+c.endpoint()+`/$metadata#Tables/@Element",`...)
	}
	return s.appendTable(body, c, m, name)
}

func (s *tableService) listBody(c *tableCall, m metadata, names []string) []byte {
	body := []byte{'{'}
	if m != noMetadata {
		body = append(body, `"odata.metadata":"`+c.endpoint()+`/$metadata#Tables",`...)
	}
	body = append(body, `"value":[`...)
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = s.appendTable(append(body, '{'), c, m, name)
	}
	return append(body, "]}"...)
}

// appendTable appends what follows the opening brace of a table.
func (s *tableService) appendTable(dst []byte, c *tableCall, m metadata, name string) []byte {
	if m == fullMetadata {
		address := "Tables('" + name + "')"
		dst = append(dst, `"odata.type":"`+s.account+`.Tables","odata.id":"`+c.endpoint()+"/"+address+`","odata.editLink":"`+address+`",`...)
	}
	return append(dst, `"TableName":"`+name+`"}`...)
}

// Names are the tables' names in the order of their listing.
func (s *tableService) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.state.tables))
	for _, t := range s.state.tables {
		names = append(names, t.name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}
