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
func (s *tableService) serveList(c *call, a address) (*answer, *Fault) {
	values := queryOf(c.req.URL)
	filter, fault := CheckFilter(values.Get("$filter"))
	if fault != nil {
		return nil, fault
	}
	top, fault := parseTop(values)
	if fault != nil {
		return nil, fault
	}
	m, fault := metadataOf(headerOf(c.req.Header, "Accept"), values.Get("$format"))
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
	for _, name := range s.names() {
		get := func(property string) edm.Value {
			if property == "TableName" {
				return edm.String(name)
			}
			return edm.Value{}
		}
		if strings.ToLower(name) >= from && odata.Match(filter, get) && (a.kind == addressTables || sameTable(name, a.table)) {
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
		out.header["X-Ms-Continuation-Nexttablename"] = []string{appendToken(strings.ToLower(names[top]), false)}
		names = names[:top]
	}
	out.body = s.listBody(c, m, names, a.kind == addressTable)
	return out, nil
}

func (s *tableService) listBody(c *call, m metadata, names []string, one bool) []byte {
	body := []byte{'{'}
	context := func(suffix string) {
		if m != noMetadata {
			body = append(body, `"odata.metadata":"`+c.endpoint()+`/$metadata#Tables`+suffix+`",`...)
		}
	}
	if one {
		context("/@Element")
		return append(body, `"TableName":"`+names[0]+`"}`...)
	}
	context("")
	body = append(body, `"value":[`...)
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"TableName":"`+name+`"}`...)
	}
	return append(body, "]}"...)
}

// names are the tables' names in the order of their listing.
func (s *tableService) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.tables))
	for _, t := range s.tables {
		names = append(names, t.name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}
