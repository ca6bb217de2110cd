package indexentities_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGrowth: lists of many properties that outgrow a row of 1 MiB, and shrink again. All of it is read with one request, and
// each change writes the one row that it concerns.
func TestGrowth(t *testing.T) {
	// As many keys as a row has room for, less a few.
	for o, before := range map[option]int{inPartition: 34_605 - 10} {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Simulator(t, nil)
			w := (&world{option: o}).open(t, s)
			requests := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), requests)
			p := assert.Must[*process](t)(w.start(&counted))
			if err := w.fill(ctx, p, before); err != nil {
				t.Fatal(err)
			}
			var added []*employee
			for i := range 20 {
				e := with(2*i, "Jones") // between those that are there
				if err := p.repo.Insert(ctx, e); err != nil {
					t.Fatal(err)
				}
				added = append(added, e)
			}
			requests.Reset()
			want := rowsOf(assert.Must[[]tables.Key](t)(p.index.In("Sales").Keys(ctx, compoundkey.String("Jones"))))
			if n := requests.Count(); n != 1 || len(want) != before+20 || !slices.IsSorted(want) || want[2] != at(2).Row {
				t.Fatalf("%d requests for %d keys, the third of which is %q", n, len(want), want[2])
			}
			w.checkRows(t, p, "Jones", "Jones!0001")
			s.SetChaos(storagetest.Chaos{ShortPages: 0.5, EmptyPages: 0.3})
			if got := assert.Must[[]tables.Key](t)(p.index.In("Sales").Keys(ctx, compoundkey.String("Jones"))); !slices.Equal(rowsOf(got), want) {
				t.Fatalf("%d keys where pages are cut", len(got))
			}
			for v, err := range p.index.In("Sales").Values(ctx) {
				if err != nil || v.Count != len(want) {
					t.Errorf("value %+v, %v", v, err)
				}
			}
			s.SetChaos(storagetest.Chaos{})
			added[19].LastName = "Smith"
			if err := p.repo.Replace(ctx, added[19]); err != nil {
				t.Fatal(err)
			}
			for _, e := range added[10:19] {
				if err := p.repo.Delete(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			if got := assert.Must[[]tables.Key](t)(p.index.In("Sales").Keys(ctx, compoundkey.String("Jones"))); len(got) != before+10 {
				t.Errorf("%d keys are left", len(got))
			}
			w.checkRows(t, p, "Jones", "Smith")
		})
	}
}

// fill makes a list of the Joneses with odd ids, who are no entities.
func (w *world) fill(ctx context.Context, p *process, n int) error {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = at(2*i + 1).Row
	}
	partition, row, _ := strings.Cut(w.placeOf("Jones"), "\t")
	return p.lists.Entities().Insert(ctx, &tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: indexentities.EncodeIDs(ids)})
}

// checkRows checks which rows of lists there are, the first of which is full.
func (w *world) checkRows(t *testing.T, p *process, want ...string) {
	t.Helper()
	var rows []string
	for row, err := range p.lists.Entities().Query().AllowTableScan().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := row.Get("Count").Int(); !ok {
			continue
		}
		if len(rows) == 0 && row.Get("Keys14").IsNull() {
			t.Errorf("the first row has %d properties", len(row.Properties))
		}
		rows = append(rows, strings.TrimPrefix(row.Key.Row, "lastname_"))
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows of lists are %q, want %q", rows, want)
	}
}
