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
	Chaos environment.Chaos
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
	authority    *authorization.Authority
	clock        *environment.Clock
	dice         *environment.Dice
	tables       *tables.Service
	queues       *queues.Service
	blobs        *blobs.Service
	serial       atomic.Uint64

	// Whoever serves a request holds gate for reading, so that chaos changes between requests only.
	gate  sync.RWMutex
	chaos *environment.Chaos
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
	s := &Simulator{account: o.Account, key: o.Key, clock: environment.NewClock(o.Start), dice: environment.NewDice(o.Seed), chaos: &o.Chaos}
	if o.Orderless {
		s.clock = environment.NewStillClock(o.Start)
	}
	s.authority = authorization.New(o.Account, key, o.BearerToken, s.clock)
	s.tables = tables.New(o.Account, s.clock, s.dice, s.chaos, o.TableDeletion)
	s.queues = queues.New(s.clock, s.dice, s.chaos)
	s.blobs = blobs.New(s.authority, s.clock, s.dice, s.chaos)
	return s, nil
}

// Clock is the account's time.
func (s *Simulator) Clock() *environment.Clock { return s.clock }

// Account is the account's name.
func (s *Simulator) Account() string { return s.account }

// Key is the account's key in base64.
func (s *Simulator) Key() string { return s.key }

// TableEndpoint is the table service's address, without a slash at its end. The same host answers https.
func (s *Simulator) TableEndpoint() string { return s.endpoint(protocol.Table) }

// QueueEndpoint is the queue service's address.
func (s *Simulator) QueueEndpoint() string { return s.endpoint(protocol.Queue) }

// BlobEndpoint is the blob service's address.
func (s *Simulator) BlobEndpoint() string { return s.endpoint(protocol.Blob) }

func (s *Simulator) endpoint(name protocol.Service) string {
	return "http://" + s.account + "." + string(name) + hostSuffix
}

// SetChaos changes what goes wrong, from the next request on. The seed's draws go on where they are.
func (s *Simulator) SetChaos(c environment.Chaos) {
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
	name, of := s.service(req.URL.Host)
	if of == nil {
		return nil, fmt.Errorf("simulator: no such host: %q", req.URL.Host)
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
		err = fmt.Errorf("simulator: the body has %d bytes, its header says %d", len(body), req.ContentLength)
	}
	return body, err
}

// service is one of the services of the account.
type service interface {
	Serve(c *protocol.Call, g *authorization.Grant) *protocol.Answer
	Refuse(c *protocol.Call, f *protocol.Fault) *protocol.Answer
	Policy(resource, id string) (authorization.Policy, bool)
}

// service finds the service that a host stands for.
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

// answer serves a request, or fails it if chance will have it so.
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

// Rows returns all entities of a table as they are at one moment, in the order of their keys; none for a table that is not there.
// No request is made.
func (s *Simulator) Rows(tableName string) []*entity.Stored { return s.tables.Rows(tableName) }

// Tables returns the names of the tables that are there, in the order of their listing.
func (s *Simulator) Tables() []string { return s.tables.Names() }
