package simulator

import (
	"crypto/sha256"
	"math/rand/v2"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/blobs"
	"github.com/tablepatterns/tablepatterns/internal/simulator/queues"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables"
)

// Snapshot is a whole account as it was at one moment: what is stored, what the clock says, and where ids and chance have
// come to. What goes wrong (Chaos) is not in it.
type Snapshot struct {
	now    time.Time
	serial uint64
	chance rand.PCG
	tables *tables.State
	queues *queues.State
	blobs  *blobs.State
}

// Snapshot takes one. It costs a copy of the lists of all rows, messages and blobs, not of their content.
func (s *Simulator) Snapshot() *Snapshot {
	s.gate.Lock() // until no request is under way
	defer s.gate.Unlock()
	return &Snapshot{now: s.clock.Now(), serial: s.serial.Load(), chance: s.dice.State(),
		tables: s.tables.Snapshot(), queues: s.queues.Snapshot(), blobs: s.blobs.Snapshot()}
}

// Restore makes the account what it was when the snapshot was taken, of this account or of another with the same Options.
// Clients notice nothing. A snapshot can be restored any number of times.
func (s *Simulator) Restore(from *Snapshot) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.clock.Restore(from.now)
	s.serial.Store(from.serial)
	s.dice.Restore(from.chance)
	s.tables.Restore(from.tables)
	s.queues.Restore(from.queues)
	s.blobs.Restore(from.blobs)
}

// Key is equal for two snapshots of an Orderless account if no request can tell them apart, now or later; it differs if one
// can. It does not look at how the account came to its state, nor at chance.
func (s *Snapshot) Key() [sha256.Size]byte {
	var w snapshot.Writer
	w.Time(s.now)
	w.Number(s.serial)
	s.tables.Fingerprint(&w, s.now)
	s.queues.Fingerprint(&w, s.now)
	s.blobs.Fingerprint(&w, s.now)
	return w.Sum()
}

// Now is the account's time at the snapshot.
func (s *Snapshot) Now() time.Time { return s.now }

// Waiting counts the messages of the queues for which of is true: those that are visible, and all. next is when the first of
// the hidden ones becomes visible, last is when all of them are.
func (s *Snapshot) Waiting(of func(queue string) bool) (visible, all int, next, last time.Time) {
	return s.queues.Waiting(s.now, of)
}

// GetFirst makes the next gets of messages hand out first the one that is at the given place among those visible; the
// service promises no order. Restore makes it the one that has been visible longest again, which is place 0.
func (s *Simulator) GetFirst(place int) { s.queues.GetFirst(place) }
