package tables

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// serveList lists tables by name, in pages, or returns one table.
func (s *Service) serveList(c *request.Call, a request.Address) (*protocol.Answer, *protocol.Fault) {
	values := protocol.Query(c.Req.URL)
	listing, fault := request.ParseListing(values)
	if fault != nil {
		return nil, fault
	}
	top := listing.Top
	m, fault := c.Level()
	if fault != nil {
		return nil, fault
	}
	var from string
	if token := values.Get("NextTableName"); token != "" {
		var ok bool
		if from, _, ok = request.ParseToken(token); !ok {
			return nil, protocol.InvalidInput("One of the request inputs is not valid.")
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
		if strings.ToLower(name) >= from && listing.Match(get) && (a.Kind == request.ToTables || protocol.SameName(name, a.Table)) {
			names = append(names, name)
		}
	}
	if a.Kind == request.ToTable {
		if len(names) == 0 {
			return nil, resourceNotFound()
		}
		top = 1
	}
	out := c.Begin(http.StatusOK)
	out.Header["Content-Type"] = []string{m.ContentType()}
	if len(names) > top {
		if top > 0 {
			out.Header["X-Ms-Continuation-Nexttablename"] = []string{request.Token(strings.ToLower(names[top]), false)}
		}
		names = names[:top]
	}
	if a.Kind == request.ToTable {
		out.Body = s.oneTable(c, m, names[0])
	} else {
		out.Body = s.listBody(c, m, names)
	}
	return out, nil
}

// oneTable returns the body of a response that is one table.
func (s *Service) oneTable(c *request.Call, m entity.Metadata, name string) []byte {
	return s.appendTable(beginTables(c, m, "/@Element"), c, m, name)
}

func (s *Service) listBody(c *request.Call, m entity.Metadata, names []string) []byte {
	body := append(beginTables(c, m, ""), `"value":[`...)
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = s.appendTable(append(body, '{'), c, m, name)
	}
	return append(body, "]}"...)
}

// beginTables returns the beginning of a body about tables.
func beginTables(c *request.Call, m entity.Metadata, of string) []byte {
	if m == entity.None {
		return []byte{'{'}
	}
	return []byte(`{"odata.metadata":"` + c.Endpoint() + `/$metadata#Tables` + of + `",`)
}

// appendTable appends the content of a table's JSON object, after the opening brace.
func (s *Service) appendTable(dst []byte, c *request.Call, m entity.Metadata, name string) []byte {
	if m == entity.Full {
		address := "Tables('" + name + "')"
		dst = append(dst, `"odata.type":"`+s.account+`.Tables","odata.id":"`+c.Endpoint()+"/"+address+`","odata.editLink":"`+address+`",`...)
	}
	return append(dst, `"TableName":"`+name+`"}`...)
}

// Names returns the tables' names, sorted.
func (s *Service) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.state.tables))
	for _, t := range s.state.tables {
		names = append(names, t.name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}
