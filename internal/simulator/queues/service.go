package simulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// queueRights are the letters of the rights that a policy of a queue may give.
const queueRights = "raup"

// queueDeleteDelay is how long the name of a deleted queue cannot be taken again.
const queueDeleteDelay = 40 * time.Second

// queueService is the queue service of one account.
type queueService struct {
	xmlService
	queues      map[string]*queue
	deleted     map[string]time.Time // when names of deleted queues were given up
	deleteDelay time.Duration
	first       int // the place, among the visible messages, of the one that the next get hands out first
}

// queue is one queue with its messages.
type queue struct {
	metadata map[string]string
	policies Policies
	byID     map[string]*queueMessage
	byTime   queueHeap
	puts     map[string]uint64 // how often a text was put, under a still clock
}

func newQueueService(clock *Clock, d *Dice, chaos *Chaos) *queueService {
	return &queueService{xmlService: xmlService{clock: clock, dice: d, chaos: chaos}, queues: map[string]*queue{}, deleted: map[string]time.Time{},
		deleteDelay: queueDeleteDelay}
}

// Serve answers one request whose sender has the grant. The path begins with the queue's name.
func (s *queueService) Serve(c *Call, g *Grant) *answer {
	if !g.Allows(queueNeeds(c.Req)) {
		return s.Refuse(c, faultPermission())
	}
	return s.answer(c, s.dispatch)
}

// Policy finds a stored access policy, for a signature that names one.
func (s *queueService) Policy(queueName, id string) (Policy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueName]
	if q == nil {
		return Policy{}, false
	}
	return q.policies.Find(id)
}

func (s *queueService) dispatch(c *xmlCall) (*answer, *Fault) {
	name, rest, _ := strings.Cut(strings.Trim(c.Req.URL.Path, "/"), "/")
	if name == "" {
		if c.Req.Method != http.MethodGet || c.query.Get("comp") != "list" {
			return nil, xmlInvalidQuery("comp", c.query.Get("comp"), "The account has no such resource.")
		}
		return s.list(c)
	}
	if err := xmlCheckName(name); err != nil {
		return nil, err
	}
	if rest == "" && c.query.Get("comp") == "" {
		switch c.Req.Method {
		case http.MethodPut:
			return s.create(c, name)
		case http.MethodDelete:
			return s.drop(c, name)
		}
		return nil, xmlUnsupportedVerb(c.Req.Method)
	}
	q := s.queues[name]
	if q == nil {
		return nil, refuse(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	if rest == "" {
		return q.attributes(c)
	}
	messages, id, _ := strings.Cut(rest, "/")
	if messages != "messages" {
		return nil, refuse(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	}
	if id != "" {
		return s.message(c, q, id)
	}
	return s.messages(c, q)
}

func (s *queueService) create(c *xmlCall, name string) (*answer, *Fault) {
	if err := c.checkMetadata(); err != nil {
		return nil, err
	}
	if q := s.queues[name]; q != nil {
		if sameMetadata(q.metadata, c.metadata) {
			return newAnswer(http.StatusNoContent), nil
		}
		return nil, refuse(http.StatusConflict, "QueueAlreadyExists", "The specified queue already exists.")
	}
	if gone, ok := s.deleted[name]; ok && c.Now.Before(gone.Add(s.deleteDelay)) {
		return nil, refuse(http.StatusConflict, "QueueBeingDeleted", "The specified queue is being deleted. Try again later.")
	}
	delete(s.deleted, name)
	s.queues[name] = &queue{metadata: c.metadata, byID: map[string]*queueMessage{}}
	return newAnswer(http.StatusCreated), nil
}

func (s *queueService) drop(c *xmlCall, name string) (*answer, *Fault) {
	if s.queues[name] == nil {
		return nil, refuse(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	delete(s.queues, name)
	s.deleted[name] = c.Now
	return newAnswer(http.StatusNoContent), nil
}

// attributes reads and writes what belongs to the queue itself.
func (q *queue) attributes(c *xmlCall) (*answer, *Fault) {
	comp := c.query.Get("comp")
	if comp != "metadata" && comp != "acl" {
		return nil, xmlInvalidQuery("comp", comp, "A queue has no such resource.")
	}
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	switch {
	case read && comp == "metadata":
		a := newAnswer(http.StatusOK)
		setMetadata(a.header, q.metadata)
		a.header.Set("x-ms-approximate-messages-count", q.count(c.Now))
		return a, nil
	case read:
		return q.policies.Answer(newAnswer(http.StatusOK)), nil
	case c.Req.Method != http.MethodPut:
		return nil, xmlUnsupportedVerb(c.Req.Method)
	case comp == "metadata":
		if err := c.checkMetadata(); err != nil {
			return nil, err
		}
		q.metadata = c.metadata
		return newAnswer(http.StatusNoContent), nil
	}
	policies, err := ReadPolicies(c.Body, queueRights)
	if err != nil {
		return nil, err
	}
	q.policies = policies
	return newAnswer(http.StatusNoContent), nil
}

func (s *queueService) list(c *xmlCall) (*answer, *Fault) {
	p, err := newXMLPage(c, s.dice, s.chaos)
	if err != nil {
		return nil, err
	}
	found, next := p.take(slices.Sorted(maps.Keys(s.queues)))
	w := newXMLWriter("EnumerationResults", "ServiceEndpoint", c.endpoint())
	p.writeHead(w)
	w.begin("Queues")
	for _, name := range found {
		w.begin("Queue")
		w.element("Name", name)
		if c.includes("metadata") {
			w.metadata(s.queues[name].metadata)
		}
		w.end()
	}
	w.end()
	w.element("NextMarker", next)
	return w.answer(newAnswer(http.StatusOK)), nil
}

// sameMetadata compares names as the services do, which know no difference in case.
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
