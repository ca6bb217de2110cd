package tables

import (
	"maps"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// State is the stored state of the service at one moment.
type State struct {
	tables     map[string]*table    // by name, in lower case
	taken      map[string]time.Time // until when the name of each deleted table cannot be used
	properties []byte               // the service's properties, as they were sent
}

func (s *State) clone() *State {
	return &State{snapshot.Cloned(s.tables, (*table).clone), maps.Clone(s.taken), s.properties}
}

// Snapshot copies the stored state.
func (s *Service) Snapshot() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.clone()
}

// Restore returns the service to the state of a snapshot.
func (s *Service) Restore(from *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = from.clone()
}

// clone copies the table.
func (t *table) clone() *table {
	c := &table{name: t.name, rows: t.rows.Clone(), policies: t.policies, graves: maps.Clone(t.graves)}
	for partition, m := range t.meters {
		if c.meters == nil {
			c.meters = map[string]*meter{}
		}
		copied := *m
		c.meters[partition] = &copied
	}
	return c
}

// Fingerprint writes the parts of the state that requests can observe at a time.
func (s *State) Fingerprint(k *snapshot.Writer, now time.Time) {
	k.Bytes(s.properties)
	k.Times(s.taken)
	snapshot.EachSorted(k, s.tables, func(_ string, t *table) { t.fingerprint(k, now) })
}

func (t *table) fingerprint(k *snapshot.Writer, now time.Time) {
	k.Text(t.name)
	t.policies.Fingerprint(k)
	t.rows.Fingerprint(k)
	snapshot.EachSorted(k, t.meters, func(_ string, m *meter) {
		k.Number(uint64(m.left * 1e6))
		k.Time(m.at)
	})
	var graves []entity.Key
	for key, at := range t.graves {
		// Write only the newest stamp: an older one does not affect later stamps.
		if !at.Before(now) && t.rows.Get(key.Partition, key.Row) == nil {
			graves = append(graves, key)
		}
	}
	slices.SortFunc(graves, func(a, b entity.Key) int { return entity.Compare(a.Partition, a.Row, b.Partition, b.Row) })
	k.Number(uint64(len(graves)))
	for _, key := range graves {
		k.Text(key.Partition)
		k.Text(key.Row)
		k.Time(t.graves[key])
	}
}
