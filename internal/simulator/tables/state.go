package simulator

import (
	"maps"
	"slices"
	"time"
)

// tablesState is what is stored in the service at one moment.
type tablesState struct {
	tables     map[string]*table    // by name in lower case
	taken      map[string]time.Time // names of dropped tables, until when
	properties []byte               // of the service, as they were set
}

func (s *tablesState) clone() *tablesState {
	return &tablesState{Cloned(s.tables, (*table).clone), maps.Clone(s.taken), s.properties}
}

// Snapshot copies what is stored.
func (s *tableService) Snapshot() *tablesState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.clone()
}

// Restore makes what is stored what it was at a snapshot.
func (s *tableService) Restore(from *tablesState) {
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

// Fingerprint writes what requests can tell of the state, at a time.
func (s *tablesState) Fingerprint(k *fingerprint, now time.Time) {
	k.Bytes(s.properties)
	k.Times(s.taken)
	EachSorted(k, s.tables, func(_ string, t *table) { t.fingerprint(k, now) })
}

func (t *table) fingerprint(k *fingerprint, now time.Time) {
	k.Text(t.name)
	t.policies.Fingerprint(k)
	t.rows.Fingerprint(k)
	EachSorted(k, t.meters, func(_ string, m *meter) {
		k.Number(uint64(m.left * 1e6))
		k.Time(m.at)
	})
	var graves []rowKey
	for key, at := range t.graves {
		// An older one is no hindrance to any stamp to come.
		if !at.Before(now) && t.rows.get(key.pk, key.rk) == nil {
			graves = append(graves, key)
		}
	}
	slices.SortFunc(graves, func(a, b rowKey) int { return compareKeys(a.pk, a.rk, b.pk, b.rk) })
	k.Number(uint64(len(graves)))
	for _, key := range graves {
		k.Text(key.pk)
		k.Text(key.rk)
		k.Time(t.graves[key])
	}
}
