package simulator

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what to simulate. The zero Options are an account named contoso on a calm day.
type Options struct {
	// Account is the account's name, Key its key in base64. Both have defaults.
	Account, Key string
	// BearerToken, if it is not empty, is a token that is let in like the account's key.
	BearerToken string
	// Start is when the virtual clock begins. The default is the same in every run.
	Start time.Time
	// Seed is the seed of all chance.
	Seed uint64
	// TableDeletion is how long a dropped table's name stays taken: by default DefaultTableDeletion, below zero not
	// at all.
	TableDeletion time.Duration
	// Chaos is what goes wrong.
	Chaos Chaos
	// Orderless makes ids, ETags and times of a resource tell nothing of requests to other resources, so that requests
	// that have nothing to do with each other come to the same state in any order. Two states are compared by Snapshot.Key.
	Orderless bool
}

// DefaultTableDeletion is how long, at the least, the service keeps the name of a dropped table.
const DefaultTableDeletion = 40 * time.Second

const (
	defaultAccount = "contoso"
	// A made-up key, known to everybody: it protects nothing.
	defaultKey = "c2ltdWxhdGVkIHNpbXVsYXRlZCBzaW11bGF0ZWQgc2ltdWxhdGVkIHNpbXVsYXRlZCBzaW11bGF0ZWQga2V5IQ=="
	hostSuffix = ".sim.test"
)

// Simulator is one storage account. It is a policy.Transporter of the Azure SDK: requests go to it instead of a network.
// Any number of goroutines may use it.
type Simulator struct {
	account, key string
	auth         authenticator
	clock        *Clock
	dice         *dice
	tables       *tableService
	queues       *queueService
	blobs        *blobService
	serial       atomic.Uint64

	// Whoever serves a request holds gate for reading, so that chaos changes between requests only.
	gate  sync.RWMutex
	chaos *Chaos
}

// New makes an empty account. The only error is a key that is not base64.
func New(o Options) (*Simulator, error) {
	if o.Account == "" {
		o.Account = defaultAccount
	}
	if o.Key == "" {
		o.Key = defaultKey
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil {
		return nil, fmt.Errorf("simulator: the account key of %d characters is not base64", len(o.Key))
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	}
	switch {
	case o.TableDeletion == 0:
		o.TableDeletion = DefaultTableDeletion
	case o.TableDeletion < 0:
		o.TableDeletion = 0
	}
	s := &Simulator{account: o.Account, key: o.Key, clock: NewClock(o.Start), dice: newDice(o.Seed), chaos: &o.Chaos}
	s.clock.still = o.Orderless
	s.tables = newTableService(o.Account, s.clock, s.dice, s.chaos, o.TableDeletion)
	s.queues = newQueueService(s.clock, s.dice, s.chaos)
	s.blobs = newBlobService(s.clock, s.dice, s.chaos)
	s.auth = authenticator{account: o.Account, key: key, bearer: o.BearerToken, clock: s.clock,
		policies: map[serviceName]policySource{serviceTable: s.tables.policy, serviceQueue: s.queues.policy, serviceBlob: s.blobs.policy}}
	return s, nil
}

// Clock is the account's time.
func (s *Simulator) Clock() *Clock { return s.clock }

// Account is the account's name.
func (s *Simulator) Account() string { return s.account }

// Key is the account's key in base64.
func (s *Simulator) Key() string { return s.key }

// TableEndpoint is the table service's address, without a slash at its end. The same host answers https.
func (s *Simulator) TableEndpoint() string { return s.endpoint(serviceTable) }

// QueueEndpoint is the queue service's address.
func (s *Simulator) QueueEndpoint() string { return s.endpoint(serviceQueue) }

// BlobEndpoint is the blob service's address.
func (s *Simulator) BlobEndpoint() string { return s.endpoint(serviceBlob) }

func (s *Simulator) endpoint(name serviceName) string {
	return "http://" + s.account + "." + string(name) + hostSuffix
}

// SetChaos changes what goes wrong, from the next request on. The seed's draws go on where they are.
func (s *Simulator) SetChaos(c Chaos) {
	s.gate.Lock()
	defer s.gate.Unlock()
	*s.chaos = c
}

// Do serves one request. The error is that of its context, of a body that cannot be read, or of an address that is none
// of the account's; everything else, refusals included, is an answer.
func (s *Simulator) Do(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s.gate.RLock()
	before := s.chaos.Before
	s.gate.RUnlock()
	if before != nil {
		before(req)
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	name, ok := s.service(req.URL.Host)
	if !ok {
		return nil, fmt.Errorf("simulator: no such host: %q", req.URL.Host)
	}
	s.chaos.delay(s.dice, s.clock)
	return s.answer(name, req, body).response(req), nil
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if closeErr := req.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && req.ContentLength > 0 && int64(len(body)) != req.ContentLength {
		err = fmt.Errorf("simulator: the body has %d bytes, its header says %d", len(body), req.ContentLength)
	}
	return body, err
}

// service names the service that a host stands for.
func (s *Simulator) service(host string) (serviceName, bool) {
	rest, ok := strings.CutPrefix(host, s.account+".")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, hostSuffix)
	name := serviceName(rest)
	return name, ok && (name == serviceTable || name == serviceQueue || name == serviceBlob)
}

// answer serves a request, or fails it if chance will have it so.
func (s *Simulator) answer(name serviceName, req *http.Request, body []byte) *answer {
	c := s.call(name, req, body)
	failure := s.chaos.failure(s.dice, name == serviceTable && strings.HasSuffix(req.URL.Path, "/$batch"))
	if failure != nil && !failure.applied {
		return failure.answer(c)
	}
	if fault := checkVersion(req); fault != nil {
		return c.refuse(fault)
	}
	g, fault := s.auth.check(name, req)
	if fault != nil {
		return c.refuse(fault)
	}
	a := s.serve(name, c, g)
	if failure != nil {
		return failure.answer(c)
	}
	return a
}

func (s *Simulator) serve(name serviceName, c *call, g *grant) *answer {
	switch name {
	case serviceTable:
		return s.tables.serve(c, g)
	case serviceQueue:
		if !g.allows(queueNeeds(c.req)) {
			return c.refuse(faultPermission())
		}
		return s.queues.serve(c.req, c.body)
	}
	if !g.allows(blobNeeds(c.req)) || !g.owner && !g.holds("w") && s.blobs.overwrites(c.req) {
		return c.refuse(faultPermission())
	}
	if fault := s.auth.checkCopy(c.req, g); fault != nil {
		return c.refuse(fault)
	}
	return s.blobs.serve(c.req, c.body)
}
