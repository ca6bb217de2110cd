package logtail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOneTick: two entries of one tick both live, in the order of Append where one Log stamped them.
func TestOneTick(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	for i := range 20 {
		assert.Check(t, l.Append(ctx, &claim{Employee: "223", Amount: i}))
	}
	assert.Slices(t, amountsOf(assert.Must[[]*claim](t)(l.Latest(ctx, "223", 100))), down(19, 20), "the clock stands still")
	for _, id := range []string{"b", "a", "c"} {
		assert.Check(t, l.Append(ctx, &claim{Entry: logtail.Entry{LoggedAt: day, LogID: id}, Employee: "7"}))
	}
	if got := assert.Must[[]*claim](t)(l.Latest(ctx, "7", 9)); len(got) != 3 || got[0].LogID != "a" || !got[2].LoggedAt.Equal(day) {
		t.Errorf("three entries of one tick are %v", got)
	}
}

// TestStampsRise: many goroutines get different times, and a clock that is set back far is followed.
func TestStampsRise(t *testing.T) {
	c := &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[string]bool{}
	for range 8 {
		wg.Go(func() {
			for range 50 {
				v := &claim{}
				err := l.Stamp(v)
				mu.Lock()
				seen[fmt.Sprint(v.LoggedAt.UnixNano(), err)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, len(seen), 400, "times of 400 stamps")
	c.pass(-time.Hour)
	v := &claim{}
	if err := l.Stamp(v); err != nil || !v.LoggedAt.Equal(c.at) {
		t.Errorf("an hour back, a stamp is %v, want %v (%v)", v.LoggedAt, c.at, err)
	}
	assert.ErrorIs(t, l.Stamp(nil), tables.ErrInvalid, "Stamp(nil)")
}

// TestAppendAgain: an entry keeps its key across the caller's repetitions, by the same value or by one that was stored
// meanwhile, and is there once. What differs is refused.
func TestAppendAgain(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	s, requests := harness.CountedService(storagetest.Open(t))
	l := openLog(t, s, c.now)
	v := &claim{Employee: "223", Category: "Travel", Amount: 1}
	assert.Check(t, l.Stamp(v))
	stored := assert.Must[[]byte](t)(json.Marshal(v))
	for i, want := range []int{1, 2} {
		requests.Reset()
		if err := l.Append(ctx, v); err != nil || requests.Count() != want {
			t.Errorf("Append %d: %v with %d requests, want %d", i+1, err, requests.Count(), want)
		}
	}
	again := new(claim)
	assert.Check(t, json.Unmarshal(stored, again))
	other := openTable(t, s, l.Table().Name(), schemaAt(c.now)) // another process
	if err := other.Append(ctx, again); err != nil || again.ETag == "" || again.ETag != v.ETag {
		t.Errorf("the entry that was stored and read: %v, ETag %q, want %q", err, again.ETag, v.ETag)
	}
	again.Amount = 2
	assert.NoError(t, other.Repository().Replace(ctx, again), "Replace of an entry that was recognized")
	assert.ErrorIs(t, l.Append(ctx, v), tables.ErrExists, "an entry of the same time and id and another amount")
	assert.Slices(t, amountsOf(assert.Must[[]*claim](t)(l.Latest(ctx, "223", 10))), []int{2}, "the log")
	c.pass(time.Hour) // far too late for a new entry; this one is there
	assert.NoError(t, other.Append(ctx, again), "an hour later, the entry that is there")
}

// loose is an entry whose values do not come back as they were given.
type loose struct {
	tables.Meta
	logtail.Entry
	User  string
	Any   any            `table:",json"`
	JSON  map[string]any `table:",json"`
	Zero  float64
	Bytes []byte
	Local time.Time               `table:",omitzero"`
	Rest  map[string]tables.Value `table:",rest"`
}

// TestAppendAgainOfWhatIsReadAsAnother: an entry is known again by what it is when it is read: a struct that was given as any is a
// map then, whose members have another order.
func TestAppendAgainOfWhatIsReadAsAnother(t *testing.T) {
	s, c := storagetest.Open(t), &clock{day}
	l := assert.Must[*logtail.Log[loose]](t)(logtail.New(accountOf(t, s).Table(s.TableName(t)), logtail.Schema[loose]{Partition: func(v *loose) string { return v.User }, Now: c.now}))
	assert.Check(t, l.Table().Create(t.Context()))
	for name, v := range map[string]loose{
		"struct":     {Any: struct{ B, A int }{1, 2}},
		"int64":      {Any: int64(1<<53 + 1)},
		"numbers":    {JSON: map[string]any{"b": 1e21, "a": 1 << 53, "c": []any{nil, 1.0}}},
		"NaN":        {Zero: math.NaN()},
		"empty":      {Bytes: []byte{}},
		"local time": {Local: time.Date(2020, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))},
		"rest":       {Rest: map[string]tables.Value{"z": tables.String("1"), "a": tables.Double(2)}},
	} {
		v.User = "june"
		assert.Check(t, l.Stamp(&v))
		again, other := v, v
		assert.NoError(t, errors.Join(l.Append(t.Context(), &v), l.Append(t.Context(), &again)), name)
		other.JSON = map[string]any{"other": true}
		assert.ErrorIs(t, l.Append(t.Context(), &other), tables.ErrExists, "%s, with another property", name)
	}
}

// TestOutsideWindow: what followers could miss is refused, with a typed error, and nothing is written.
func TestOutsideWindow(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	half := logtail.DefaultWindow / 2
	for _, distance := range []time.Duration{-half, -time.Hour, half + 100, 10 * time.Hour} {
		v := &claim{Entry: logtail.Entry{LoggedAt: day.Add(distance)}, Employee: "223"}
		var e *tables.Error
		if err := l.Append(ctx, v); !errors.Is(err, logtail.ErrOutsideWindow) || !errors.Is(err, tables.ErrInvalid) || !errors.As(err, &e) {
			t.Errorf("%v away: %v, want ErrOutsideWindow", distance, err)
		}
	}
	for _, distance := range []time.Duration{-half + 100*time.Millisecond, half} {
		assert.NoError(t, l.Append(ctx, &claim{Entry: logtail.Entry{LoggedAt: day.Add(distance)}, Employee: "223"}), "%v away", distance)
	}
	assert.Equal(t, len(assert.Must[[]*claim](t)(l.Latest(ctx, "223", 10))), 2, "entries")
	// An import goes through the repository.
	old := &claim{Entry: logtail.Entry{LoggedAt: day.AddDate(-3, 0, 0), LogID: "old"}, Employee: "223", Amount: 5}
	assert.Check(t, l.Repository().Insert(ctx, old))
	assert.ErrorIs(t, l.Repository().Insert(ctx, &claim{Employee: "223"}), tables.ErrInvalid, "an entry that was not stamped")
	assert.ErrorIs(t, l.Append(ctx, &claim{Entry: logtail.Entry{LoggedAt: day.Add(1)}, Employee: "223"}), tables.ErrInvalid, "finer than 100 ns")
}

// TestAppendLate: an entry of any time is appended once, whatever was repeated; another one of the same time and id is refused.
func TestAppendLate(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	for i, distance := range []time.Duration{-time.Hour, 10 * time.Hour, 0} {
		v := claim{Entry: logtail.Entry{LoggedAt: day.Add(distance), LogID: fmt.Sprint("late", i)}, Employee: "223", Amount: 5}
		again, other := v, v
		assert.NoError(t, errors.Join(l.AppendLate(ctx, &v), l.AppendLate(ctx, &again), l.Append(ctx, &again)), "%v away", distance)
		other.Amount = 6
		harness.WantKind(t, l.AppendLate(ctx, &other), tables.ErrExists)
	}
	assert.Equal(t, len(assert.Must[[]*claim](t)(l.Latest(ctx, "223", 10))), 3, "entries")
	harness.WantKind(t, l.AppendLate(ctx, &claim{Entry: logtail.Entry{LoggedAt: day.Add(1)}, Employee: "223"}), tables.ErrInvalid)
}

func TestNewRefuses(t *testing.T) {
	account := accountOf(t, storagetest.Open(t))
	table := account.Table("Claims")
	partition := func(*claim) string { return "p" }
	cosmos := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5", nil))
	for name, f := range map[string]func() error{
		"no table":     func() error { _, err := logtail.New(nil, schemaAt(nil)); return err },
		"no partition": func() error { _, err := logtail.New(table, logtail.Schema[claim]{}); return err },
		"no Entry": func() error {
			type bare struct{ tables.Meta }
			_, err := logtail.New(table, logtail.Schema[bare]{Partition: func(*bare) string { return "" }})
			return err
		},
		"no Meta": func() error {
			type bare struct{ logtail.Entry }
			_, err := logtail.New(table, logtail.Schema[bare]{Partition: func(*bare) string { return "" }})
			return err
		},
		"a pointer": func() error {
			type pointing struct {
				tables.Meta
				*logtail.Entry
			}
			_, err := logtail.New(table, logtail.Schema[pointing]{Partition: func(*pointing) string { return "" }})
			return err
		},
		"window": func() error {
			_, err := logtail.New(table, logtail.Schema[claim]{Partition: partition, Window: -1})
			return err
		},
		"prefix": func() error {
			_, err := logtail.New(table, logtail.Schema[claim]{Partition: partition, Prefix: "a_b"})
			return err
		},
		"Cosmos DB": func() error { _, err := logtail.New(cosmos.Table("Claims"), schemaAt(nil)); return err },
	} {
		assert.ErrorIs(t, f(), tables.ErrWiring, name)
	}
}
