package encryption_test

import (
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestFailuresDoTheSameWork: whichever check fails, the row is decrypted to its end, so that neither requests nor time tell which.
// Time itself is not measured but counted, in allocations, of which each step has its own; a row that is right is the measure. A data
// key that is nowhere is the one thing that is asked for.
func TestFailuresDoTheSameWork(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := worldOn(t, s)
	counted, counter := harness.CountedService(s)
	vault := &counting{KeyWrapper: w.wrapper}
	w.registry = assert.Must[*encryption.Registry](t)(encryption.NewRegistry(open(t, counted).Table(w.keys.Name()), vault, nil))
	a := loaderIn(t, w, "Employees", nil)
	p := a.stored(t, aKey, text("A", "a secret of some length"), text("B", "another secret of some length"), text("P", "plain"))
	other := a.stored(t, tables.Key{Partition: "Sales", Row: "empid_000224"}, text("A", "a secret of some length"), text("B", "another secret of some length"), text("P", "plain"))
	flip := func(name string, at int) tables.Properties {
		b, _ := p.Get(name).Bytes()
		b = slices.Clone(b)
		b[(at+len(b))%len(b)] ^= 1
		return with(p, name, tables.Binary(b))
	}
	changes := map[string]tables.Properties{"all of another row": other, "the seal of another row": with(p, encryption.SealProperty, other.Get(encryption.SealProperty)),
		"two values exchanged": with(with(p, "A", p.Get("B")), "B", p.Get("A"))}
	for what, at := range map[string]int{"magic": 0, "format version": 3, "kind": 4, "type": 5, "place": 7, "data key": 10, "salt": 30, "commitment": 60, "ciphertext": 90, "tag": -1} {
		changes["a value's "+what] = flip("A", at)
		changes["the last value's "+what] = flip("B", at)
	}
	for what, at := range map[string]int{"magic": 0, "format version": 3, "kind": 4, "salt": 30, "commitment": 60, "number of names": 89, "a name's length": 91, "a name": 92, "MAC": -1} {
		changes["the seal's "+what] = flip(encryption.SealProperty, at)
	}
	work := func(p tables.Properties) float64 {
		return testing.AllocsPerRun(10, func() { _, _ = a.Load(background(), allOf(aKey), p) })
	}
	whole := work(p)
	for what, changed := range changes {
		_, err := a.Load(t.Context(), allOf(aKey), changed)
		refusedBy(t, err, what)
		counter.Reset()
		vault.unwrapped.Store(0)
		if got := work(changed); got < 0.85*whole || got > 1.15*whole || counter.Count() != 0 || vault.unwrapped.Load() != 0 {
			t.Errorf("%s: %.0f allocations, %.0f for what is right; %d requests, %d keys unwrapped", what, got, whole, counter.Count(), vault.unwrapped.Load())
		}
	}
	t.Logf("%d failures; what is right takes %.0f allocations", len(changes), whole)
	counter.Reset()
	_, err := a.Load(t.Context(), allOf(aKey), flip(encryption.SealProperty, 10))
	refusedBy(t, err, "the seal's data key")
	if counter.Count() != 1 || vault.unwrapped.Load() != 0 {
		t.Errorf("a data key that is nowhere: %d requests, %d keys unwrapped", counter.Count(), vault.unwrapped.Load())
	}
}
