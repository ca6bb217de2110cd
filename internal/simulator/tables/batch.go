package tables

import (
	"net/http"
	"net/url"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// serveBatch serves a transaction, or a batch that contains one query.
func (s *Service) serveBatch(c *request.Call, g *authorization.Grant) (*protocol.Answer, *protocol.Fault) {
	if c.Req.Method != http.MethodPost {
		return nil, protocol.MethodNotAllowed()
	}
	b, fault := c.Batch()
	if fault != nil {
		return nil, fault
	}
	if b.Query {
		return s.serveBatchQuery(c, g, &b.Parts[0])
	}
	ops, index, fault := b.Operations("")
	if fault != nil {
		return c.RefuseOperation(b, index, fault), nil
	}
	changes, index, fault := s.commit(g, ops)
	switch {
	case fault == nil:
		return c.AnswerBatch(s.parts(c, changes)), nil
	case fault.Status >= http.StatusInternalServerError:
		if s.dice.Chance(0.5) {
			fault = fault.WithoutCode()
		}
		return c.RefuseBatch(fault), nil
	}
	return c.RefuseOperation(b, index, fault), nil
}

// parts returns the responses to a transaction's operations.
func (s *Service) parts(c *request.Call, changes []change) []*protocol.Answer {
	parts := make([]*protocol.Answer, len(changes))
	for i, made := range changes {
		part := protocol.NewAnswer(http.StatusNoContent)
		part.Header["Dataserviceversion"] = []string{"1.0;"}
		if made.op.Verb == request.Insert {
			part.Header["Dataserviceversion"] = []string{"3.0;"}
		}
		if made.op.ContentID != "" {
			part.Header["Content-Id"] = []string{made.op.ContentID}
		}
		s.describe(c, part, made)
		parts[i] = part
	}
	return parts
}

// serveBatchQuery serves a batch that contains one query.
func (s *Service) serveBatchQuery(c *request.Call, g *authorization.Grant, p *request.Part) (*protocol.Answer, *protocol.Fault) {
	target, err := url.ParseRequestURI(c.Endpoint() + p.Target)
	if err != nil {
		return nil, protocol.InvalidSyntax()
	}
	inner := *c.Call
	inner.Req, inner.Body = &http.Request{Method: p.Method, URL: target, Header: p.Header}, nil
	return c.AnswerQuery(s.Serve(&inner, g)), nil
}
