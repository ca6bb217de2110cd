package scatter_test

import (
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestRequestCounts holds what the package's comment says of requests.
func TestRequestCounts(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := harness.CountedService(s)
	table, schema := newTable(t, s), numbered(100, 4)
	p, other := assert.Must[spread](t)(open(counted, table, schema, nil)), assert.Must[spread](t)(open(counted, table, schema, nil))
	cost := func(want int, what string, err error) {
		t.Helper()
		assert.Check(t, err)
		assert.Equal(t, counter.Reset(), want, "%s: requests", what)
	}
	read := func(p spread, span compoundkey.Span, o *scatter.ReadOptions, want int) error {
		rows, err := rowsOf(p.Range(ctx, span, o))
		assert.Equal(t, len(rows), want, "rows")
		return err
	}
	first := &event{Number: 0}
	cost(0, "New", nil)
	cost(1, "Range of a table without a record", read(p, compoundkey.All(), nil, 0))
	cost(3, "the first Insert", p.Insert(ctx, first))
	cost(1, "Replace", p.Replace(ctx, first))
	for n := int64(1); n < 100; n++ {
		cost(1, "Insert", p.Insert(ctx, &event{Number: n}))
	}
	cost(3, "the Insert that moves the horizon", p.Insert(ctx, &event{Number: 100}))
	cost(2, "the first Insert of another program", other.Insert(ctx, &event{Number: 101}))
	_, err := other.Get(ctx, rowOf(5, ""))
	cost(1, "Get", err)
	_, err = other.Update(ctx, rowOf(5, ""), func(*event) error { return nil })
	cost(2, "Update", err)
	cost(2, "Upsert", p.Upsert(ctx, &event{Number: 5}))
	e := assert.Must[*event](t)(p.Get(ctx, rowOf(6, "")))
	counter.Reset()
	cost(1, "Merge", p.Merge(ctx, e))
	cost(1, "Delete", p.Delete(ctx, e))
	cost(2, "DeleteUnconditional", p.DeleteUnconditional(ctx, rowOf(7, "")))
	_, err = p.Resize(ctx, 6)
	cost(2, "Resize", err)
	_, err = p.Resize(ctx, 6)
	cost(1, "Resize that changes nothing", err)
	cost(3, "the Insert with which 6 begins", other.Insert(ctx, &event{Number: 200}))
	cost(1+6, "Range of everything", read(p, compoundkey.All(), nil, 101))
	below := compoundkey.Below(compoundkey.Int(100, numberDigits))
	cost(4, "Range below the last change of n", read(p, below.Span, nil, 98))
	cost(1+6, "Range behind it", read(p, compoundkey.AtLeast(compoundkey.Int(200, numberDigits)).Span, nil, 1))
	cost(4, "Range with a Limit", read(p, below.Span, &scatter.ReadOptions{Limit: 3}, 3))
	assert.Must[*event](t)(assert.Must[spread](t)(open(counted, table, schema, nil)).Get(ctx, rowOf(8, "")))
	cost(2, "the first Get", nil)
	cost(1, "Sync", p.Sync(ctx))
	_, err = p.Epochs(ctx)
	cost(1, "Epochs", err)
	_, err = p.Partitions(ctx)
	cost(1, "Partitions", err)
	stale := assert.Must[spread](t)(open(counted, table, schema, nil))
	rows := []string{rowOf(8, ""), rowOf(90_000, ""), rowOf(9, ""), rowOf(90_001, ""), rowOf(90_002, "")}
	found, err := rowsOf(stale.GetMany(ctx, rows, nil))
	assert.Len(t, found, 2, "GetMany")
	cost(1+2, "GetMany of some rows above the horizon", err)
}

// TestOneAsksForAll: of many goroutines that come to the horizon at once, one moves it.
func TestOneAsksForAll(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := harness.CountedService(s)
	p := assert.Must[spread](t)(open(counted, newTable(t, s), numbered(16, 4), nil))
	for _, from := range []int64{0, 16} {
		var all sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			all.Go(func() { errs[i] = p.Insert(ctx, &event{Number: from + int64(i)}) })
		}
		all.Wait()
		assert.Check(t, errs...)
		assert.Equal(t, counter.Reset(), 16+2, "requests for 16 inserts from %d on", from)
	}
}

// TestLostAnswers: what became of a write of the record is seen in the record, without troubling the caller.
func TestLostAnswers(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table, schema := newTable(t, s), numbered(10, 4)
	lost := storagetest.First(storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.LostAnswer)),
		storagetest.On(storagetest.GetEntity, storagetest.OnIndex(1, storagetest.NotSent)), // by which the first would be cleared up
		storagetest.On(storagetest.ReplaceEntity, storagetest.Times(2, storagetest.LostAnswer)))
	faulty, faults := s.WithRetries(0).Faulty(lost)
	p := assert.Must[spread](t)(open(faulty, table, schema, nil))
	assert.Check(t, p.Insert(ctx, &event{Number: 1}), p.Insert(ctx, &event{Number: 12}))
	if epoch := assert.Must[scatter.Epoch](t)(p.Resize(ctx, 9)); epoch.Number != 20 || len(faults.Met()) != 4 {
		t.Errorf("9 partitions from %v, after %v", epoch, faults.Met())
	}
	assert.Len(t, assert.Must[[]string](t)(placed(ctx, s, table, schema)), 2)
}
