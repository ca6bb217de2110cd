package scatter_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type spread = *scatter.Spread[event]

// TestVerbs: every verb finds the entity, by the program that wrote it and by another that knows nothing yet.
func TestVerbs(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table, schema := newTable(t, s), numbered(10, 4)
	p := assert.Must[spread](t)(open(s, table, schema, nil))
	fresh := func() spread { return assert.Must[spread](t)(open(s, table, schema, nil)) }
	e := &event{Number: 7, Tag: "a", Text: "1"}
	assert.Check(t, p.Insert(ctx, e))
	harness.WantKind(t, fresh().Insert(ctx, &event{Number: 7, Tag: "a"}), tables.ErrExists)
	e.Text = "2"
	assert.Check(t, fresh().Replace(ctx, assert.Must[*event](t)(fresh().Get(ctx, e.row()))))
	harness.WantKind(t, p.Replace(ctx, e), tables.ErrConflict)
	e = assert.Must[*event](t)(fresh().Update(ctx, e.row(), func(e *event) error { e.Text = "3"; return nil }))
	e.Text = "4"
	other, f := fresh(), fresh()
	read := assert.Must[*event](t)(other.Get(ctx, e.row()))
	read.Text = "4"
	assert.Check(t, other.Merge(ctx, read, "Text"), f.Upsert(ctx, &event{Number: 7, Tag: "a", Text: "5"}))
	assert.Equal(t, assert.Must[*event](t)(p.Get(ctx, e.row())).Text, "5", "the text")
	assert.Check(t, f.Upsert(ctx, &event{Number: 17, Tag: "b"}), fresh().DeleteUnconditional(ctx, e.row()))
	assert.Slices(t, assert.Must[[]string](t)(placed(ctx, s, table, schema)), []string{rowOf(17, "b")}, "left")
	assert.Check(t, p.Delete(ctx, assert.Must[*event](t)(p.Get(ctx, rowOf(17, "b")))))
	harness.WantKind(t, assert.Err(p.Get(ctx, rowOf(17, "b"))), tables.ErrNotFound)
	harness.WantKind(t, assert.Err(fresh().Get(ctx, rowOf(99_999, "b"))), tables.ErrNotFound)
}

// TestResize: what was stored stays where it is, a program that knows the old n only does no harm, and reads span all of it.
func TestResize(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table, schema := newTable(t, s), numbered(10, 3)
	p, old := assert.Must[spread](t)(open(s, table, schema, nil)), assert.Must[spread](t)(open(s, table, schema, nil))
	insert := func(p spread, from, to int64) {
		t.Helper()
		for n := from; n < to; n++ {
			assert.Check(t, p.Insert(ctx, &event{Number: n, Tag: "x"}))
		}
	}
	insert(p, 0, 5)
	insert(old, 5, 6)
	for _, n := range []int{9, 7, 3, 11} { // what has not begun can be taken back
		if got := assert.Must[scatter.Epoch](t)(p.Resize(ctx, n)); n != 3 && got != (scatter.Epoch{Number: 10, Partitions: n}) {
			t.Fatalf("%d partitions from %+v", n, got)
		}
	}
	insert(p, 10, 20)
	assert.Must[scatter.Epoch](t)(p.Resize(ctx, 2))
	insert(p, 20, 25)
	insert(old, 6, 10)  // below the horizon that it knows
	insert(old, 25, 35) // behind it
	assert.ErrorIs(t, old.Insert(ctx, &event{Number: 15, Tag: "x"}), tables.ErrExists, "inserted again")
	all := assert.Must[[]string](t)(placed(ctx, s, table, schema))
	assert.Equal(t, len(all), 35, "rows")
	want := []scatter.Epoch{{Number: 0, Partitions: 3}, {Number: 10, Partitions: 11}, {Number: 20, Partitions: 2}}
	assert.Slices(t, assert.Must[[]scatter.Epoch](t)(old.Epochs(ctx)), want, "epochs")
	if got := assert.Must[[]string](t)(p.Partitions(ctx)); len(got) != 11 || got[10] != "event_010" {
		t.Errorf("partitions %v", got)
	}
	span := compoundkey.Between(compoundkey.Int(8, numberDigits), compoundkey.Int(31, numberDigits))
	assert.Slices(t, assert.Must[[]string](t)(rowsOf(old.Range(ctx, span.Span, nil))), all[8:31], "8 to 31")
	for e, err := range p.Range(ctx, span.Span, nil) {
		assert.Check(t, err)
		assert.Check(t, p.Delete(ctx, e))
	}
	assert.Equal(t, len(assert.Must[[]string](t)(placed(ctx, s, table, schema))), 12, "rows left")
}

// TestReads: conditions, selection, limits, many keys, and an order that falls.
func TestReads(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table := assert.Must[*tables.Account](t)(account(s)).Table(newTable(t, s))
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	options := &scatter.Options{Now: func() time.Time { return now }, Ahead: time.Hour}
	p := assert.Must[*scatter.Spread[login]](t)(scatter.New(table, scatter.Schema[login]{Order: scatter.ByTimeDesc("login", 0), Row: (*login).newestFirst, Partitions: 5}, options))
	var all []*login
	for i := range 40 {
		all = append(all, &login{At: now.Add(time.Duration(i) * time.Minute), User: []string{"even", "odd"}[i%2]})
	}
	progress, err := p.BulkNonAtomic(ctx, func(yield func(*login, error) bool) {
		for _, l := range all {
			if !yield(l, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	assert.Equal(t, progress.Written, 40, "%+v", progress)
	minutes := func(logins iter.Seq2[*login, error]) (got []int) {
		t.Helper()
		for l, err := range logins {
			assert.Check(t, err)
			got = append(got, int(l.At.Sub(now)/time.Minute))
		}
		return got
	}
	assert.Slices(t, minutes(p.Range(ctx, compoundkey.All(), &scatter.ReadOptions{Limit: 5})), []int{39, 38, 37, 36, 35}, "the latest 5")
	span := compoundkey.Between(compoundkey.TimeDesc(now.Add(20*time.Minute)), compoundkey.TimeDesc(now.Add(10*time.Minute)))
	odd := &scatter.ReadOptions{Where: []tables.Condition{tables.Eq("User", "odd")}, Select: []string{"At"}, PageSize: 2, Concurrency: 2}
	assert.Slices(t, minutes(p.Range(ctx, span.Span, odd)), []int{19, 17, 15, 13, 11}, "odd ones")
	rows := []string{all[3].newestFirst(), (&login{At: now, User: "nobody"}).newestFirst(), all[30].newestFirst(), (&login{At: now.AddDate(5, 0, 0)}).newestFirst()}
	assert.Slices(t, minutes(p.GetMany(ctx, rows, &scatter.ReadOptions{Concurrency: 1})), []int{3, 30}, "by key")
	broken := 0
	for range p.Range(ctx, compoundkey.All(), nil) {
		if broken++; broken == 3 {
			break
		}
	}
	for _, err := range p.Range(ctx, compoundkey.Exactly(compoundkey.Int(5, 0)).Span, nil) {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	for _, err := range p.GetMany(ctx, []string{all[3].newestFirst(), "login_1"}, nil) {
		harness.WantKind(t, err, tables.ErrInvalid)
		assert.Contains(t, fmt.Sprint(err), "rowKeys[1]", "does not say which row key")
	}
}

// TestAhead: a time far in the future is refused where it would move the horizon, and only there.
func TestAhead(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	schema := scatter.Schema[login]{Order: scatter.ByTime("login", time.Hour), Row: (*login).row}
	p := assert.Must[*scatter.Spread[login]](t)(scatter.New(assert.Must[*tables.Account](t)(account(s)).Table(newTable(t, s)), schema, &scatter.Options{Now: func() time.Time { return now }}))
	harness.WantKind(t, p.Insert(ctx, &login{At: now.Add(16 * time.Minute)}), tables.ErrInvalid)
	assert.Len(t, assert.Must[[]scatter.Epoch](t)(p.Epochs(ctx)), 0, "after the refused one")
	for e, err := range p.Range(ctx, compoundkey.All(), nil) {
		t.Errorf("there is %v, %v", e, err)
	}
	assert.Check(t, p.Insert(ctx, &login{At: now.Add(15 * time.Minute)}), p.Insert(ctx, &login{At: now.Add(59 * time.Minute)}), p.Insert(ctx, &login{At: now.AddDate(-400, 0, 0)}))
	harness.WantKind(t, p.Insert(ctx, &login{At: now.Add(60 * time.Minute)}), tables.ErrInvalid)
}

// TestPatternsCompose: an index within the partition, the repository's own verbs, and its audit.
func TestPatternsCompose(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table, schema := newTable(t, s), numbered(10, 2)
	index := func() *intrapartition.Unique[event, string] {
		return intrapartition.NewUnique("tag", func(e *event) string { return e.Tag }, nil)
	}
	byTag, meter := index(), assert.Must[*scatter.Meter](t)(scatter.NewMeter(nil))
	p := assert.Must[spread](t)(open(s, table, schema, &scatter.Options{Meter: meter}, byTag))
	assert.Check(t, p.Insert(ctx, &event{Number: 1, Tag: "a"}))
	assert.Must[scatter.Epoch](t)(p.Resize(ctx, 7))
	e := &event{Number: 12, Tag: "b"}
	harness.WantKind(t, p.Repository().Insert(ctx, e), tables.ErrInvalid) // nobody has said where 12 is
	assert.Check(t, p.Prepare(ctx, e), p.Repository().Insert(ctx, e))
	found := assert.Must[*event](t)(byTag.In(e.Key().Partition).Get(ctx, "b"))
	found.Tag = "b"
	found.Text = "changed"
	assert.Check(t, p.Replace(ctx, found))
	key := assert.Must[tables.Key](t)(p.Key(ctx, e.row()))
	assert.Equal(t, key, e.Key(), "key")
	for _, audited := range []spread{p, assert.Must[spread](t)(open(s, table, schema, nil, index()))} { // one that has not looked at the record
		assert.NoError(t, harness.Clean(ctx, audited.Repository().Verify, nil))
	}
	written := 0
	for _, l := range meter.Loads() {
		written += l.Total
	}
	assert.Equal(t, written, 4, "rows counted, an insert and a replace of two rows are 4")
	late := assert.Must[spread](t)(open(s, table, schema, nil)).Repository()
	assert.Equal(t, late.KeyOf(e), key, "an entity that was written")
	e.Number = 13
	if got := late.KeyOf(e); compoundkey.CheckKey(got.Partition) == nil {
		t.Errorf("another one is said to be at %v", got)
	}
	assert.Check(t, p.Sync(ctx))
}

func TestNewRefuses(t *testing.T) {
	s := storagetest.Open(t)
	good := numbered(0, 0)
	for name, change := range map[string]func(*scatter.Schema[event], *scatter.Options){
		"no row":              func(c *scatter.Schema[event], _ *scatter.Options) { c.Row = nil },
		"no order":            func(c *scatter.Schema[event], _ *scatter.Options) { c.Order = scatter.Order{} },
		"a bad order":         func(c *scatter.Schema[event], _ *scatter.Options) { c.Order = scatter.ByNumber("event", 30, 0) },
		"a bad name":          func(c *scatter.Schema[event], _ *scatter.Options) { c.Name = "a/b" },
		"too many partitions": func(c *scatter.Schema[event], _ *scatter.Options) { c.Partitions = 1001 },
		"minus one partition": func(c *scatter.Schema[event], _ *scatter.Options) { c.Partitions = -1 },
		"minus one attempt":   func(c *scatter.Schema[event], _ *scatter.Options) { c.MaxAttempts = -1 },
		"looking back":        func(_ *scatter.Schema[event], o *scatter.Options) { o.Ahead = -1 },
	} {
		schema, options := good, &scatter.Options{}
		change(&schema, options)
		assert.ErrorIs(t, assert.Err(open(s, "Events", schema, options)), tables.ErrWiring, name)
	}
	assert.ErrorIs(t, assert.Err(scatter.New(nil, good, nil)), tables.ErrWiring, "no table")
	if _, err := scatter.New(assert.Must[*tables.Account](t)(account(s)).Table("Events"), scatter.Schema[struct{}]{Order: good.Order, Row: func(*struct{}) string { return "" }}, nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("no Meta: %v", err)
	}
}

// TestRefusals: what cannot be is refused before any request; a record of another order or version is not touched.
func TestRefusals(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := harness.CountedService(s)
	table := newTable(t, s)
	p := assert.Must[spread](t)(open(counted, table, numbered(0, 0), nil))
	tooLong := &event{Number: 1_000_000}
	for _, err := range []error{p.Insert(ctx, tooLong), p.Upsert(ctx, tooLong), p.Replace(ctx, tooLong), p.Delete(ctx, tooLong), p.Prepare(ctx, tooLong), p.Insert(ctx, nil), p.Prepare(ctx, nil)} {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	for _, n := range []int{0, -1, 1001} {
		harness.WantKind(t, assert.Err(p.Resize(ctx, n)), tables.ErrInvalid)
	}
	assert.Equal(t, counter.Count(), 0, "requests")
	other := numbered(0, 0)
	other.Order = scatter.ByNumber("event", 7, 0)
	other.Row = func(e *event) string { return compoundkey.Join("event", compoundkey.Int(e.Number, 7)) }
	assert.Check(t, assert.Must[spread](t)(open(s, table, other, nil)).Prepare(ctx, &event{}))
	harness.WantKind(t, p.Insert(ctx, &event{}), tables.ErrInvalid)
	rows := assert.Must[*tables.Account](t)(account(s)).Table(table).Entities()
	record := assert.Must[*tables.Entity](t)(rows.Get(ctx, tables.Key{Partition: "scatter_event", Row: "epochs"}))
	record.Set("Version", tables.Int32(2))
	assert.Check(t, rows.Replace(ctx, record))
	harness.WantKind(t, p.Insert(ctx, &event{}), tables.ErrGarbled)
	missing := assert.Must[spread](t)(open(s, s.TableName(t), numbered(0, 0), nil))
	harness.WantKind(t, missing.Insert(ctx, &event{}), tables.ErrMissingResource)
}
