package screen

import (
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// Confine enforces the key range of a shared access signature in front of a table service that ignores the
// range. It refuses a request for a key outside the range. For any other request it returns the request to
// send; it restricts a query to the range. The service itself verifies the signature.
func (s Rules) Confine(req *http.Request, body []byte, serial uint64, now time.Time) (*http.Request, *http.Response) {
	q := protocol.Query(req.URL)
	keys := authorization.RangeOf(q)
	if !q.Has("sig") || !keys.Bounded() {
		return req, nil
	}
	c := request.NewCall(&protocol.Call{Req: req, Body: body, Serial: serial, Now: now})
	answer, fault := s.confine(c, &keys)
	if fault != nil {
		answer = c.Refuse(fault)
	}
	if answer != nil {
		return nil, answer.Response(req)
	}
	a, _ := request.ParseAddress(strings.TrimPrefix(req.URL.Path, s.Prefix))
	if a.Kind == request.ToEntitySet && req.Method == http.MethodGet {
		return narrowed(req, &keys), nil
	}
	return req, nil
}

func (s Rules) confine(c *request.Call, keys *authorization.Range) (*protocol.Answer, *protocol.Fault) {
	a, fault := request.ParseAddress(strings.TrimPrefix(c.Req.URL.Path, s.Prefix))
	switch {
	case fault != nil:
		return nil, fault
	case a.Kind == request.ToEntity:
		if !keys.Covers(a.Partition, a.Row) {
			return nil, authorization.Failure()
		}
	case a.Kind == request.ToEntitySet && c.Req.Method == http.MethodPost:
		op, fault := c.Operation(a)
		if fault == nil && !keys.Covers(op.Partition, op.Row) {
			fault = authorization.Failure()
		}
		return nil, fault
	case a.Kind == request.ToBatch:
		return s.confineBatch(c, keys)
	}
	return nil, nil
}

func (s Rules) confineBatch(c *request.Call, keys *authorization.Range) (*protocol.Answer, *protocol.Fault) {
	b, fault := c.Batch()
	if fault != nil {
		return nil, fault
	}
	if b.Query {
		a, fault := b.Parts[0].Address(s.Prefix)
		if fault == nil && !keys.Covers(a.Partition, a.Row) {
			fault = authorization.Failure()
		}
		return nil, fault
	}
	ops, index, fault := b.Operations(s.Prefix)
	for i, op := range ops {
		if fault == nil && !keys.Covers(op.Partition, op.Row) {
			index, fault = i, authorization.Failure()
		}
	}
	if fault != nil {
		return c.RefuseOperation(b, index, fault), nil
	}
	return nil, nil
}

// narrowed returns a query restricted to the range by its filter.
func narrowed(req *http.Request, r *authorization.Range) *http.Request {
	q := protocol.Query(req.URL)
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
