package queues

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// State is the stored state of the service at one moment.
type State struct {
	queues  map[string]*queue
	deleted map[string]time.Time // when each deleted queue was deleted, by name
	serial  uint64
}

// Snapshot copies the stored state.
func (s *Service) Snapshot() *State {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return &State{snapshot.Cloned(s.queues, (*queue).clone), maps.Clone(s.deleted), s.Serial}
}

// Restore returns the service to the state of a snapshot.
func (s *Service) Restore(from *State) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.queues, s.deleted, s.Serial, s.first = snapshot.Cloned(from.queues, (*queue).clone), maps.Clone(from.deleted), from.serial, 0
}

// GetFirst makes each following get of messages return first the visible message at this position.
func (s *Service) GetFirst(place int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.first = place
}

// clone copies the queue and its messages, because messages are changed in place.
func (q *queue) clone() *queue {
	c := &queue{metadata: q.metadata, policies: q.policies, puts: maps.Clone(q.puts),
		byID: make(map[string]*queued, len(q.byID)), byTime: make(messageHeap, len(q.byTime))}
	for i, m := range q.byTime {
		copied := *m
		c.byTime[i] = &copied
		c.byID[m.id] = &copied
	}
	return c
}

// Fingerprint writes the parts of the state that requests can observe at a time.
func (s *State) Fingerprint(k *snapshot.Writer, now time.Time) {
	k.Times(s.deleted)
	k.Number(s.serial)
	snapshot.EachSorted(k, s.queues, func(_ string, q *queue) { q.fingerprint(k, now) })
}

func (q *queue) fingerprint(k *snapshot.Writer, now time.Time) {
	k.Texts(q.metadata)
	q.policies.Fingerprint(k)
	messages := q.those(now, func(*queued) bool { return true })
	slices.SortFunc(messages, func(a, b *queued) int { return strings.Compare(a.id, b.id) })
	k.Number(uint64(len(messages)))
	for _, m := range messages {
		k.Text(m.id)
		k.Number(m.number)
		k.Text(m.text)
		k.Time(m.inserted)
		k.Time(m.expires)
		k.Time(m.visible)
		k.Number(uint64(m.handed))
		k.Number(m.receipts)
	}
	snapshot.EachSorted(k, q.puts, func(_ string, n uint64) { k.Number(n) })
}

// Waiting returns the number of visible messages and of all messages in the queues for which of returns true, the time next
// at which the first hidden message becomes visible, and the time last at which all are visible.
func (s *State) Waiting(now time.Time, of func(queue string) bool) (visible, all int, next, last time.Time) {
	for name, q := range s.queues {
		if !of(name) {
			continue
		}
		for _, m := range q.byTime {
			if !now.Before(m.expires) {
				continue
			}
			all++
			if !now.Before(m.visible) {
				visible++
			} else if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
			if m.visible.After(last) {
				last = m.visible
			}
		}
	}
	return visible, all, next, last
}
