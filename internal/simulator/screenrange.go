package simulator

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Confine holds the key range of a shared access signature in front of a table service that signs the range and then
// forgets it. It refuses a request for a key outside, and returns any other as it is to be sent: a query asks for no more
// than the range. Whether the signature itself is right is for the service to say.
func (s Screen) Confine(req *http.Request, body []byte, serial uint64, now time.Time) (*http.Request, *http.Response) {
	g := rangeOf(queryOf(req.URL))
	if g == nil {
		return req, nil
	}
	c := &call{service: serviceTable, req: req, body: body, serial: serial, now: now, requestID: requestID(serial)}
	answer, fault := s.confine(c, g)
	if fault != nil {
		answer = c.refuse(fault)
	}
	if answer != nil {
		return nil, answer.response(req)
	}
	a, _ := parseAddress(strings.TrimPrefix(req.URL.Path, s.Prefix))
	if a.kind == addressEntitySet && req.Method == http.MethodGet {
		return narrowed(req, g), nil
	}
	return req, nil
}

// rangeOf is the key range of a signature's parameters; nil without one.
func rangeOf(q url.Values) *grant {
	if !q.Has("sig") || !q.Has("spk") && !q.Has("epk") {
		return nil
	}
	return &grant{
		from: rowKey{q.Get("spk"), q.Get("srk")}, hasFrom: q.Has("spk"), hasFromR: q.Has("srk"),
		to: rowKey{q.Get("epk"), q.Get("erk")}, hasTo: q.Has("epk"), hasToR: q.Has("erk"),
	}
}

func (s Screen) confine(c *call, g *grant) (*answer, *Fault) {
	a, fault := parseAddress(strings.TrimPrefix(c.req.URL.Path, s.Prefix))
	switch {
	case fault != nil:
		return nil, fault
	case a.kind == addressEntity:
		if !g.covers(a.pk, a.rk) {
			return nil, faultAuthorization()
		}
	case a.kind == addressEntitySet && c.req.Method == http.MethodPost:
		op, fault := parseOperation(c.req.Method, a, c.req.Header, formatOf(c.req.URL.RawQuery), c.body)
		if fault == nil && !g.covers(op.pk, op.rk) {
			fault = faultAuthorization()
		}
		return nil, fault
	case a.kind == addressBatch:
		return s.confineBatch(c, g)
	}
	return nil, nil
}

func (s Screen) confineBatch(c *call, g *grant) (*answer, *Fault) {
	b, fault := parseBatch(headerOf(c.req.Header, "Content-Type"), c.body)
	if fault != nil {
		return nil, fault
	}
	if b.query {
		a, fault := b.parts[0].address(s.Prefix)
		if fault == nil && !g.covers(a.pk, a.rk) {
			fault = faultAuthorization()
		}
		return nil, fault
	}
	ops, index, fault := b.operations(s.Prefix)
	for i, op := range ops {
		if fault == nil && !g.covers(op.pk, op.rk) {
			index, fault = i, faultAuthorization()
		}
	}
	if fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	return nil, nil
}

// narrowed is a query with the range in its filter.
func narrowed(req *http.Request, g *grant) *http.Request {
	q := queryOf(req.URL)
	var all []string
	if filter := q.Get("$filter"); filter != "" {
		all = append(all, "("+filter+")")
	}
	if g.hasFrom {
		all = append(all, bound(g.from, "gt", "ge", g.hasFromR))
	}
	if g.hasTo {
		all = append(all, bound(g.to, "lt", "le", g.hasToR))
	}
	q.Set("$filter", strings.Join(all, " and "))
	again, address := *req, *req.URL
	address.RawQuery = q.Encode()
	again.URL = &address
	return &again
}

// bound is one end of a range as a filter. within and at compare without and with the end itself.
func bound(key rowKey, within, at string, hasRow bool) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	if !hasRow {
		return "(" + partitionKeyName + " " + at + " " + quoted(key.pk) + ")"
	}
	return "(" + partitionKeyName + " " + within + " " + quoted(key.pk) + " or (" +
		partitionKeyName + " eq " + quoted(key.pk) + " and " + rowKeyName + " " + at + " " + quoted(key.rk) + "))"
}
