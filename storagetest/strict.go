package storagetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/screen"
)

// Strict returns a transport that enforces Azure's rules in front of a table service such as Azurite: it answers a request that Azure would refuse
// with Azure's error, without sending it to inner, and passes on all others. A nil inner means http.DefaultClient.
//
// It checks names, keys, property names, types, values and sizes, filters and $top, transactions, and the key range of a shared access signature,
// and keeps a dropped table's name taken for 40 s. It does not see stored entities: of a merge, it checks only what is sent. The ClientOptions of
// [Azurite] have it.
func Strict(inner policy.Transporter) policy.Transporter {
	if inner == nil {
		inner = http.DefaultClient
	}
	return newStrict(inner, locator{})
}

type strict struct {
	inner  policy.Transporter
	locate locator
	serial atomic.Uint64

	mu      sync.Mutex
	dropped map[string]time.Time // by the result of droppedKey
}

func newStrict(inner policy.Transporter, l locator) *strict {
	return &strict{inner: inner, locate: l, dropped: map[string]time.Time{}}
}

// newHTTPClient keeps more idle connections than the two of http.DefaultClient, for tests with many goroutines.
func newHTTPClient() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient // the program has replaced http.DefaultTransport
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = 64
	return &http.Client{Transport: transport}
}

// Do implements policy.Transporter.
func (s *strict) Do(req *http.Request) (*http.Response, error) {
	c := describe(s.locate, req)
	if c.Service != TableService {
		return s.inner.Do(req)
	}
	body, req, err := readBody(req)
	if err != nil {
		return nil, err
	}
	serial := s.serial.Add(1)
	rules := screen.Rules{Prefix: strings.TrimSuffix(strings.TrimSuffix(req.URL.Path, c.Path), "/")}
	refused := rules.Refuse(req, body, serial, time.Now())
	if refused == nil {
		var confined *http.Request
		if confined, refused = rules.Confine(req, body, serial, time.Now()); refused == nil {
			req = confined
		}
	}
	if refused != nil {
		closeBody(req)
		return refused, nil
	}
	switch c.Kind {
	case CreateTable:
		if s.beingDeleted(req, body) {
			closeBody(req)
			c.Index = int(serial)
			return errorAnswer(c, req, http.StatusConflict, "TableBeingDeleted", "The specified table is being deleted. Try operation later."), nil
		}
	case DeleteTable:
		resp, err := s.inner.Do(req)
		if err == nil && resp.StatusCode == http.StatusNoContent {
			s.drop(req, c.Resource)
		}
		return resp, err
	}
	return s.inner.Do(req)
}

// CloseIdleConnections does so for the inner transport, for tests that look for leaked goroutines.
func (s *strict) CloseIdleConnections() {
	if inner, ok := s.inner.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// beingDeleted reports whether the table to create was dropped a short while ago.
func (s *strict) beingDeleted(req *http.Request, body []byte) bool {
	var table struct{ TableName string }
	if json.Unmarshal(bytes.TrimSpace(body), &table) != nil {
		return false // the service itself refuses it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.dropped[droppedKey(req, table.TableName)]
	return ok && time.Since(at) < simulator.DefaultTableDeletion
}

func (s *strict) drop(req *http.Request, table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped[droppedKey(req, table)] = time.Now()
}

// droppedKey is account and name, since one transport may reach two accounts; table names ignore case.
func droppedKey(req *http.Request, table string) string {
	account, _, _ := strings.Cut(req.URL.Path, "/Tables")
	return strings.ToLower(req.URL.Host + account + "/" + table)
}
