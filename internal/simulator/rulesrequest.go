package simulator

import (
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Screen holds the rules that need no state in front of a table service that does not hold them itself.
type Screen struct {
	// Prefix is what stands before the resource in the service's addresses, such as /devstoreaccount1 for an emulator.
	Prefix string
}

// Refuse answers a request that breaks a rule, in the service's words, and returns nil for any other. serial makes the
// answer's request id. It looks at no signature, and at nothing that depends on what is stored.
func (s Screen) Refuse(req *http.Request, body []byte, serial uint64, now time.Time) *http.Response {
	c := &call{service: serviceTable, req: req, body: body, serial: serial, now: now, requestID: requestID(serial)}
	answer, fault := s.check(c)
	if fault != nil {
		answer = c.refuse(fault)
	}
	if answer == nil {
		return nil
	}
	return answer.response(req)
}

// check returns an answer for a transaction that fails, which has a form of its own.
func (s Screen) check(c *call) (*answer, *Fault) {
	if fault := checkVersion(c.req); fault != nil {
		return nil, fault
	}
	if len(c.body) > edm.MaxBatchBytes {
		return nil, faultTooLarge()
	}
	a, fault := parseAddress(strings.TrimPrefix(c.req.URL.Path, s.Prefix))
	if fault != nil {
		return nil, fault
	}
	read := c.req.Method == http.MethodGet || c.req.Method == http.MethodHead
	values := queryOf(c.req.URL)
	switch {
	case a.kind == addressService || values.Has("comp"):
		return nil, nil
	case a.kind == addressTables && c.req.Method == http.MethodPost:
		name, fault := readTableName(c.body)
		if fault == nil {
			fault = CheckTableName(name)
		}
		return nil, fault
	case a.kind == addressBatch:
		return s.checkBatch(c)
	case read:
		// A continuation is the other service's, whatever it looks like.
		values.Del("NextPartitionKey")
		values.Del("NextRowKey")
		_, fault := parseQuery(values)
		return nil, fault
	case a.kind == addressEntitySet || a.kind == addressEntity:
		_, fault := parseOperation(c.req.Method, a, c.req.Header, formatOf(c.req.URL.RawQuery), c.body)
		return nil, fault
	}
	return nil, nil
}

func (s Screen) checkBatch(c *call) (*answer, *Fault) {
	b, fault := parseBatch(headerOf(c.req.Header, "Content-Type"), c.body)
	if fault != nil || b.query {
		return nil, fault
	}
	if _, index, fault := b.operations(s.Prefix); fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	return nil, nil
}
