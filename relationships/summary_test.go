package relationships_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// item is a line of an order, in the tenant's partition.
type item struct {
	tables.Meta
	Order  string
	Number int
	Cents  int64
	Free   bool
}

// itemsIn is a repository of items with a summary of each order.
func itemsIn(t testing.TB, s *storagetest.Service) (*patterns.Repository[item], *relationships.Summary[item]) {
	t.Helper()
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	total := relationships.NewSummary("total", func(v *item) (int64, bool) { return v.Cents, !v.Free }, &relationships.SummaryOptions[item]{
		Group: func(v *item) string { return v.Order },
		Rows:  func(order string) compoundkey.Span { return compoundkey.Starting("item", compoundkey.String(order)) },
	})
	repo := assert.Must[*patterns.Repository[item]](t)(patterns.NewRepository(account.Table(s.TableName(t)), patterns.Schema[item]{Prefix: "item",
		Key: func(v *item) tables.Key {
			return tables.Key{Partition: "contoso", Row: compoundkey.Join("item", compoundkey.String(v.Order), compoundkey.Int(v.Number, 3))}
		}}, total))
	assert.Check(t, repo.Table().Create(t.Context()))
	return repo, total
}

// wantTotal fails unless an order has this summary.
func wantTotal(t testing.TB, total *relationships.Summary[item], order string, want relationships.Aggregate) {
	t.Helper()
	if got, err := total.Get(t.Context(), "contoso", order); err != nil || got != want {
		t.Errorf("order %q has %+v, %v; want %+v", order, got, err, want)
	}
}

// TestSummary: number, sum and extremes follow every kind of change, also where the least and the greatest value go.
func TestSummary(t *testing.T) {
	ctx := t.Context()
	repo, total := itemsIn(t, storagetest.Open(t))
	wantTotal(t, total, "7", relationships.Aggregate{})
	x := repo.Table().NewTransaction()
	for n, cents := range []int64{500, -20, 300} {
		repo.StageInsert(x, &item{Order: "7", Number: n, Cents: cents})
	}
	repo.StageInsert(x, &item{Order: "7", Number: 3, Cents: 9000, Free: true})
	repo.StageInsert(x, &item{Order: "", Number: 1, Cents: 1})
	_, err := x.Commit(ctx)
	assert.Check(t, err)
	wantTotal(t, total, "7", relationships.Aggregate{Count: 3, Sum: 780, Min: -20, Max: 500})
	wantTotal(t, total, "", relationships.Aggregate{Count: 1, Sum: 1, Min: 1, Max: 1})
	var groups []string
	for g, err := range total.All(ctx, "contoso") {
		assert.Check(t, err)
		groups = append(groups, fmt.Sprint(g.Group, g.Aggregate))
	}
	if want := []string{"{1 1 1 1}", "7{3 780 -20 500}"}; !slices.Equal(groups, want) {
		t.Errorf("groups are %q, want %q", groups, want)
	}
	key := func(n int) tables.Key { return repo.KeyOf(&item{Order: "7", Number: n}) }
	assert.Check(t, repo.DeleteUnconditional(ctx, key(1)))
	wantTotal(t, total, "7", relationships.Aggregate{Count: 2, Sum: 800, Min: 300, Max: 500})
	_, err = repo.Update(ctx, key(0), func(v *item) error { v.Cents = 200; return nil })
	assert.Check(t, err)
	wantTotal(t, total, "7", relationships.Aggregate{Count: 2, Sum: 500, Min: 200, Max: 300})
	_, err = repo.Update(ctx, key(3), func(v *item) error { v.Free = false; return nil })
	assert.Check(t, err)
	wantTotal(t, total, "7", relationships.Aggregate{Count: 3, Sum: 9500, Min: 200, Max: 9000})
	for _, n := range []int{0, 2, 3} {
		assert.Check(t, repo.DeleteUnconditional(ctx, key(n)))
	}
	wantTotal(t, total, "7", relationships.Aggregate{})
}

// TestSummaryOverflow: a sum that a number cannot hold is refused, and nothing is written; a sum that only passes through one is not.
func TestSummaryOverflow(t *testing.T) {
	ctx := t.Context()
	repo, total := itemsIn(t, storagetest.Open(t))
	assert.Check(t, repo.Insert(ctx, &item{Order: "7", Number: 1, Cents: math.MaxInt64}))
	err := repo.Insert(ctx, &item{Order: "7", Number: 2, Cents: 1})
	var failed *tables.Error
	if !errors.Is(err, tables.ErrTooLarge) || !errors.As(err, &failed) || failed.Pattern != "total" {
		t.Fatalf("a sum of more than 64 bits: %v", err)
	}
	if _, err := total.Get(ctx, "contoso", strings.Repeat("x", 600)); !errors.Is(err, tables.ErrInvalid) && err == nil {
		t.Error("a group whose key cannot be has an aggregate")
	}
	x := repo.Table().NewTransaction()
	repo.StageInsert(x, &item{Order: "7", Number: 2, Cents: 5})
	repo.StageInsert(x, &item{Order: "7", Number: 3, Cents: -6})
	_, err = x.Commit(ctx)
	assert.Check(t, err)
	wantTotal(t, total, "7", relationships.Aggregate{Count: 3, Sum: math.MaxInt64 - 1, Min: -6, Max: math.MaxInt64})
}

// TestSummaryWrong: what other programs have left is found by Recount, and by a change that cannot be right otherwise.
func TestSummaryWrong(t *testing.T) {
	ctx := t.Context()
	repo, total := itemsIn(t, storagetest.Open(t))
	first := &item{Order: "7", Number: 1, Cents: 5}
	assert.Check(t, repo.Insert(ctx, first))
	// overwrite is another program, which does not know what the row is.
	overwrite := func(properties string) {
		t.Helper()
		_, err := repo.Table().Client().UpsertEntity(ctx, []byte(`{"PartitionKey":"contoso","RowKey":"total_7",`+properties+`}`), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		assert.Check(t, err)
	}
	for _, wrong := range []relationships.Aggregate{{Count: 2, Sum: 1, Min: 3, Max: 2}, {Count: 0, Sum: 1}, {Count: -1}, {Count: 4, Sum: 9, Min: 2, Max: 3}} {
		var properties []string
		for name, v := range map[string]int64{"Count": wrong.Count, "Sum": wrong.Sum, "Min": wrong.Min, "Max": wrong.Max} {
			properties = append(properties, fmt.Sprintf(`%q:"%d","%s@odata.type":"Edm.Int64"`, name, v, name))
		}
		overwrite(strings.Join(properties, ","))
		is, was, err := total.Recount(ctx, "contoso", "7")
		if err != nil || (is != relationships.Aggregate{Count: 1, Sum: 5, Min: 5, Max: 5}) || (was != nil) != (wrong.Count == 4) {
			t.Errorf("%+v: added up %+v after %+v, %v", wrong, is, was, err)
		}
	}
	overwrite(`"Count":"many"`)
	for _, err := range total.All(ctx, "contoso") {
		harness.WantKind(t, err, tables.ErrGarbled)
	}
	wantTotal(t, total, "7", relationships.Aggregate{Count: 1, Sum: 5, Min: 5, Max: 5})
	first.Cents = 6
	assert.Check(t, repo.Replace(ctx, first))
	wantTotal(t, total, "7", relationships.Aggregate{Count: 1, Sum: 6, Min: 6, Max: 6})
	is, was, err := total.Recount(ctx, "contoso", "none")
	if err != nil || is != (relationships.Aggregate{}) || was != nil {
		t.Errorf("of nothing %+v after %+v, %v", is, was, err)
	}
}

// TestSummaryRefuses: wrong declarations and calls.
func TestSummaryRefuses(t *testing.T) {
	ctx := t.Context()
	repo, _ := itemsIn(t, storagetest.Open(t))
	value := func(v *item) (int64, bool) { return v.Cents, true }
	attach := func(total *relationships.Summary[item]) error {
		_, err := patterns.NewRepository(repo.Table(), patterns.Schema[item]{Key: repo.KeyOf, Prefix: "item"}, total)
		return err
	}
	rows := func(string) compoundkey.Span { return compoundkey.All() }
	plain := relationships.NewSummary("plain", value, nil)
	assert.Check(t, attach(plain))
	_, get := plain.Get(ctx, "contoso", "7")
	var all error
	for _, err := range plain.All(ctx, "contoso") {
		all = err
	}
	_, _, recount := relationships.NewSummary("total", value, nil).Recount(ctx, "contoso", "")
	for want, err := range map[string]error{
		"value is nil":  attach(relationships.NewSummary[item]("total", nil, nil)),
		"without Group": attach(relationships.NewSummary("total", value, &relationships.SummaryOptions[item]{Rows: rows})),
		"Schema.Prefix": attach(relationships.NewSummary("item", value, nil)),
		"the group is":  get,
		"use Get":       all,
		"NewRepository": recount,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSummaryOfTransactions: entities that a transaction writes without a change of their value count, also where the group is added up again.
func TestSummaryOfTransactions(t *testing.T) {
	repo, total := itemsIn(t, storagetest.Simulator(t, nil))
	order := 0
	rapid.Check(t, func(r *rapid.T) {
		order++
		name, stored := fmt.Sprint(order), map[int]*item{}
		for range rapid.IntRange(1, 6).Draw(r, "transactions") {
			x := repo.Table().NewTransaction()
			next := maps.Clone(stored)
			for n := range 4 {
				v := next[n]
				switch what := rapid.SampledFrom([]string{"nothing", "write", "same", "delete"}).Draw(r, "what"); {
				case v == nil && what == "write":
					next[n] = &item{Order: name, Number: n, Cents: rapid.Int64Range(-2, 2).Draw(r, "cents")}
					repo.StageInsert(x, next[n])
				case v == nil || what == "nothing":
				case what == "delete":
					repo.StageDelete(x, v)
					delete(next, n)
				case what == "write":
					v.Cents = rapid.Int64Range(-2, 2).Draw(r, "cents")
					repo.StageReplace(x, v)
				case what == "same":
					repo.StageReplace(x, v)
				}
			}
			if _, err := x.Commit(t.Context()); err != nil && !errors.Is(err, tables.ErrInvalid) { // an empty transaction
				r.Fatal(err)
			}
			stored = next
			var want relationships.Aggregate
			for _, v := range stored {
				if want.Count == 0 {
					want.Min, want.Max = v.Cents, v.Cents
				}
				want = relationships.Aggregate{Count: want.Count + 1, Sum: want.Sum + v.Cents, Min: min(want.Min, v.Cents), Max: max(want.Max, v.Cents)}
			}
			if got, err := total.Get(t.Context(), "contoso", name); err != nil || got != want {
				r.Fatalf("%d lines give %+v, %v; want %+v", len(stored), got, err, want)
			}
		}
	})
}

// TestSummaryFollows: any sequence of changes leaves what the values say.
func TestSummaryFollows(t *testing.T) {
	repo, total := itemsIn(t, storagetest.Simulator(t, nil))
	order := 0
	rapid.Check(t, func(r *rapid.T) {
		order++
		stored, name := map[int]int64{}, fmt.Sprint(order)
		for range rapid.IntRange(1, 12).Draw(r, "changes") {
			n, cents := rapid.IntRange(0, 3).Draw(r, "line"), rapid.Int64Range(-2, 2).Draw(r, "cents")
			if rapid.Bool().Draw(r, "delete") {
				if err := repo.DeleteUnconditional(t.Context(), repo.KeyOf(&item{Order: name, Number: n})); err != nil && !errors.Is(err, tables.ErrNotFound) {
					r.Fatal(err)
				}
				delete(stored, n)
			} else {
				if err := repo.Upsert(t.Context(), &item{Order: name, Number: n, Cents: cents}); err != nil {
					r.Fatal(err)
				}
				stored[n] = cents
			}
			want := relationships.Aggregate{Count: int64(len(stored))}
			for _, v := range stored {
				want.Sum += v
			}
			if len(stored) > 0 {
				values := slices.Collect(maps.Values(stored))
				want.Min, want.Max = slices.Min(values), slices.Max(values)
			}
			if got, err := total.Get(t.Context(), "contoso", name); err != nil || got != want {
				r.Fatalf("%v give %+v, %v; want %+v", stored, got, err, want)
			}
		}
	})
}
