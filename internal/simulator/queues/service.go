package queues

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// rights are the letters of the permissions that a policy of a queue may contain.
const rights = "raup"

// deleteDelay is how long the name of a deleted queue cannot be used again.
const deleteDelay = 40 * time.Second

// Service is the queue service of one account.
type Service struct {
	exchange.Service
	queues      map[string]*queue
	deleted     map[string]time.Time // when each deleted queue was deleted, by name
	deleteDelay time.Duration
	first       int // the position, among the visible messages, of the message that the next get returns first
}

// queue is one queue with its messages.
type queue struct {
	metadata map[string]string
	policies authorization.Policies
	byID     map[string]*queued
	byTime   messageHeap
	puts     map[string]uint64 // how often each text was put, for a still clock
}

// New returns a service without queues.
func New(clock *environment.Clock, d *environment.Dice, chaos *environment.Chaos) *Service {
	return &Service{Service: exchange.Service{Clock: clock, Dice: d, Chaos: chaos}, queues: map[string]*queue{}, deleted: map[string]time.Time{},
		deleteDelay: deleteDelay}
}

// Serve serves one request of a sender with this grant. The path begins with the queue's name.
func (s *Service) Serve(c *protocol.Call, g *authorization.Grant) *protocol.Answer {
	if !g.Allows(needs(c.Req)) {
		return s.Refuse(c, authorization.PermissionMismatch())
	}
	return s.Answer(c, s.dispatch)
}

// Policy returns the stored access policy that a signature names.
func (s *Service) Policy(queueName, id string) (authorization.Policy, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	q := s.queues[queueName]
	if q == nil {
		return authorization.Policy{}, false
	}
	return q.policies.Find(id)
}

func (s *Service) dispatch(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	name, rest, _ := strings.Cut(strings.Trim(c.Req.URL.Path, "/"), "/")
	if name == "" {
		if c.Req.Method != http.MethodGet || c.Query.Get("comp") != "list" {
			return nil, exchange.InvalidQuery("comp", c.Query.Get("comp"), "The account has no such resource.")
		}
		return s.list(c)
	}
	if err := exchange.CheckName(name); err != nil {
		return nil, err
	}
	if rest == "" && c.Query.Get("comp") == "" {
		switch c.Req.Method {
		case http.MethodPut:
			return s.create(c, name)
		case http.MethodDelete:
			return s.drop(c, name)
		}
		return nil, exchange.UnsupportedVerb(c.Req.Method)
	}
	q := s.queues[name]
	if q == nil {
		return nil, protocol.Refuse(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	if rest == "" {
		return q.attributes(c)
	}
	messages, id, _ := strings.Cut(rest, "/")
	if messages != "messages" {
		return nil, protocol.Refuse(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	}
	if id != "" {
		return s.message(c, q, id)
	}
	return s.messages(c, q)
}

func (s *Service) create(c *exchange.Call, name string) (*protocol.Answer, *protocol.Fault) {
	if err := c.CheckMetadata(); err != nil {
		return nil, err
	}
	if q := s.queues[name]; q != nil {
		if sameMetadata(q.metadata, c.Metadata) {
			return protocol.NewAnswer(http.StatusNoContent), nil
		}
		return nil, protocol.Refuse(http.StatusConflict, "QueueAlreadyExists", "The specified queue already exists.")
	}
	if gone, ok := s.deleted[name]; ok && c.Now.Before(gone.Add(s.deleteDelay)) {
		return nil, protocol.Refuse(http.StatusConflict, "QueueBeingDeleted", "The specified queue is being deleted. Try again later.")
	}
	delete(s.deleted, name)
	s.queues[name] = &queue{metadata: c.Metadata, byID: map[string]*queued{}}
	return protocol.NewAnswer(http.StatusCreated), nil
}

func (s *Service) drop(c *exchange.Call, name string) (*protocol.Answer, *protocol.Fault) {
	if s.queues[name] == nil {
		return nil, protocol.Refuse(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	delete(s.queues, name)
	s.deleted[name] = c.Now
	return protocol.NewAnswer(http.StatusNoContent), nil
}

// attributes serves requests on the queue's metadata and policies.
func (q *queue) attributes(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	comp := c.Query.Get("comp")
	if comp != "metadata" && comp != "acl" {
		return nil, exchange.InvalidQuery("comp", comp, "A queue has no such resource.")
	}
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	switch {
	case read && comp == "metadata":
		a := protocol.NewAnswer(http.StatusOK)
		exchange.SetMetadata(a.Header, q.metadata)
		a.Header.Set("x-ms-approximate-messages-count", q.count(c.Now))
		return a, nil
	case read:
		return q.policies.Answer(protocol.NewAnswer(http.StatusOK)), nil
	case c.Req.Method != http.MethodPut:
		return nil, exchange.UnsupportedVerb(c.Req.Method)
	case comp == "metadata":
		if err := c.CheckMetadata(); err != nil {
			return nil, err
		}
		q.metadata = c.Metadata
		return protocol.NewAnswer(http.StatusNoContent), nil
	}
	policies, err := authorization.ReadPolicies(c.Body, rights)
	if err != nil {
		return nil, err
	}
	q.policies = policies
	return protocol.NewAnswer(http.StatusNoContent), nil
}

func (s *Service) list(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	return s.List(c, "Queue", slices.Sorted(maps.Keys(s.queues)), func(_ *document.Writer, name string) map[string]string { return s.queues[name].metadata })
}

// sameMetadata compares metadata as the services do, which ignore the case of names.
func sameMetadata(a, b map[string]string) bool {
	lower := make(map[string]string, len(b))
	for name, value := range b {
		lower[strings.ToLower(name)] = value
	}
	for name, value := range a {
		if v, ok := lower[strings.ToLower(name)]; !ok || v != value {
			return false
		}
	}
	return len(a) == len(b)
}
