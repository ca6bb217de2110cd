package scatter_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRefusedEntityMovesNoHorizon: what no service stores is refused before any request, by every verb that could move the
// horizon: it never goes back, and the next n would begin behind it.
func TestRefusedEntityMovesNoHorizon(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := harness.CountedService(s)
	p := assert.Must[spread](t)(open(counted, newTable(t, s), numbered(10, 4), nil))
	large := func() *event { return &event{Number: 999_990, Text: strings.Repeat("x", 40_000)} }
	for name, verb := range map[string]func() error{
		"Insert":  func() error { return p.Insert(ctx, large()) },
		"Upsert":  func() error { return p.Upsert(ctx, large()) },
		"Prepare": func() error { return p.Prepare(ctx, large()) },
		"BulkNonAtomic": func() error {
			var all iter.Seq2[*event, error] = func(yield func(*event, error) bool) { yield(large(), nil) }
			_, err := p.BulkNonAtomic(ctx, all, nil)
			return err
		},
	} {
		err := verb()
		var e *tables.Error
		if n := counter.Reset(); n != 0 || !errors.Is(err, tables.ErrTooLarge) || !errors.As(err, &e) || e.Op != name {
			t.Errorf("%s: %d requests, %v", name, n, err)
		}
	}
	epoch := assert.Must[scatter.Epoch](t)(p.Resize(ctx, 8))
	assert.Check(t, p.Insert(ctx, &event{Number: 1}))
	assert.Equal(t, epoch.Number, 0, "nothing is stored: the epoch of the new n")
}
