package harness

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
)

// SecretSearch looks for secrets in the texts that a program prints, logs or exports. The zero SecretSearch
// is ready to use. It is safe for concurrent use.
type SecretSearch struct {
	mu       sync.Mutex
	searched map[string]int // number of texts of each kind
	found    []string
}

// Search counts a text of a kind. If the text contains one of the secrets, Search keeps it together with its source.
func (s *SecretSearch) Search(kind, where, text string, secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.searched == nil {
		s.searched = map[string]int{}
	}
	s.searched[kind]++
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			s.found = append(s.found, fmt.Sprintf("%s: %q is in %.600s", where, secret, text))
			return
		}
	}
}

// Searched returns the number of texts of each kind that were searched.
func (s *SecretSearch) Searched() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.searched)
}

// Take returns the texts with a secret and removes them from the search.
func (s *SecretSearch) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found
	s.found = nil
	return found
}

// Verdict takes the texts with a secret and fails the test for each. It also fails for each kind with fewer texts than
// least demands.
func (s *SecretSearch) Verdict(t *testing.T, least map[string]int) {
	t.Helper()
	searched := s.Searched()
	t.Logf("looked at %v", searched)
	for i, found := range s.Take() {
		if i < 12 {
			t.Errorf("a secret is in a %s", found)
		}
	}
	for kind, n := range least {
		if searched[kind] < n {
			t.Errorf("%d of %q were looked at, want %d", searched[kind], kind, n)
		}
	}
}

// Spans returns a tracing provider that passes to visit the name, each attribute, each event and the status
// of every span.
func Spans(visit func(text string)) tracing.Provider {
	attributes := func(list ...tracing.Attribute) {
		for _, a := range list {
			visit(fmt.Sprintf("%s=%v", a.Key, a.Value))
		}
	}
	return tracing.NewProvider(func(string, string) tracing.Tracer {
		return tracing.NewTracer(func(ctx context.Context, name string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
			visit(name)
			attributes(o.Attributes...)
			return ctx, tracing.NewSpan(tracing.SpanImpl{
				SetAttributes: attributes,
				AddEvent:      func(name string, list ...tracing.Attribute) { visit(name); attributes(list...) },
				SetStatus:     func(_ tracing.SpanStatus, text string) { visit(text) },
			})
		}, nil)
	}, nil)
}
