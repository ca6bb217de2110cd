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

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/blobs"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/queues"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Options configure a Simulator. The zero Options are an account named contoso without failures.
type Options struct {
	// Account is the account's name (default contoso), and Key its key in base64 (default: a key of the simulator's own).
	Account, Key string
	// BearerToken, if not empty, is a token that authorizes like the account's key.
	BearerToken string
	// Start is the initial time of the virtual clock (default: a fixed time, the same in every run).
	Start time.Time
	// Seed determines all random choices.
	Seed uint64
	// TableDeletion is how long the name of a deleted table stays unusable (default DefaultTableDeletion, 40 seconds). A
	// negative value means that the name is free at once.
	TableDeletion time.Duration
	// Chaos configures failures (default none).
	Chaos environment.Chaos
}

// DefaultTableDeletion is the shortest time for which the service keeps the name of a deleted table.
const DefaultTableDeletion = 40 * time.Second

const (
	defaultAccount = "contoso"
	// defaultKey is a published key, so it is not a secret.
	defaultKey = "c2ltdWxhdGVkIHNpbXVsYXRlZCBzaW11bGF0ZWQgc2ltdWxhdGVkIHNpbXVsYXRlZCBzaW11bGF0ZWQga2V5IQ=="
	hostSuffix = ".sim.test"
)

// Simulator is one storage account. It is a policy.Transporter of the Azure SDK, which sends requests to it instead of the
// network. It is safe for concurrent use.
type Simulator struct {
	account, key string
	authority    *authorization.Authority
	clock        *environment.Clock
	dice         *environment.Dice
	tables       *tables.Service
	queues       *queues.Service
	blobs        *blobs.Service
	serial       atomic.Uint64

	// A request holds gate for reading while it is served, so Chaos and state are replaced only between requests.
	gate  sync.RWMutex
	chaos *environment.Chaos
}

// New returns an empty account. It returns an error only if the key is not base64.
func New(o Options) (*Simulator, error) {
	if o.Account == "" {
		o.Account = defaultAccount
	}
	if o.Key == "" {
		o.Key = defaultKey
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil {
		return nil, fmt.Errorf("simulator: Options.Key, of %d characters, is not valid base64", len(o.Key))
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
	s := &Simulator{account: o.Account, key: o.Key, clock: environment.NewClock(o.Start), dice: environment.NewDice(o.Seed), chaos: &o.Chaos}
	s.authority = authorization.New(o.Account, key, o.BearerToken, s.clock)
	s.tables = tables.New(o.Account, s.clock, s.dice, s.chaos, o.TableDeletion)
	s.queues = queues.New(s.clock, s.dice, s.chaos)
	s.blobs = blobs.New(s.authority, s.clock, s.dice, s.chaos)
	return s, nil
}

// Clock returns the account's clock. If it stands (Clock.Stand), ids, ETags and times of a resource are independent of requests to other
// resources, so that independent requests lead to the same state in any order. Snapshot.Key compares two states.
func (s *Simulator) Clock() *environment.Clock { return s.clock }

// Account returns the account's name.
func (s *Simulator) Account() string { return s.account }

// Key returns the account's key in base64.
func (s *Simulator) Key() string { return s.key }

// TableEndpoint returns the URL of the table service, without a slash at its end. https works with the same host.
func (s *Simulator) TableEndpoint() string { return s.endpoint(protocol.Table) }

// QueueEndpoint returns the URL of the queue service.
func (s *Simulator) QueueEndpoint() string { return s.endpoint(protocol.Queue) }

// BlobEndpoint returns the URL of the blob service.
func (s *Simulator) BlobEndpoint() string { return s.endpoint(protocol.Blob) }

func (s *Simulator) endpoint(name protocol.Service) string {
	return "http://" + s.account + "." + string(name) + hostSuffix
}

// SetChaos changes the failures from the next request on. It does not reset the random choices.
func (s *Simulator) SetChaos(c environment.Chaos) {
	s.gate.Lock()
	defer s.gate.Unlock()
	*s.chaos = c
}

// Do serves one request. It returns an error only if the request's context has ended, its body cannot be read, or its host is
// not one of the account's. Everything else, including a refusal, is a response.
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
	name, of := s.service(req.URL.Host)
	if of == nil {
		return nil, fmt.Errorf("simulator: host %q is not one of the simulated account's; use its TableEndpoint, QueueEndpoint or BlobEndpoint", req.URL.Host)
	}
	s.chaos.Delay(s.dice, s.clock)
	c := &protocol.Call{Req: req, Body: body, Now: s.clock.Now()}
	if !s.clock.Still() {
		c.Serial = s.serial.Add(1)
	}
	return s.answer(name, of, c).Response(req), nil
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
		err = fmt.Errorf("simulator: the body has %d bytes, but Content-Length is %d", len(body), req.ContentLength)
	}
	return body, err
}

// service is one of the services of the account.
type service interface {
	Serve(c *protocol.Call, g *authorization.Grant) *protocol.Answer
	Refuse(c *protocol.Call, f *protocol.Fault) *protocol.Answer
	Policy(resource, id string) (authorization.Policy, bool)
}

// service returns the service of a host.
func (s *Simulator) service(host string) (protocol.Service, service) {
	rest, ok := strings.CutPrefix(host, s.account+".")
	name, ends := strings.CutSuffix(rest, hostSuffix)
	if ok && ends {
		switch protocol.Service(name) {
		case protocol.Table:
			return protocol.Table, s.tables
		case protocol.Queue:
			return protocol.Queue, s.queues
		case protocol.Blob:
			return protocol.Blob, s.blobs
		}
	}
	return "", nil
}

// answer serves a request, or makes it fail if the Chaos decides so.
func (s *Simulator) answer(name protocol.Service, of service, c *protocol.Call) *protocol.Answer {
	failure := s.failure(name == protocol.Table && strings.HasSuffix(c.Req.URL.Path, "/$batch"))
	if failure != nil && !failure.applied {
		return failure.answer(of, c)
	}
	if fault := protocol.CheckVersion(c.Req); fault != nil {
		return of.Refuse(c, fault)
	}
	g, fault := s.authority.Check(name, of.Policy, c.Req)
	if fault != nil {
		return of.Refuse(c, fault)
	}
	a := of.Serve(c, g)
	if failure != nil {
		return failure.answer(of, c)
	}
	return a
}

// Rows returns all entities of a table at one moment, in the order of their keys, or none if the table does not exist. It
// makes no request.
func (s *Simulator) Rows(tableName string) []*entity.Stored { return s.tables.Rows(tableName) }

// Tables returns the names of the existing tables, sorted.
func (s *Simulator) Tables() []string { return s.tables.Names() }
