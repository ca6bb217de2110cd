package simulator

import (
	"net/http"
	"strings"
	"time"
)

// Confine holds the key range of a shared access signature in front of a table service that signs the range and then
// forgets it. It refuses a request for a key outside, and returns any other as it is to be sent: a query asks for no more
// than the range. Whether the signature itself is right is for the service to say.
func (s Screen) Confine(req *http.Request, body []byte, serial uint64, now time.Time) (*http.Request, *http.Response) {
	q := Query(req.URL)
	keys := RangeOf(q)
	if !q.Has("sig") || !keys.Bounded() {
		return req, nil
	}
	c := newTableCall(&Call{Req: req, Body: body, Serial: serial, Now: now})
	answer, fault := s.confine(c, &keys)
	if fault != nil {
		answer = c.refuse(fault)
	}
	if answer != nil {
		return nil, answer.response(req)
	}
	a, _ := parseAddress(strings.TrimPrefix(req.URL.Path, s.Prefix))
	if a.kind == addressEntitySet && req.Method == http.MethodGet {
		return narrowed(req, &keys), nil
	}
	return req, nil
}

func (s Screen) confine(c *tableCall, keys *Range) (*answer, *Fault) {
	a, fault := parseAddress(strings.TrimPrefix(c.Req.URL.Path, s.Prefix))
	switch {
	case fault != nil:
		return nil, fault
	case a.kind == addressEntity:
		if !keys.Covers(a.pk, a.rk) {
			return nil, FaultAuthorization()
		}
	case a.kind == addressEntitySet && c.Req.Method == http.MethodPost:
		op, fault := parseOperation(c.Req.Method, a, c.Req.Header, formatOf(c.Req.URL.RawQuery), c.Body)
		if fault == nil && !keys.Covers(op.pk, op.rk) {
			fault = FaultAuthorization()
		}
		return nil, fault
	case a.kind == addressBatch:
		return s.confineBatch(c, keys)
	}
	return nil, nil
}

func (s Screen) confineBatch(c *tableCall, keys *Range) (*answer, *Fault) {
	b, fault := parseBatch(Header(c.Req.Header, "Content-Type"), c.Body)
	if fault != nil {
		return nil, fault
	}
	if b.query {
		a, fault := b.parts[0].address(s.Prefix)
		if fault == nil && !keys.Covers(a.pk, a.rk) {
			fault = FaultAuthorization()
		}
		return nil, fault
	}
	ops, index, fault := b.operations(s.Prefix)
	for i, op := range ops {
		if fault == nil && !keys.Covers(op.pk, op.rk) {
			index, fault = i, FaultAuthorization()
		}
	}
	if fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	return nil, nil
}

// narrowed is a query with the range in its filter.
func narrowed(req *http.Request, r *Range) *http.Request {
	q := Query(req.URL)
	filter := r.Filter()
	if asked := q.Get("$filter"); asked != "" {
		filter = "(" + asked + ") and " + filter
	}
	q.Set("$filter", filter)
	again, address := *req, *req.URL
	address.RawQuery = q.Encode()
	again.URL = &address
	return &again
}
