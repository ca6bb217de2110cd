package interpartition_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// visit is stored by day; it is found by two numbers among all days, and by color in its day.
type visit struct {
	tables.Meta
	Day, Number, Color int
}

func visitSchema() patterns.Schema[visit] {
	return patterns.Schema[visit]{Name: "visits", Prefix: "visit", Key: func(v *visit) tables.Key {
		return tables.Key{Partition: fmt.Sprint("day", v.Day), Row: compoundkey.Join("visit", compoundkey.Int(v.Number, 6))}
	}}
}

// manyVisits yields 1,000 of ten days and 20 colors.
func manyVisits(yield func(*visit, error) bool) {
	for i := range 1000 {
		if !yield(&visit{Day: i / 100, Number: i, Color: i % 20}, nil) {
			return
		}
	}
}

// TestBulkInSets: 1,000 entities of 10 partitions, with two indexes of one group each outside and a list of 20 values in the partition.
func TestBulkInSets(t *testing.T) {
	ctx, c := t.Context(), openCounted(t, kind{background: true})
	byNumber := interpartition.NewUnique("number", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Number, 6) }, nil)
	byReverse := interpartition.NewUnique("reverse", func(v *visit) compoundkey.Part { return compoundkey.Int(999_999-v.Number, 6) }, nil)
	byColor := indexentities.NewMultiInPartition("color", func(v *visit) []compoundkey.Part { return []compoundkey.Part{compoundkey.Int(v.Color, 2)} })
	visits := assert.Must[*patterns.Repository[visit]](t)(patterns.NewRepository(c.store.Table(c.service.TableName(t)), visitSchema(), byNumber, byReverse, byColor))
	assert.Check(t, c.store.Create(ctx))
	c.requests.Reset()
	report, err := visits.BulkNonAtomic(ctx, manyVisits, nil)
	assert.Check(t, c.process.close(ctx))
	requests := c.requests.Count()
	t.Logf("%d requests, %+v", requests, report)
	if err != nil {
		t.Fatal(err)
	}
	// 20 transactions, the lists of each read together, and two transactions of marks for each; the rest settles.
	if report.Written != 1000 || report.Transactions != 20 || requests != 20*(1+2+1+2) {
		t.Errorf("%d requests, %+v", requests, report)
	}
	verified, err := visits.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error { t.Errorf("%v", f); return nil }})
	if err != nil || verified.Findings > 0 {
		t.Errorf("%+v, %v", verified, err)
	}
	n := 0
	for v, err := range byColor.In("day7").Find(ctx, compoundkey.Int(3, 2), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; v.Color != 3 || v.Day != 7 {
			t.Errorf("%+v", v)
		}
	}
	if found := assert.Must[*visit](t)(byReverse.Get(ctx, compoundkey.Int(999_999-512, 6))); n != 5 || found.Number != 512 {
		t.Errorf("%d of a color, %+v", n, found)
	}
}

// TestBulkOfTwoIndexes: without a list, the entities of a partition are one transaction, whose copies are two.
func TestBulkOfTwoIndexes(t *testing.T) {
	ctx, c := t.Context(), openCounted(t, kind{background: true})
	byNumber := interpartition.NewUnique("number", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Number, 6) }, nil)
	byColor := interpartition.NewIndex("color", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Color, 2) }, nil)
	visits := assert.Must[*patterns.Repository[visit]](t)(patterns.NewRepository(c.store.Table(c.service.TableName(t)), visitSchema(), byNumber, byColor))
	assert.Check(t, c.store.Create(ctx))
	c.requests.Reset()
	report, err := visits.BulkNonAtomic(ctx, manyVisits, nil)
	assert.Check(t, err, c.process.close(ctx))
	t.Logf("%d requests, %+v", c.requests.Count(), report)
	if want := 10 * (2 + 1 + 2); report.Written != 1000 || c.requests.Count() != want {
		t.Errorf("%d requests, want %d", c.requests.Count(), want)
	}
	n := 0
	for v, err := range byColor.All(ctx, compoundkey.Int(7, 2)) {
		if assert.Check(t, err); v.Color == 7 {
			n++
		}
	}
	if n != 50 {
		t.Errorf("%d of a color", n)
	}
}

// TestBulkVerbs: 90 entities of three partitions with an outside index and a list, changed with every verb; one entity of a set is stale.
func TestBulkVerbs(t *testing.T) {
	ctx, c := t.Context(), openCounted(t, kind{})
	byNumber := interpartition.NewUnique("number", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Number, 6) },
		nil)
	byColor := indexentities.NewMultiInPartition("color", func(v *visit) []compoundkey.Part { return []compoundkey.Part{compoundkey.Int(v.Color, 2)} })
	visits := assert.Must[*patterns.Repository[visit]](t)(patterns.NewRepository(c.store.Table(c.service.TableName(t)), visitSchema(), byNumber, byColor))
	assert.Check(t, c.store.Create(ctx))
	const n = 90
	stored := map[int]*visit{}
	for i := range n {
		stored[i] = &visit{Day: i / 30, Number: i}
	}
	run := func(verb tables.BulkVerb, wantRequests int, refused *[]*tables.Error) tables.BulkReport {
		t.Helper()
		options := &tables.BulkOptions{Verb: verb, Refused: func(e *tables.Error) error { *refused = append(*refused, e); return nil }}
		if verb == tables.BulkMerge {
			options.Properties = []string{"Color"}
		}
		c.requests.Reset()
		report, err := visits.BulkNonAtomic(ctx, func(yield func(*visit, error) bool) {
			for i := range n {
				if !yield(stored[i], nil) {
					return
				}
			}
		}, options)
		requests := c.requests.Count()
		t.Logf("verb %d: %d requests, %+v", verb, requests, report)
		if err != nil {
			t.Fatal(err)
		}
		if requests != wantRequests {
			t.Errorf("verb %d: %d requests", verb, requests)
		}
		verified, err := visits.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error { t.Errorf("verb %d: %v", verb, f); return nil }})
		if err != nil || verified.Findings > 0 {
			t.Errorf("%+v, %v", verified, err)
		}
		return report
	}
	var refused []*tables.Error
	run(tables.BulkInsert, 12, &refused)
	for _, verb := range []tables.BulkVerb{tables.BulkReplace, tables.BulkMerge} {
		other := assert.Must[*visit](t)(visits.Get(ctx, visits.KeyOf(stored[41]))) // of a concurrent writer
		other.Color = 10 + int(verb)
		assert.Check(t, visits.Replace(ctx, other))
		for i := range n {
			stored[i].Color = int(verb)
		}
		refused = nil
		report := run(verb, 19, &refused)
		if len(refused) != 1 || refused[0].Change != 42 || refused[0].Key != visits.KeyOf(other) || refused[0].Kind != tables.ErrConflict {
			t.Errorf("refused: %v", refused)
		}
		if report.Written != n-1 || report.Failed != 1 || report.Resume != "" {
			t.Errorf("%+v", report)
		}
		if got := assert.Must[*visit](t)(visits.Get(ctx, visits.KeyOf(other))); got.Color != other.Color {
			t.Errorf("the concurrent writer's change is lost: %+v", got)
		}
		stored[41] = other
	}
	refused = nil
	for i := range n {
		stored[i] = &visit{Day: i / 30, Number: i, Color: 7}
	}
	if report := run(tables.BulkUpsert, 17, &refused); report.Written != n || refused != nil {
		t.Errorf("%+v, %v", report, refused)
	}
	for i, v := range stored {
		if got := assert.Must[*visit](t)(byNumber.Get(ctx, compoundkey.Int(v.Number, 6))); got.Color != 7 {
			t.Errorf("%+v", got)
		} else {
			stored[i] = got // read through the index
		}
	}
	if report := run(tables.BulkDelete, 12, &refused); report.Deleted != n || refused != nil {
		t.Errorf("%+v, %v", report, refused)
	}
	if _, err := visits.Get(ctx, tables.Key{Partition: "day0", Row: compoundkey.Join("visit", compoundkey.Int(3, 6))}); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	refused = nil
	c.requests.Reset()
	unread := &visit{Day: 1, Number: 200}
	stopped, err := visits.BulkNonAtomic(ctx, func(yield func(*visit, error) bool) { yield(unread, nil) }, &tables.BulkOptions{Verb: tables.BulkReplace})
	if e := harness.WantKind(t, err, tables.ErrInvalid); e.Change != 1 || stopped.Resume != "" || c.requests.Count() != 0 {
		t.Errorf("%+v, %+v", e, stopped)
	}
	_, err = visits.BulkNonAtomic(ctx, func(yield func(*visit, error) bool) { yield(unread, nil) }, &tables.BulkOptions{Verb: tables.BulkUpsertMerge})
	harness.WantKind(t, err, tables.ErrWiring)
}
