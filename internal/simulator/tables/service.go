package tables

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// Service is the table service of one account. One lock protects all of it, so a request reads and changes the tables at one
// moment.
type Service struct {
	account  string
	clock    *environment.Clock
	dice     *environment.Dice
	chaos    *environment.Chaos
	deletion time.Duration // how long the name of a deleted table cannot be used again

	mu    sync.Mutex
	state *State
}

// table is one table; name is in the case in which it was created.
type table struct {
	name     string
	rows     entity.Set
	policies authorization.Policies
	meters   map[string]*meter        // by partition, for Chaos.PartitionLimit
	graves   map[entity.Key]time.Time // the last stamp of each deleted row, for a still clock
}

// New returns a service without tables. deletion is how long the name of a deleted table cannot be used again.
func New(account string, clock *environment.Clock, d *environment.Dice, chaos *environment.Chaos, deletion time.Duration) *Service {
	return &Service{account: account, clock: clock, dice: d, chaos: chaos, deletion: deletion,
		state: &State{tables: map[string]*table{}, taken: map[string]time.Time{}}}
}

// find returns a table; the caller holds the lock.
func (s *Service) find(name string) (*table, *protocol.Fault) {
	if t := s.state.tables[strings.ToLower(name)]; t != nil {
		return t, nil
	}
	return nil, protocol.Refuse(http.StatusNotFound, "TableNotFound", "The table specified does not exist.")
}

// create creates a table.
func (s *Service) create(name string) *protocol.Fault {
	if fault := request.CheckTableName(name); fault != nil {
		return fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(name)
	if s.state.tables[key] != nil {
		return protocol.Refuse(http.StatusConflict, "TableAlreadyExists", "The table specified already exists.")
	}
	if until, ok := s.state.taken[key]; ok {
		if s.clock.Now().Before(until) {
			return protocol.Refuse(http.StatusConflict, "TableBeingDeleted", "The specified table is being deleted. Try operation later.")
		}
		delete(s.state.taken, key)
	}
	s.state.tables[key] = &table{name: name}
	return nil
}

// drop deletes a table with all its rows. Its name cannot be used again for a while.
func (s *Service) drop(name string) *protocol.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(name)
	if s.state.tables[key] == nil {
		return resourceNotFound()
	}
	delete(s.state.tables, key)
	s.state.taken[key] = s.clock.Now().Add(s.deletion)
	return nil
}

// Policy returns a table's stored access policy.
func (s *Service) Policy(name, id string) (authorization.Policy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return authorization.Policy{}, false
	}
	return t.policies.Find(id)
}

// meter limits the rate of one partition as a token bucket that refills with PartitionRate entities a second.
type meter struct {
	left float64
	at   time.Time
}

// admit takes n entities from the partition's bucket and reports whether it contained as many; the caller holds the lock.
func (s *Service) admit(t *table, partition string, n int) bool {
	if !s.chaos.PartitionLimit {
		return true
	}
	now := s.clock.Now()
	m := t.meters[partition]
	if m == nil {
		if t.meters == nil {
			t.meters = map[string]*meter{}
		}
		m = &meter{left: environment.PartitionRate, at: now}
		t.meters[partition] = m
	}
	m.left = min(environment.PartitionRate, m.left+now.Sub(m.at).Seconds()*environment.PartitionRate)
	m.at = now
	if m.left < float64(n) {
		return false
	}
	m.left -= float64(n)
	return true
}

func resourceNotFound() *protocol.Fault {
	return protocol.Refuse(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}
