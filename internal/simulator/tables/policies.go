package simulator

import "net/http"

// tableRights are the letters of the rights that a policy of a table may give.
const tableRights = "raud"

// serveACL reads and sets a table's stored access policies, which only the account's key may do.
func (s *tableService) serveACL(c *tableCall, g *Grant, name string) *answer {
	if Query(c.Req.URL).Get("comp") != "acl" {
		return refuseXML(c.Call, faultQueryValue())
	}
	if !g.Owner {
		return refuseXML(c.Call, FaultAuthorization())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return refuseXML(c.Call, fault)
	}
	switch c.Req.Method {
	case http.MethodGet, http.MethodHead:
		return t.policies.Answer(c.aclAnswer(http.StatusOK))
	case http.MethodPut:
		policies, fault := ReadPolicies(c.Body, tableRights)
		if fault != nil {
			fault.Details = nil // the table service gives none
			return refuseXML(c.Call, fault)
		}
		for i := range policies {
			policies[i].Start, policies[i].Expiry = fullTime(policies[i].Start), fullTime(policies[i].Expiry)
		}
		t.policies = policies
		return c.aclAnswer(http.StatusNoContent)
	}
	return refuseXML(c.Call, faultMethod())
}

// aclAnswer begins an answer about policies, which alone of the table service's do not forbid caching and sniffing.
func (c *tableCall) aclAnswer(status int) *answer {
	a := c.answer(status)
	delete(a.header, "Cache-Control")
	delete(a.header, "X-Content-Type-Options")
	return a
}

// fullTime is a policy's time in the one form in which the service gives it back; what is no time stays as it is, and
// serves no signature.
func fullTime(text string) string {
	t, ok := ParseTime(text)
	if !ok {
		return text
	}
	return t.UTC().Format(TimeFormat)
}
