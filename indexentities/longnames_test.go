package indexentities_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestLongBlobNames: the service counts the UTF-16 units of a list's name. A value whose list could not exist is refused before a write,
// and an entity that has one all the same, from before the index was attached, can be changed and deleted.
func TestLongBlobNames(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{option: inBlobs}).open(t, s)
	p := harness.Must[*process](t)(w.start(s))
	for _, char := range []string{"é", "😊"} {
		units := len(utf16.Encode([]rune(char)))
		in := func(department string) *employee {
			return &employee{Department: department, ID: 1, LastName: strings.Repeat(char, 512/units)}
		}
		longest := 1024 - len("lastname/") - len("/") - 512
		fits, exceeds := in(strings.Repeat(char, longest/units)), in(strings.Repeat(char, longest/units+1))
		harness.Check(t, p.repo.Insert(ctx, fits))
		if keys, err := p.index.In(fits.Department).Keys(ctx, compoundkey.String(fits.LastName)); err != nil || len(keys) != 1 {
			t.Errorf("%s: %v, %v", char, keys, err)
		}
		harness.Check(t, p.repo.Delete(ctx, fits))
		harness.WantKind(t, p.repo.Insert(ctx, exceeds), tables.ErrTooLarge)
		for _, remove := range []func() error{
			func() error {
				_, err := p.repo.Update(ctx, keyOf(exceeds), func(e *employee) error { e.LastName = "Jones"; return nil })
				return err
			},
			func() error { return p.repo.DeleteUnconditional(ctx, keyOf(exceeds)) },
		} {
			raw := harness.Bag(exceeds.Department, keyOf(exceeds).Row, "")
			raw.Set("LastName", tables.String(exceeds.LastName))
			raw.Set("Department", tables.String(exceeds.Department))
			raw.Set("ID", tables.Int32(1))
			harness.Check(t, p.account.Table(w.table).Entities().Upsert(ctx, raw), remove())
		}
	}
	worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(p.queue, nil, nil))
	harness.Must[int](t)(worker.Drain(ctx))
	if n := harness.Must[int](t)(p.queue.Poison().Length(ctx)); n != 0 {
		t.Errorf("%d messages are poisoned", n)
	}
}
