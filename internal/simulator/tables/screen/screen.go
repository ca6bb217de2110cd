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
	c := newTableCall(&Call{Req: req, Body: body, Serial: serial, Now: now})
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
func (s Screen) check(c *tableCall) (*answer, *Fault) {
	if fault := CheckVersion(c.Req); fault != nil {
		return nil, fault
	}
	if len(c.Body) > edm.MaxBatchBytes {
		return nil, faultTooLarge()
	}
	a, fault := parseAddress(strings.TrimPrefix(c.Req.URL.Path, s.Prefix))
	if fault != nil {
		return nil, fault
	}
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	values := Query(c.Req.URL)
	switch {
	case a.kind == addressService || values.Has("comp"):
		return nil, nil
	case a.kind == addressTables && c.Req.Method == http.MethodPost:
		name, fault := readString(c.Body, "TableName")
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
		_, fault := parseOperation(c.Req.Method, a, c.Req.Header, formatOf(c.Req.URL.RawQuery), c.Body)
		return nil, fault
	}
	return nil, nil
}

func (s Screen) checkBatch(c *tableCall) (*answer, *Fault) {
	b, fault := parseBatch(Header(c.Req.Header, "Content-Type"), c.Body)
	if fault != nil || b.query {
		return nil, fault
	}
	if _, index, fault := b.operations(s.Prefix); fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	return nil, nil
}
