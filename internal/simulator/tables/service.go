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

// Service is the table service of one account. One lock covers all of it: a request sees the tables as they are at
// one moment, and changes them at one.
type Service struct {
	account  string
	clock    *environment.Clock
	dice     *environment.Dice
	chaos    *environment.Chaos
	deletion time.Duration // how long a dropped table's name stays taken

	mu    sync.Mutex
	state *State
}

// table is one table, its name as it was created.
type table struct {
	name     string
	rows     entity.Set
	policies authorization.Policies
	meters   map[string]*meter        // by partition, where a rate is held
	graves   map[entity.Key]time.Time // last stamps of rows that are gone, under a still clock
}

// New makes an empty service. deletion is how long the name of a dropped table stays taken.
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

// create makes a table.
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

// drop deletes a table with all that is in it. Its name stays taken for a while.
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

// Policy finds a table's stored access policy.
func (s *Service) Policy(name, id string) (authorization.Policy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return authorization.Policy{}, false
	}
	return t.policies.Find(id)
}

// meter counts the entities of one partition as a bucket that fills with PartitionRate a second.
type meter struct {
	left float64
	at   time.Time
}

// admit takes n entities out of the partition's bucket, and tells whether there were that many; the caller holds the lock.
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
