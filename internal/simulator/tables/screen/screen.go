package screen

import (
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// Rules checks the stateless rules in front of a table service that does not check them itself.
type Rules struct {
	// Prefix is the text before the resource in the service's URL paths, such as /devstoreaccount1 for an emulator.
	Prefix string
}

// Refuse returns the service's error response for a request that breaks a rule, and nil for any other request. serial
// determines the response's request id. Refuse ignores signatures and everything that depends on stored data.
func (s Rules) Refuse(req *http.Request, body []byte, serial uint64, now time.Time) *http.Response {
	c := request.NewCall(&protocol.Call{Req: req, Body: body, Serial: serial, Now: now})
	answer, fault := s.check(c)
	if fault != nil {
		answer = c.Refuse(fault)
	}
	if answer == nil {
		return nil
	}
	return answer.Response(req)
}

// check returns a fault for a request that breaks a rule. For a transaction it returns a complete response,
// since that has another form.
func (s Rules) check(c *request.Call) (*protocol.Answer, *protocol.Fault) {
	if fault := protocol.CheckVersion(c.Req); fault != nil {
		return nil, fault
	}
	if len(c.Body) > edm.MaxBatchBytes {
		return nil, protocol.BodyTooLarge()
	}
	a, fault := request.ParseAddress(strings.TrimPrefix(c.Req.URL.Path, s.Prefix))
	if fault != nil {
		return nil, fault
	}
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	values := protocol.Query(c.Req.URL)
	switch {
	case a.Kind == request.ToService || values.Has("comp"):
		return nil, nil
	case a.Kind == request.ToTables && c.Req.Method == http.MethodPost:
		name, fault := entity.ReadString(c.Body, "TableName")
		if fault == nil {
			fault = request.CheckTableName(name)
		}
		return nil, fault
	case a.Kind == request.ToBatch:
		return s.checkBatch(c)
	case read:
		// Do not check the form of the continuation token: the other service has made it.
		values.Del("NextPartitionKey")
		values.Del("NextRowKey")
		_, fault := request.ParseQuery(values)
		return nil, fault
	case a.Kind == request.ToEntitySet || a.Kind == request.ToEntity:
		_, fault := c.Operation(a)
		return nil, fault
	}
	return nil, nil
}

func (s Rules) checkBatch(c *request.Call) (*protocol.Answer, *protocol.Fault) {
	b, fault := c.Batch()
	if fault != nil || b.Query {
		return nil, fault
	}
	if _, index, fault := b.Operations(s.Prefix); fault != nil {
		return c.RefuseOperation(b, index, fault), nil
	}
	return nil, nil
}
