package simulator

import (
	"net/http"
	"net/url"
)

// serveBatch carries a transaction out, or the one query that a batch may hold instead.
func (s *tableService) serveBatch(c *tableCall, g *Grant) (*answer, *Fault) {
	if c.Req.Method != http.MethodPost {
		return nil, faultMethod()
	}
	b, fault := parseBatch(Header(c.Req.Header, "Content-Type"), c.Body)
	if fault != nil {
		return nil, fault
	}
	if b.query {
		return s.serveBatchQuery(c, g, &b.parts[0])
	}
	ops, index, fault := b.operations("")
	if fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	changes, index, fault := s.commit(g, ops)
	switch {
	case fault == nil:
		return c.batchAnswer(s.parts(c, changes)), nil
	case fault.Status >= http.StatusInternalServerError:
		if s.dice.chance(0.5) {
			fault = fault.WithoutCode()
		}
		return c.batchRefusal(fault), nil
	}
	return c.batchFault(b, index, fault), nil
}

// parts are the answers to a transaction's operations.
func (s *tableService) parts(c *tableCall, changes []change) []*answer {
	parts := make([]*answer, len(changes))
	for i, made := range changes {
		part := newAnswer(http.StatusNoContent)
		part.header["Dataserviceversion"] = []string{"1.0;"}
		if made.op.verb == verbInsert {
			part.header["Dataserviceversion"] = []string{"3.0;"}
		}
		if made.op.contentID != "" {
			part.header["Content-Id"] = []string{made.op.contentID}
		}
		s.describe(c, part, made)
		parts[i] = part
	}
	return parts
}

// serveBatchQuery answers a batch that is one query.
func (s *tableService) serveBatchQuery(c *tableCall, g *Grant, p *batchPart) (*answer, *Fault) {
	target, err := url.ParseRequestURI(c.endpoint() + p.target)
	if err != nil {
		return nil, faultSyntax()
	}
	inner := *c.Call
	inner.Req, inner.Body = &http.Request{Method: p.method, URL: target, Header: p.header}, nil
	return c.queryAnswer(s.Serve(&inner, g)), nil
}
