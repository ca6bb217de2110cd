package dataseries_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// place is where the slots are.
type place string

const (
	inRow  place = "row"
	inRows place = "rows"
	inBlob place = "blob"
)

var places = []place{inRow, inRows, inBlob}

// world is where the tests' processes work.
type world struct {
	place
	slots    int // 0 is few, which in rows are three rows all the same
	attempts int

	table, container string
}

const fewSlots = 10

func (w *world) options(account *tables.Account) *dataseries.Options {
	o := &dataseries.Options{MaxAttempts: w.attempts}
	switch w.place {
	case inRows:
		o.SlotsPerRow = 4
		if w.slots > fewSlots {
			o.SlotsPerRow = 240
		}
	case inBlob:
		o.Container = blobstorage.Container(account, w.container)
	}
	return o
}

func (w *world) count() int {
	if w.slots == 0 {
		return fewSlots
	}
	return w.slots
}

// open makes what the world needs.
func (w *world) open(t testing.TB, s *storagetest.Service) *world {
	t.Helper()
	w.table, w.container = s.TableName(t), s.ContainerName(t)
	account := assert.Must[*tables.Account](t)(accountOf(s))
	if _, err := blobstorage.Container(account, w.container).Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := account.Table(w.table).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func accountOf(s *storagetest.Service) (*tables.Account, error) {
	return tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
}

// start is a process of the world that counts.
func (w *world) start(s *storagetest.Service) (*dataseries.Counter[int64], error) {
	return counterOf[int64](w, s)
}

func counterOf[V dataseries.Number](w *world, s *storagetest.Service) (*dataseries.Counter[V], error) {
	account, err := accountOf(s)
	if err != nil {
		return nil, err
	}
	return dataseries.NewCounter[V](account.Table(w.table), "Count_", w.count(), w.options(account))
}

func seriesOf[V any](t testing.TB, w *world, s *storagetest.Service) *dataseries.Series[V] {
	t.Helper()
	account := assert.Must[*tables.Account](t)(accountOf(s))
	return assert.Must[*dataseries.Series[V]](t)(dataseries.New[V](account.Table(w.table), "Count_", w.count(), w.options(account)))
}

// onEach runs a test on the service of the suite, once for each place.
func onEach(t *testing.T, test func(t *testing.T, w *world, s *storagetest.Service)) {
	for _, p := range places {
		t.Run(string(p), func(t *testing.T) {
			s, w := storagetest.Open(t), &world{place: p}
			test(t, w.open(t, s), s)
		})
	}
}

// today is a series.
var today = tables.Key{Partition: "empid_000223", Row: "20261120"}

// text shows values, a dot for each gap.
func text[V any](v *dataseries.Values[V]) string {
	var parts []string
	for _, s := range v.Slots {
		if s.Present {
			parts = append(parts, fmt.Sprint(s.Value))
		} else {
			parts = append(parts, ".")
		}
	}
	return fmt.Sprint(parts)
}

// held is what a slot of a series holds, read past all faults; 0 for nothing.
func held(ctx context.Context, w *world, s *storagetest.Service, key tables.Key, slot int) (int64, error) {
	c, err := w.start(s)
	if err != nil {
		return 0, err
	}
	v, err := c.Read(ctx, key)
	if err != nil {
		return 0, err
	}
	return v.Slots[slot].Value, nil
}

// counting returns the same service with a counter of its requests.
func counting(s *storagetest.Service) (*storagetest.Service, *storagetest.RequestCounter) {
	requests := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), requests)
	return &counted, requests
}

func all[V any](t testing.TB, seq iter.Seq2[*dataseries.Values[V], error]) []*dataseries.Values[V] {
	t.Helper()
	var found []*dataseries.Values[V]
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, v)
	}
	return found
}
