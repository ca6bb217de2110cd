package simulator

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// tableService is the table service of one account. One lock covers all of it: a request sees the tables as they are at
// one moment, and changes them at one.
type tableService struct {
	account  string
	clock    *Clock
	dice     *Dice
	chaos    *Chaos
	deletion time.Duration // how long a dropped table's name stays taken

	mu    sync.Mutex
	state *tablesState
}

// table is one table, its name as it was created.
type table struct {
	name     string
	rows     rowSet
	policies Policies
	meters   map[string]*meter    // by partition, where a rate is held
	graves   map[rowKey]time.Time // last stamps of rows that are gone, under a still clock
}

func newTableService(account string, clock *Clock, d *Dice, chaos *Chaos, deletion time.Duration) *tableService {
	return &tableService{account: account, clock: clock, dice: d, chaos: chaos, deletion: deletion,
		state: &tablesState{tables: map[string]*table{}, taken: map[string]time.Time{}}}
}

// find returns a table; the caller holds the lock.
func (s *tableService) find(name string) (*table, *Fault) {
	if t := s.state.tables[strings.ToLower(name)]; t != nil {
		return t, nil
	}
	return nil, faultTableNotFound()
}

// create makes a table.
func (s *tableService) create(name string) *Fault {
	if fault := CheckTableName(name); fault != nil {
		return fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(name)
	if s.state.tables[key] != nil {
		return refuse(http.StatusConflict, "TableAlreadyExists", "The table specified already exists.")
	}
	if until, ok := s.state.taken[key]; ok {
		if s.clock.Now().Before(until) {
			return refuse(http.StatusConflict, "TableBeingDeleted", "The specified table is being deleted. Try operation later.")
		}
		delete(s.state.taken, key)
	}
	s.state.tables[key] = &table{name: name}
	return nil
}

// drop deletes a table with all that is in it. Its name stays taken for a while.
func (s *tableService) drop(name string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(name)
	if s.state.tables[key] == nil {
		return faultNotFound()
	}
	delete(s.state.tables, key)
	s.state.taken[key] = s.clock.Now().Add(s.deletion)
	return nil
}

// Policy finds a table's stored access policy.
func (s *tableService) Policy(name, id string) (Policy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(name)
	if fault != nil {
		return Policy{}, false
	}
	return t.policies.Find(id)
}

// meter counts the entities of one partition as a bucket that fills with PartitionRate a second.
type meter struct {
	left float64
	at   time.Time
}

// admit takes n entities out of the partition's bucket, and tells whether there were that many; the caller holds the lock.
func (s *tableService) admit(t *table, partition string, n int) bool {
	if !s.chaos.PartitionLimit {
		return true
	}
	now := s.clock.Now()
	m := t.meters[partition]
	if m == nil {
		if t.meters == nil {
			t.meters = map[string]*meter{}
		}
		m = &meter{left: PartitionRate, at: now}
		t.meters[partition] = m
	}
	m.left = min(PartitionRate, m.left+now.Sub(m.at).Seconds()*PartitionRate)
	m.at = now
	if m.left < float64(n) {
		return false
	}
	m.left -= float64(n)
	return true
}

func faultNotFound() *Fault {
	return refuse(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}

func faultTableNotFound() *Fault {
	return refuse(http.StatusNotFound, "TableNotFound", "The table specified does not exist.")
}
