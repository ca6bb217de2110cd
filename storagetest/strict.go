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

// Strict keeps a table service to Azure's rules that does not keep them itself, as Azurite does not: what Azure refuses is
// answered as Azure answers it and does not reach inner; all else goes on as it came. nil stands for http.DefaultClient.
//
// It holds the rules for names, keys, property names, types, values and sizes, for filters and $top, for transactions, and
// for the key range of a shared access signature, and keeps a dropped table's name for 40 s. What depends on the entity as it
// is stored it cannot know: a merge is held to the limits by what it brings, not by what it makes. A service of [Azurite] has
// it in its ClientOptions.
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
	dropped map[string]time.Time // by the table's address in lower case
}

func newStrict(inner policy.Transporter, l locator) *strict {
	return &strict{inner: inner, locate: l, dropped: map[string]time.Time{}}
}

// newHTTPClient keeps as many connections as a test with many goroutines needs, where http.DefaultClient keeps two.
func newHTTPClient() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient // the program has a network of its own; that is the one to use
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = 64
	return &http.Client{Transport: transport}
}

// Do is policy.Transporter.
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

// CloseIdleConnections closes those of the transport behind it, as http.Client does, for a test that looks for goroutines
// which are left over.
func (s *strict) CloseIdleConnections() {
	if inner, ok := s.inner.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// beingDeleted reports whether the table that a request would create was dropped a short while ago.
func (s *strict) beingDeleted(req *http.Request, body []byte) bool {
	var table struct{ TableName string }
	if json.Unmarshal(bytes.TrimSpace(body), &table) != nil {
		return false // the service knows what to say to that
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

// droppedKey tells tables of two accounts apart that one transport reaches. Names of tables know no difference in case.
func droppedKey(req *http.Request, table string) string {
	account, _, _ := strings.Cut(req.URL.Path, "/Tables")
	return strings.ToLower(req.URL.Host + account + "/" + table)
}
