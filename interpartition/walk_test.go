package interpartition_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/race"
)

// These tests walk through every order of all storage calls in small worlds of the real code: whatever dies and is held up
// where, in each quiet end the index agrees with the entities. The protocol that they check is that of eventual.Queue.Run,
// eventual.Worker and engine.Reconcile; change it, and they tell whether it still holds.

// walkSize is how much may happen in a walk.
type walkSize struct {
	workers, crashes, pauses int
	pause                    time.Duration
}

// longer than a message's invisibility: whoever held one when it began has lost it.
const longPause = walkVisibility + time.Second

// shortPause is one in which a holder should have renewed, and still can: two of them in a row, and it has lost the message.
const shortPause = walkVisibility * 6 / 10

var (
	// largest is what two writers can meet: two deaths, two workers, and one pause that takes messages from their holders.
	largest = walkSize{workers: 2, crashes: 2, pauses: 1, pause: longPause}
	middle  = walkSize{workers: 1, crashes: 1, pauses: 1, pause: longPause}
	small   = walkSize{workers: 1, crashes: 2}

	oneHeldUp = walkSize{workers: 1, pauses: 1, pause: longPause}
)

func (s walkSize) String() string {
	return fmt.Sprintf("%d workers, %d deaths, %d pauses of %v", s.workers, s.crashes, s.pauses, s.pause)
}

// one is a single entity with index key a.
var one = []*employee{with(1, "a")}

// The scenes of one entity and two concurrent writers.
var (
	sceneKeeps = walkScene{"both keep the key", one, [][]change{{moves(1, "a")}, {moves(1, "a")}}, []string{"1 a before", "1 a after"}}
	sceneMoves = walkScene{"two moves", one, [][]change{{moves(1, "b")}, {moves(1, "c")}}, []string{"1 a before", "1 b after", "1 c after"}}
	sceneGoes  = walkScene{"delete against move", one, [][]change{{goes(1)}, {moves(1, "b")}}, []string{"1 a before", "1 b after", ""}}
	sceneBack  = walkScene{"away and back", one, [][]change{{moves(1, "b")}, {moves(1, "a")}}, []string{"1 a before", "1 a after", "1 b after"}}
	sceneAlone = walkScene{"a single move", one, [][]change{{moves(1, "b")}}, []string{"1 a before", "1 b after"}}
	sceneTwice = walkScene{"one moves on", one, [][]change{{moves(1, "b")}, {moves(1, "c"), moves(1, "a")}},
		[]string{"1 a before", "1 a after", "1 b after", "1 c after"}}
	sceneAgain = walkScene{"deleted and inserted again", one, [][]change{{goes(1), comes(1, "a")}, {moves(1, "b")}},
		[]string{"1 a before", "1 b after", ""}}
)

// The scenes of two entities and one key.
var (
	// sceneHandOver: what is written late for the first must not touch the second's copy.
	sceneHandOver = walkScene{"one takes the key that another gives up", []*employee{with(1, "a"), with(2, "c")},
		[][]change{{moves(1, "b")}, {takes(2, "a", 1)}}, []string{"1 a before, 2 c before", "1 b after, 2 c before", "1 b after, 2 a after"}}
	sceneRace = walkScene{"two want a key", []*employee{with(1, "b"), with(2, "c")}, [][]change{{moves(1, "a")}, {moves(2, "a")}},
		[]string{"1 b before, 2 c before", "1 a after, 2 c before", "1 b before, 2 a after"}}
	sceneInserts = walkScene{"two are inserted with a key", nil, [][]change{{comes(1, "a")}, {comes(2, "a")}}, []string{"", "1 a before", "2 a before"}}
)

var (
	plain  = kind{}
	unique = kind{unique: true}
	async  = kind{async: true}
	both   = kind{async: true, unique: true}
)

// walk walks through a world.
func (w *walked) walk(t *testing.T, size walkSize) explore.Walk {
	t.Helper()
	w.workers = size.workers
	most := 1_000_000
	if w.repairs == beside {
		most = 10_000_000
	}
	return explore.Interleavings(t, explore.InterleavingCase{Name: w.name + ", " + w.kind.String(), Stage: w.stage,
		Crashes: size.crashes, Pauses: size.pauses, Pause: size.pause, MaxStates: most})
}

// walkConverges walks through worlds with all rules; every final state must be correct.
func walkConverges(t *testing.T, size walkSize, scenes []walkScene, kinds ...kind) {
	t.Helper()
	if harness.Shortened() {
		kinds = kinds[:1]
		if race.Enabled {
			scenes = scenes[:1]
		}
		t.Logf("short, or slowed down by the race detector: %v in place of %v, and %v only in %d scenes", small, size, kinds, len(scenes))
		size = small
	} else if !harness.Thorough() {
		t.Logf("not thorough: one of %d scenes, and one of %v", len(scenes), kinds)
		scenes, kinds = scenes[:1], kinds[:1]
	}
	for _, scene := range scenes {
		for _, k := range kinds {
			t.Run(scene.name+", "+k.String(), func(t *testing.T) {
				w := &walked{kind: k, walkScene: scene}
				w.walk(t, size).MustConverge(t)
				came, want := slices.Sorted(maps.Keys(w.came)), slices.Sorted(slices.Values(scene.ends))
				if size.crashes+size.pauses == 0 { // all writers come to their end
					want = slices.DeleteFunc(want, func(end string) bool { return !w.came[end] })
				}
				if len(came) == 0 || !slices.Equal(came, want) {
					t.Errorf("it comes to the ends %q, and there are %q", came, want)
				}
			})
		}
	}
}

// TestWalkConcurrentWriters: two writers of one entity, two workers, two deaths, and a pause in which messages come to others.
func TestWalkConcurrentWriters(t *testing.T) {
	size := middle
	if harness.Thorough() {
		size = largest // up to 400,000 states each
	}
	walkConverges(t, size, []walkScene{sceneKeeps, sceneGoes, sceneMoves, sceneBack}, plain)
}

// TestWalkConcurrentWriterKinds is TestWalkConcurrentWriters where the workers apply the effects, and where keys are reserved.
func TestWalkConcurrentWriterKinds(t *testing.T) {
	size := small
	if harness.Thorough() {
		size = middle
	}
	walkConverges(t, size, []walkScene{sceneKeeps, sceneMoves, sceneGoes, sceneBack}, async)
	walkConverges(t, size, []walkScene{sceneMoves, sceneGoes, sceneBack}, unique)
}

// TestWalkThreeChanges: a third change in the way of two.
func TestWalkThreeChanges(t *testing.T) {
	walkConverges(t, small, []walkScene{sceneTwice, sceneAgain}, plain, unique, async)
}

// TestWalkHandOver: two entities have a key one after another.
func TestWalkHandOver(t *testing.T) {
	size := small
	if harness.Thorough() {
		size = middle
	}
	walkConverges(t, size, []walkScene{sceneHandOver}, plain, unique, async, both)
}

// TestWalkUnique: of two that want a key at most one has it, and no reservation is left.
func TestWalkUnique(t *testing.T) {
	walkConverges(t, middle, []walkScene{sceneRace, sceneInserts}, unique, both)
}

// TestWalkRenewals: holders are held up, for so long that they should have renewed, or have lost their message.
func TestWalkRenewals(t *testing.T) {
	size := walkSize{workers: 1, pauses: 2, pause: shortPause}
	if !harness.Thorough() {
		size.pauses = 1 // with which the scene does not come to all of its ends
		(&walked{kind: plain, walkScene: sceneGoes}).walk(t, size).MustConverge(t)
		return
	}
	walkConverges(t, size, []walkScene{sceneGoes}, plain)
	size.crashes = 1
	walkConverges(t, size, []walkScene{sceneAlone}, plain, async)
}

// TestWalkWithoutARule: each of the three rules is needed, and a walk finds what happens without it.
func TestWalkWithoutARule(t *testing.T) {
	calm := walkSize{workers: 1}
	for name, c := range map[string]struct {
		waive lease.Rules
		scene walkScene
		kind  kind
		size  walkSize
	}{
		"late writes":            {lease.Expiry, sceneMoves, plain, oneHeldUp},
		"late writes, async":     {lease.Expiry, sceneMoves, async, oneHeldUp},
		"late writes, unique":    {lease.Expiry, sceneHandOver, unique, oneHeldUp},
		"no second look":         {lease.Reread, sceneMoves, plain, calm},
		"no second look, async":  {lease.Reread, sceneMoves, async, walkSize{workers: 2}},
		"no second look, unique": {lease.Reread, sceneMoves, unique, calm},
		"others' keys":           {lease.OwnKeys, sceneTwice, plain, calm},
		"others' keys, unique":   {lease.OwnKeys, sceneTwice, unique, calm},
	} {
		if !harness.Thorough() && c.kind != plain {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := &walked{kind: c.kind, walkScene: c.scene, waive: c.waive}
			found := w.walk(t, c.size)
			found.MustDiverge(t)
			t.Logf("%v", found.Divergence)
		})
	}
}

// TestWalkClaims: even what is sent after a lease has run out does not touch the copy of another entity.
func TestWalkClaims(t *testing.T) {
	kinds := []kind{plain, async}
	if !harness.Thorough() {
		kinds = kinds[:1]
	}
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			w := &walked{kind: k, walkScene: sceneHandOver, waive: lease.Expiry, lastKeeps: true, judge: takenIsKept}
			size := oneHeldUp
			if race.Enabled {
				// Who is woken by a timer draws random numbers unseen by the walk's seeding, which the detector takes for a race.
				size.pauses = 0
			}
			t.Logf("%+v", size)
			w.walk(t, size).MustConverge(t)
		})
	}
}
