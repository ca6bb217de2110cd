package relationships_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCountsOfPairs holds what docs/reference/costs.md says of pairs. Neither repository has patterns.
func TestRequestCountsOfPairs(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, inParent)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := assert.Must[*process](t)(w.start(&counted))
	photos := assert.Must[*patterns.Repository[photo]](t)(patterns.NewRepository(p.plain.Table(), patterns.Schema[photo]{Prefix: "photo",
		Key: func(v *photo) tables.Key { return photoKey(employeeKey(v.Site, v.ID)) }}))
	pair := assert.Must[*relationships.Pair[employee, photo]](t)(relationships.NewPair(p.plain, photos, photoKey))
	cost := func(want int, what string, err error) {
		t.Helper()
		assert.Check(t, err)
		if got := counter.Reset(); got != want {
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	counter.Reset()
	e, own := jones(), &photo{Site: "Sales", ID: 223, Data: []byte{1}}
	cost(1, "Insert of a pair", pair.Insert(ctx, e, own))
	_, _, err := pair.Get(ctx, e.Key())
	cost(2, "Get of a pair", err)
	cost(1, "Delete of a pair", pair.Delete(ctx, e, own))
}
