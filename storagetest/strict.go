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

// Strict returns a transport that enforces Azure's rules in front of a table service that does not, such as
// Azurite. It answers a request that Azure would refuse with Azure's error, without sending it to inner, and
// passes all other requests on unchanged. A nil inner means http.DefaultClient.
//
// It checks names, keys, property names, types, values and sizes, filters and $top, transactions, and the key range
// of a shared access signature, and keeps a dropped table's name taken for 40 s. It does not see stored entities: it
// checks only the properties that a merge sends, not the merged entity. A service of [Azurite] has Strict in its
// ClientOptions.
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
	dropped map[string]time.Time // time of the drop, by the key that droppedKey returns
}

func newStrict(inner policy.Transporter, l locator) *strict {
	return &strict{inner: inner, locate: l, dropped: map[string]time.Time{}}
}

// newHTTPClient returns a client that keeps enough idle connections for a test with many goroutines;
// http.DefaultClient keeps only two.
func newHTTPClient() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient // the program has replaced http.DefaultTransport; use that
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

// CloseIdleConnections closes the idle connections of the inner transport, as http.Client does, for tests
// that look for leaked goroutines.
func (s *strict) CloseIdleConnections() {
	if inner, ok := s.inner.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// beingDeleted reports whether the table that a request would create was dropped a short while ago.
func (s *strict) beingDeleted(req *http.Request, body []byte) bool {
	var table struct{ TableName string }
	if json.Unmarshal(bytes.TrimSpace(body), &table) != nil {
		return false // the service itself refuses such a request
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

// droppedKey identifies a table by account and name, since one transport may reach two accounts. Table names ignore
// case.
func droppedKey(req *http.Request, table string) string {
	account, _, _ := strings.Cut(req.URL.Path, "/Tables")
	return strings.ToLower(req.URL.Host + account + "/" + table)
}
