package scatter_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMergeIsInOrder: whatever n was when, and wherever pages are cut or come empty, Range gives the rows of a span in order,
// each once, and as many as are asked for.
func TestMergeIsInOrder(t *testing.T) {
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		ctx := context.Background()
		s := must0(storagetest.NewSimulator(&storagetest.SimulatorOptions{Seed: rapid.Uint64().Draw(t, "seed"), Chaos: storagetest.Chaos{
			ShortPages: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "short"), EmptyPages: rapid.SampledFrom([]float64{0, 0.4}).Draw(t, "empty"),
			NoNextRowKey: 0.5}}))
		a := must0(account(s))
		fatal(t, a.Table("Events").Create(ctx))
		step := rapid.Int64Range(1, 40).Draw(t, "step")
		p, reader := must0(open(s, "Events", numbered(step, rapid.IntRange(1, 5).Draw(t, "first")), nil)), must0(open(s, "Events", numbered(0, 0), nil))
		numbers := map[string]int64{}
		for number := range int64(rapid.IntRange(0, 60).Draw(t, "numbers")) {
			if rapid.IntRange(0, 9).Draw(t, "resize") == 0 {
				assert.Check(t, assert.Err(p.Resize(ctx, rapid.IntRange(1, 9).Draw(t, "n"))))
			}
			e := &event{Number: number, Tag: rapid.SampledFrom([]string{"", "a", "é", "_"}).Draw(t, "tag")}
			fatal(t, p.Insert(ctx, e))
			numbers[e.row()] = number
		}
		from := rapid.Int64Range(0, 60).Draw(t, "from")
		to := rapid.Int64Range(from, 70).Draw(t, "to")
		o := &scatter.ReadOptions{Limit: rapid.IntRange(0, 20).Draw(t, "limit"), PageSize: rapid.IntRange(0, 5).Draw(t, "page"), Concurrency: rapid.IntRange(0, 3).Draw(t, "concurrency")}
		var want []string
		for row, n := range numbers {
			if from <= n && n < to {
				want = append(want, row)
			}
		}
		slices.SortFunc(want, compoundkey.Compare)
		if o.Limit > 0 {
			want = want[:min(o.Limit, len(want))]
		}
		span := compoundkey.Between(compoundkey.Int(from, numberDigits), compoundkey.Int(to, numberDigits))
		got, err := rowsOf(reader.Range(ctx, span.Span, o))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d to %d with %+v: %v (%v), want %v", from, to, o, got, err, want)
		}
	})
	if runs < 20 {
		t.Errorf("%d runs", runs)
	}
}

func must0[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func fatal(t *rapid.T, err error) {
	assert.Check(t, err)
}

// TestMergeStops: a reader that breaks off leaves nothing running, and reads no more than what is under way.
func TestMergeStops(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	counted, counter := harness.CountedService(s)
	p := assert.Must[spread](t)(open(counted, newTable(t, s), numbered(0, 4), nil))
	for n := range int64(400) {
		assert.Check(t, p.Insert(ctx, &event{Number: n}))
	}
	counter.Reset()
	seen := int64(0)
	for e, err := range p.Range(ctx, compoundkey.All(), &scatter.ReadOptions{PageSize: 5}) {
		assert.Check(t, err)
		if e.Number != seen {
			t.Fatalf("%d comes after %d", e.Number, seen-1)
		}
		if seen++; seen == 10 {
			break
		}
	}
	// 10 in order need two or three pages of 5 from some of the 4 partitions; two more of each may be under way.
	if got := counter.Count(); got > 1+4*5 {
		t.Errorf("%d requests for 10 of 400 entities in pages of 5", got)
	}
}

// TestCosmosIsRefused: there, queries come back in no order.
func TestCosmosIsRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, s.AccountName, s.AccountKey, nil))
	n := assert.Must[*scatter.Natural[event]](t)(scatter.NewNatural(a.Table("Events"), scatter.NaturalSchema[event]{Name: "e", Prefix: "event",
		Partition: func(e *event) compoundkey.Part { return compoundkey.String(e.Tag) }, Row: (*event).row}, nil))
	read := 0
	for _, err := range n.Range(t.Context(), []compoundkey.Part{compoundkey.String("a")}, compoundkey.All(), nil) {
		read++
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	if fmt.Sprint(a.IsCosmos(), read) != "true 1" {
		t.Errorf("%v, %d", a.IsCosmos(), read)
	}
}
