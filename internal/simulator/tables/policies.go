package tables

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// rights are the letters of the permissions that a policy of a table may contain.
const rights = "raud"

// serveACL reads and sets a table's stored access policies, which requires the account's key.
func (s *Service) serveACL(c *request.Call, g *authorization.Grant, name string) *protocol.Answer {
	if protocol.Query(c.Req.URL).Get("comp") != "acl" {
		return exchange.Refuse(c.Call, protocol.InvalidQueryValue())
	}
	if !g.Owner {
		return exchange.Refuse(c.Call, authorization.Failure())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return exchange.Refuse(c.Call, fault)
	}
	switch c.Req.Method {
	case http.MethodGet, http.MethodHead:
		return t.policies.Answer(aclAnswer(c, http.StatusOK))
	case http.MethodPut:
		policies, fault := authorization.ReadPolicies(c.Body, rights)
		if fault != nil {
			fault.Details = nil // the table service sends no details
			return exchange.Refuse(c.Call, fault)
		}
		for i := range policies {
			policies[i].Start, policies[i].Expiry = fullTime(policies[i].Start), fullTime(policies[i].Expiry)
		}
		t.policies = policies
		return aclAnswer(c, http.StatusNoContent)
	}
	return exchange.Refuse(c.Call, protocol.MethodNotAllowed())
}

// aclAnswer begins a response about policies. Unlike all other responses of the table service, it does not forbid caching and
// content sniffing.
func aclAnswer(c *request.Call, status int) *protocol.Answer {
	a := c.Begin(status)
	delete(a.Header, "Cache-Control")
	delete(a.Header, "X-Content-Type-Options")
	return a
}

// fullTime returns a policy's time in the form in which the service returns it. Text that is not a time is returned
// unchanged, and no signature can use it.
func fullTime(text string) string {
	t, ok := authorization.ParseTime(text)
	if !ok {
		return text
	}
	return t.UTC().Format(protocol.TimeFormat)
}
