package highvolumedelete_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestBetweenOverCutPages: pages that end anywhere, or are empty, change nothing of what is read, nor of its order; a loop that is
// left early leaves no goroutine behind.
func TestBetweenOverCutPages(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
	const days, users, each = 3, 4, 25
	fill(t, logins, days, users, each)
	from, to := noon.AddDate(0, 0, -5), noon.Add((each-3)*time.Second)
	for _, newest := range []bool{false, true} {
		for name, partitions := range map[string][]string{"scan": nil, "one": {"user0002"}, "some": {"user0003", "user0000", "nobody"}} {
			o := &highvolumedelete.ReadOptions[login]{Newest: newest, Partitions: partitions, Query: func(q tables.Query[login]) tables.Query[login] {
				if partitions == nil {
					q = q.AllowTableScan()
				}
				return q.PageSize(9)
			}}
			s.SetChaos(storagetest.Chaos{})
			want := assert.Must[[]string](t)(times(ctx, logins.Between(ctx, from, to, o)))
			if n := map[string]int{"scan": 4, "one": 1, "some": 2}[name] * (days*each - 3); len(want) != n {
				t.Errorf("%s: %d entities, want %d", name, len(want), n)
			}
			s.SetChaos(storagetest.Chaos{ShortPages: 0.5, EmptyPages: 0.3, PartitionPages: 0.5, NoNextRowKey: 0.3})
			got := assert.Must[[]string](t)(times(ctx, logins.Between(ctx, from, to, o)))
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) { // of one time, they have no order
				t.Errorf("newest %v, %s: %d entities over cut pages, %d over whole ones", newest, name, len(got), len(want))
			}
			var last time.Time
			n := 0
			for l, err := range logins.Between(ctx, from, to, o) {
				assert.Check(t, err)
				if n > 0 && (newest && l.At.After(last) || !newest && l.At.Before(last)) {
					t.Fatalf("newest %v, %s: %v comes after %v", newest, name, l.At, last)
				}
				if last, n = l.At, n+1; n == len(want)-2 {
					break
				}
			}
		}
	}
}
