package simulator

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Snapshot is a whole account as it was at one moment: what is stored, what the clock says, and where ids and chance have
// come to. What goes wrong (Chaos) is not in it.
type Snapshot struct {
	now    time.Time
	serial uint64
	chance rand.PCG

	tables     map[string]*table
	taken      map[string]time.Time
	properties []byte

	queues        map[string]*queue
	deletedQueues map[string]time.Time
	queueSerial   uint64

	containers        map[string]*blobContainer
	deletedContainers map[string]time.Time
	blobSerial        uint64
}

// Snapshot takes one. It costs a copy of the lists of all rows, messages and blobs, not of their content.
func (s *Simulator) Snapshot() *Snapshot {
	defer s.hold()()
	return &Snapshot{
		now: s.clock.now, serial: s.serial.Load(), chance: s.dice.source,
		tables: cloned(s.tables.tables, (*table).clone), taken: maps.Clone(s.tables.taken), properties: s.tables.properties,
		queues: cloned(s.queues.queues, (*queue).clone), deletedQueues: maps.Clone(s.queues.deleted), queueSerial: s.queues.serial,
		containers: cloned(s.blobs.containers, (*blobContainer).clone), deletedContainers: maps.Clone(s.blobs.deleted),
		blobSerial: s.blobs.serial,
	}
}

// Restore makes the account what it was when the snapshot was taken, of this account or of another with the same Options.
// Clients notice nothing. A snapshot can be restored any number of times.
func (s *Simulator) Restore(from *Snapshot) {
	defer s.hold()()
	s.clock.now = from.now
	s.serial.Store(from.serial)
	s.dice.source = from.chance
	s.tables.tables, s.tables.taken = cloned(from.tables, (*table).clone), maps.Clone(from.taken)
	s.tables.properties = from.properties
	s.queues.queues, s.queues.deleted = cloned(from.queues, (*queue).clone), maps.Clone(from.deletedQueues)
	s.queues.serial, s.queues.first = from.queueSerial, 0
	s.blobs.containers, s.blobs.deleted = cloned(from.containers, (*blobContainer).clone), maps.Clone(from.deletedContainers)
	s.blobs.serial = from.blobSerial
}

// hold waits until no request is under way and nobody looks, and returns what lets them go on.
func (s *Simulator) hold() (release func()) {
	all := [...]sync.Locker{&s.gate, &s.tables.mu, &s.queues.mu, &s.blobs.mu, &s.dice.mu, &s.clock.mu}
	for _, l := range all {
		l.Lock()
	}
	return func() {
		for _, l := range all {
			l.Unlock()
		}
	}
}

// GetFirst makes the next gets of messages hand out first the one that is at the given place among those visible; the
// service promises no order. Restore makes it the one that has been visible longest again, which is place 0.
func (s *Simulator) GetFirst(place int) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	s.queues.first = place
}

// cloned copies a map and what it points to.
func cloned[T any](from map[string]*T, clone func(*T) *T) map[string]*T {
	to := make(map[string]*T, len(from))
	for name, value := range from {
		to[name] = clone(value)
	}
	return to
}

// clone copies the table. Rows do not change once they are stored, so they are shared.
func (t *table) clone() *table {
	c := &table{name: t.name, policies: t.policies, graves: maps.Clone(t.graves)}
	c.rows.count = t.rows.count
	c.rows.leaves = make([][]*entity, len(t.rows.leaves))
	for i, leaf := range t.rows.leaves {
		c.rows.leaves[i] = slices.Clone(leaf)
	}
	for partition, m := range t.meters {
		if c.meters == nil {
			c.meters = map[string]*meter{}
		}
		copied := *m
		c.meters[partition] = &copied
	}
	return c
}

// clone copies the queue and its messages, which change in their places.
func (q *queue) clone() *queue {
	c := &queue{metadata: q.metadata, policies: q.policies, puts: maps.Clone(q.puts),
		byID: make(map[string]*queueMessage, len(q.byID)), byTime: make(queueHeap, len(q.byTime))}
	for i, m := range q.byTime {
		copied := *m
		c.byTime[i] = &copied
		c.byID[m.id] = &copied
	}
	return c
}

// clone copies the container and its blobs, which change in their places; their contents are shared.
func (k *blobContainer) clone() *blobContainer {
	c := &blobContainer{metadata: k.metadata, policies: k.policies, etag: k.etag, modified: k.modified,
		blobs: cloned(k.blobs, (*storedBlob).clone), names: slices.Clone(k.names), graves: maps.Clone(k.graves)}
	return c
}

func (b *storedBlob) clone() *storedBlob {
	c := *b
	c.staged = maps.Clone(b.staged)
	// Cut off, so that both may grow: neither writes where the other does.
	c.appended = slices.Clip(b.appended)
	return &c
}
