package intrapartition_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// visit is an entity that has properties in common with others.
type visit struct {
	tables.Meta
	PartitionKey, RowKey string
	City                 string
	Number               int
	At                   time.Time `table:",omitzero"`
	Tags                 []string  `table:",json"`
}

func rowsOf(t *testing.T, all iter.Seq2[*visit, error]) (rows []string) {
	t.Helper()
	for v, err := range all {
		assert.Check(t, err)
		rows = append(rows, v.RowKey)
	}
	return rows
}

// TestSharedKeys: several entities of a partition have a key, and All yields them in the order of their row keys, whatever is written.
func TestSharedKeys(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	byCity := intrapartition.NewIndex("city", func(v *visit) compoundkey.Folded { return compoundkey.Folded(v.City) }, nil)
	byPair := intrapartition.NewIndex("pair", func(v *visit) compoundkey.Part {
		if v.Number == 0 {
			return compoundkey.Of(v.City)
		}
		return compoundkey.Tuple(compoundkey.String(v.City), compoundkey.Of(v.Number))
	}, &intrapartition.Options{Project: []string{"City"}})
	byNumber := intrapartition.NewIndex("number", func(v *visit) int { return v.Number }, nil)
	byTime := intrapartition.NewIndex("at", func(v *visit) compoundkey.Newest { return compoundkey.Newest(v.At) }, nil)
	byTag := intrapartition.NewMulti("tag", func(v *visit) []string { return v.Tags }, nil)
	visits := assert.Must[*patterns.Repository[visit]](t)(patterns.NewRepository(account.Table(s.TableName(t)), patterns.Schema[visit]{Prefix: "v"},
		byCity, byPair, byNumber, byTime, byTag))
	assert.Check(t, visits.Table().Create(ctx))
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, v := range []*visit{
		{RowKey: "v_3", City: "Rome", Tags: []string{"a", "b", "", "a"}, At: day},
		{RowKey: "v_10", City: "ROME", Number: -1, Tags: []string{"b"}, At: day.Add(time.Hour)},
		{RowKey: "v_1", City: "Romeo", Number: 5},
		{RowKey: "v_2", City: "Rome", Number: 5, At: day},
		{RowKey: "v_4"},
	} {
		v.PartitionKey = "p"
		if v.RowKey == "v_4" {
			v.Number = 7
			v.City = "-"
			assert.Check(t, visits.Insert(ctx, v))
			v.City = "" // from here on it is not in the index of cities
			v.Number = -7
			assert.Check(t, visits.Replace(ctx, v))
			continue
		}
		assert.Check(t, visits.Insert(ctx, v))
	}
	wantRows := func(what string, got []string, want string) {
		t.Helper()
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", what, got, want)
		}
	}
	in, pairs := byCity.In("p"), byPair.In("p")
	wantRows("All", rowsOf(t, in.All(ctx, "rome")), "v_10 v_2 v_3")
	wantRows("All of another partition", rowsOf(t, byCity.In("q").All(ctx, "rome")), "")
	wantRows("Range", rowsOf(t, in.Range(ctx)), "v_10 v_2 v_3 v_1")
	wantRows("a prefix", rowsOf(t, in.Range(ctx, compoundkey.Prefix(compoundkey.Folded("ROMEO")))), "v_1")
	wantRows("the beginning of a tuple", rowsOf(t, pairs.All(ctx, compoundkey.Of("Rome"))), "v_3")
	wantRows("what begins with it", rowsOf(t, pairs.Range(ctx, compoundkey.Exactly(compoundkey.Of("Rome")))), "v_2 v_3")
	wantRows("numbers", rowsOf(t, byNumber.In("p").Range(ctx)), "v_4 v_10 v_3 v_1 v_2")
	wantRows("numbers from -1 to 0", rowsOf(t, byNumber.In("p").Range(ctx, compoundkey.AtLeast(-1), compoundkey.Below(1))), "v_10 v_3")
	wantRows("zero", rowsOf(t, byNumber.In("p").All(ctx, 0)), "v_3")
	wantRows("newest first", rowsOf(t, byTime.In("p").Range(ctx)), "v_10 v_2 v_3")
	wantRows("a tag", rowsOf(t, byTag.In("p").All(ctx, "b")), "v_10 v_3")
	wantRows("all tags", rowsOf(t, byTag.In("p").Range(ctx)), "v_3 v_10 v_3")
	wantRows("the query of all partitions", rowsOf(t, byTag.Query(compoundkey.Exactly("a")).AllowTableScan().All(ctx)), "v_3")

	assert.Check(t, visits.Delete(ctx, slices.Collect(firsts(in.All(ctx, "rome")))[0]))
	wantRows("All after a delete", rowsOf(t, in.All(ctx, "rome")), "v_2 v_3")
	assert.Check(t, harness.Clean(ctx, visits.Verify, nil))
	for what, err := range map[string]error{"All of no key": lastError(in.All(ctx, "")), "All of a long key": lastError(in.All(ctx, compoundkey.Folded(strings.Repeat("x", 600))))} {
		if harness.WantKind(t, err, tables.ErrInvalid); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
	long := &visit{PartitionKey: "p", RowKey: "v_5", City: strings.Repeat("x", 505)}
	assert.ErrorContains(t, harness.WantKind(t, visits.Insert(ctx, long), tables.ErrInvalid), "appends the entity's row key to the index key", "a key with no room for the entity's")
	fresh := intrapartition.NewIndex("city", func(v *visit) string { return v.City }, nil)
	harness.WantKind(t, lastError(fresh.In("p").All(context.Background(), "x")), tables.ErrWiring)
}

func firsts[V any](all iter.Seq2[V, error]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v := range all {
			if !yield(v) {
				return
			}
		}
	}
}

func lastError[V any](all iter.Seq2[V, error]) (last error) {
	for _, err := range all {
		last = err
	}
	return last
}
