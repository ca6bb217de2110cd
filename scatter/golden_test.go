package scatter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGoldenBucket has what sha256sum prints for the text, and its first 16 digits as a number modulo n.
func TestGoldenBucket(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[int]int
	}{
		{"", map[int]int{1: 0, 7: 1, 8: 4, 1000: 652}},                              // e3b0c44298fc1c14 = 16406829232824261652
		{"abc", map[int]int{1: 0, 7: 2, 8: 2, 1000: 74}},                            // ba7816bf8f01cfea = 13436514500253700074
		{"event_0635443206000000000_a17", map[int]int{1: 0, 7: 3, 8: 7, 1000: 671}}, // f014f5feaa119b5f = 17299722542760696671
		{"é", map[int]int{1: 0, 7: 3, 8: 3, 1000: 51}},                              // 4a99557e4033c353 = 5375421630974772051
	} {
		for n, want := range c.want {
			assert.Equal(t, scatter.Bucket(c.text, n), want, "Bucket(%q, %d)", c.text, n)
		}
	}
}

// TestBucketsAreEven: keys that differ in some digits only, in steps, spread as dice do: four standard deviations.
func TestBucketsAreEven(t *testing.T) {
	const keys = 20_000
	for _, step := range []int64{1, 2, 8, 10, 16, 1000, 10_000_000} {
		for _, n := range []int{2, 4, 16, 100} {
			counts := make([]int, n)
			for i := range int64(keys) {
				counts[scatter.Bucket(compoundkey.Join("event", compoundkey.Int(i*step, 19)), n)]++
			}
			mean := float64(keys) / float64(n)
			for b, c := range counts {
				if d := float64(c) - mean; d*d > 25*mean {
					t.Errorf("step %d, %d partitions: %d has %d, the mean is %.0f", step, n, b, c, mean)
				}
			}
		}
	}
}

// login is named by its time.
type login struct {
	tables.Meta
	At   time.Time
	User string
}

func (l *login) row() string {
	return compoundkey.Join("login", compoundkey.Time(l.At), compoundkey.String(l.User))
}

func (l *login) newestFirst() string {
	return compoundkey.Join("login", compoundkey.TimeDesc(l.At), compoundkey.String(l.User))
}

// TestGoldenRows: what is stored is read by later versions.
func TestGoldenRows(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	at := time.Date(2014, 8, 22, 0, 50, 32, 123456700, time.UTC)
	clock := func() time.Time { return at }
	for name, c := range map[string]struct {
		schema      scatter.Schema[login]
		row, order  string
		first, next int64
	}{
		"time": {scatter.Schema[login]{Order: scatter.ByTime("login", 0), Row: (*login).row}, "login_0635442654321234567_jonesj", "time", 635442654600000000, 635442655200000000},
		"timedesc": {scatter.Schema[login]{Order: scatter.ByTimeDesc("login", 0), Row: (*login).newestFirst}, "login_2519936321678765432_jonesj", "timedesc", 635442654600000000,
			635442655200000000},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, s)
			a := assert.Must[*tables.Account](t)(account(s)).Table(table)
			p := assert.Must[*scatter.Spread[login]](t)(scatter.New(a, c.schema, &scatter.Options{Now: clock}))
			l := &login{At: at, User: "jonesj"}
			assert.Check(t, p.Insert(ctx, l))
			if want := (tables.Key{Partition: assert.Must[string](t)(compoundkey.Encode("login", compoundkey.Int(scatter.Bucket(c.row, 8), 3))), Row: c.row}); l.Key() != want {
				t.Errorf("stored under %v, want %v", l.Key(), want)
			}
			epoch := assert.Must[scatter.Epoch](t)(p.Resize(ctx, 12))
			if want := time.Date(2014, 8, 22, 0, 51, 0, 0, time.UTC); !epoch.Time.Equal(want) || epoch.Partitions != 12 {
				t.Errorf("12 partitions from %v", epoch)
			}
			assert.Check(t, p.Insert(ctx, &login{At: at.Add(time.Minute), User: "b"}))
			_, record, err := stored(ctx, s, table)
			assert.Check(t, err)
			assert.Equal(t, record.Key, (tables.Key{Partition: "scatter_login", Row: "epochs"}), "the record")
			for name, want := range map[string]tables.Value{"Version": tables.Int32(1), "Order": tables.String(c.order), "Horizon": tables.Int64(c.next),
				"Epochs": tables.String("0 8\n635442654600000000 12")} {
				assert.Equal(t, record.Get(name), want, name)
			}
			assert.Len(t, record.Properties, 4, "the record")
		})
	}
}

// namesTaken is a runner that notes the names of repositories, and refuses one that comes twice.
type namesTaken struct {
	intents.Runner
	names []string
}

func (r *namesTaken) Register(name string, _ func(context.Context, intents.Intent) error) error {
	if slices.Contains(r.names, name) {
		return errors.New("taken")
	}
	r.names = append(r.names, name)
	return nil
}

// TestGoldenIntentNames: intents that are under way name the entities, by table and name.
func TestGoldenIntentNames(t *testing.T) {
	a := assert.Must[*tables.Account](t)(account(storagetest.Open(t)))
	r := &namesTaken{}
	calls := func() patterns.Pattern[event] {
		return eventual.OnCommit("calls", func(context.Context, eventual.Commit[event]) error { return nil }, nil)
	}
	for _, table := range []string{"May", "June"} {
		schema := numbered(0, 0)
		assert.Must[spread](t)(scatter.New(harness.In(a.Table(table), r), schema, nil, calls()))
		assert.Must[*scatter.Natural[event]](t)(scatter.NewNatural(harness.In(a.Table(table), r), scatter.NaturalSchema[event]{Name: "natural", Prefix: "event", Partition: func(e *event) compoundkey.Part { return compoundkey.String(e.Tag) }, Row: (*event).row}, nil, calls()))
	}
	if want := []string{"May.event", "May.natural", "June.event", "June.natural"}; !slices.Equal(r.names, want) {
		t.Errorf("intents name %v, want %v", r.names, want)
	}
}

// TestGoldenNatural: the guide's figure 27.
func TestGoldenNatural(t *testing.T) {
	n := naturals(t, storagetest.Open(t), nil)
	e := &access{Department: "Sales", Employee: 223, At: time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC), ID: 17}
	assert.Check(t, n.Insert(t.Context(), e))
	if want := (tables.Key{Partition: "access_Sales!_000223", Row: "access_0635442654320000000_00000017"}); e.Key() != want {
		t.Errorf("stored under %v, want %v", e.Key(), want)
	}
}
