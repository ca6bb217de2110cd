package simulator

import "net/http"

// serveACL reads and sets a table's stored access policies, which only the account's key may do.
func (s *tableService) serveACL(c *call, g *grant, name string) *answer {
	if queryOf(c.req.URL).Get("comp") != "acl" {
		return c.refuseXML(faultQueryValue())
	}
	if !g.owner {
		return c.refuseXML(faultAuthorization())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return c.refuseXML(fault)
	}
	switch c.req.Method {
	case http.MethodGet, http.MethodHead:
		return writeXMLPolicies(c.aclAnswer(http.StatusOK), t.policies)
	case http.MethodPut:
		policies, fault := parseXMLPolicies(c.body, tableRights)
		if fault != nil {
			fault.Details = nil // the table service gives none
			return c.refuseXML(fault)
		}
		for i := range policies {
			policies[i].Start, policies[i].Expiry = fullTime(policies[i].Start), fullTime(policies[i].Expiry)
		}
		t.policies = policies
		return c.aclAnswer(http.StatusNoContent)
	}
	return c.refuseXML(faultMethod())
}

// aclAnswer begins an answer about policies, which alone of the table service's do not forbid caching and sniffing.
func (c *call) aclAnswer(status int) *answer {
	a := c.answer(status)
	delete(a.header, "Cache-Control")
	delete(a.header, "X-Content-Type-Options")
	return a
}

// fullTime is a policy's time in the one form in which the service gives it back; what is no time stays as it is, and
// serves no signature.
func fullTime(text string) string {
	t, ok := parseSASTime(text)
	if !ok {
		return text
	}
	return t.UTC().Format(faultTime)
}
