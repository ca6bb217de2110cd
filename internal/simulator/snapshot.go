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

// Snapshot is the state of an account at one moment: the stored data, the time, and the state of ids and random choices. It
// does not contain the Chaos.
type Snapshot struct {
	now    time.Time
	serial uint64
	chance rand.PCG
	tables *tables.State
	queues *queues.State
	blobs  *blobs.State
}

// Snapshot takes a snapshot. It copies the lists of all rows, messages and blobs, but not their contents.
func (s *Simulator) Snapshot() *Snapshot {
	s.gate.Lock() // waits until no request is under way
	defer s.gate.Unlock()
	return &Snapshot{now: s.clock.Now(), serial: s.serial.Load(), chance: s.dice.State(),
		tables: s.tables.Snapshot(), queues: s.queues.Snapshot(), blobs: s.blobs.Snapshot()}
}

// Restore returns the account to the state of a snapshot, taken of this account or of another with the same Options. Clients
// do not notice. A snapshot can be restored any number of times.
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

// Key is equal for two snapshots of an account whose clock stands if and only if no later requests can distinguish
// them. The history of the account and the state of the random choices do not affect the key.
func (s *Snapshot) Key() [sha256.Size]byte {
	var w snapshot.Writer
	w.Time(s.now)
	w.Number(s.serial)
	s.tables.Fingerprint(&w, s.now)
	s.queues.Fingerprint(&w, s.now)
	s.blobs.Fingerprint(&w, s.now)
	return w.Sum()
}

// Now returns the account's time at the snapshot.
func (s *Snapshot) Now() time.Time { return s.now }

// Waiting returns the number of visible messages and of all messages in the queues for which of returns true, the time next
// at which the first hidden message becomes visible, and the time last at which all are visible.
func (s *Snapshot) Waiting(of func(queue string) bool) (visible, all int, next, last time.Time) {
	return s.queues.Waiting(s.now, of)
}

// GetFirst makes each following get of messages return first the visible message at this position, counted from the one that
// has been visible longest (0). The service promises no order. Restore resets the position to 0.
func (s *Simulator) GetFirst(place int) { s.queues.GetFirst(place) }
