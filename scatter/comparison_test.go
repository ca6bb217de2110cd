package scatter_test

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// arrival is an event that is to be stored, or tried again, at some time of the simulator's clock.
type arrival struct {
	at      time.Time
	number  int
	came    time.Time
	attempt int
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// outcome is what became of a load.
type outcome struct {
	stored    time.Duration // from the first event's coming until all were stored
	longest   time.Duration // that one event took
	throttled int           // answers 503
}

// offer lets events come at a rate, whatever becomes of those before them. One that is throttled is tried again after 0.8 s, then after
// twice as long each time, 8 s at most, with the SDK's jitter. It is never given up, which the SDK would do after its retries.
func offer(ctx context.Context, clock *storagetest.Clock, count, rate int, insert func(ctx context.Context, number int, came time.Time) error) (outcome, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	start := clock.Now().Truncate(time.Second).Add(time.Second)
	var queue arrivals
	for i := range count {
		came := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		queue = append(queue, arrival{at: came, number: i, came: came})
	}
	heap.Init(&queue)
	var o outcome
	for len(queue) > 0 {
		a := heap.Pop(&queue).(arrival)
		if wait := a.at.Sub(clock.Now()); wait > 0 {
			clock.Advance(wait)
		}
		err := insert(ctx, a.number, a.came.Truncate(100))
		switch {
		case err == nil:
			o.stored = max(o.stored, clock.Now().Sub(start))
			o.longest = max(o.longest, clock.Now().Sub(a.came))
		case busy(err):
			o.throttled++
			delay := min(800*time.Millisecond<<min(a.attempt, 4), 8*time.Second)
			a.at, a.attempt = clock.Now().Add(time.Duration(float64(delay)*(0.8+rng.Float64()/2))), a.attempt+1
			heap.Push(&queue, a)
		default:
			return o, err
		}
	}
	return o, nil
}

// busy reports whether the service had too much to do. Whether it did it is not said by 503 alone; the simulator did not.
func busy(err error) bool {
	var e *tables.Error
	return errors.As(err, &e) && e.Code == "ServerBusy"
}

// designs are the ways to store the guide's events: its anti-pattern, and its answers.
func designs() []string {
	return []string{"date and hour", "scatter 1", "scatter 4", "scatter 16", "natural key"}
}

// measure stores events by a design on a simulator that throttles, in virtual time.
func measure(t testing.TB, design string, count, rate int) outcome {
	t.Helper()
	ctx := t.Context()
	s := storagetest.Simulator(t, &storagetest.SimulatorOptions{Chaos: storagetest.Chaos{PartitionLimit: true}}).WithRetries(0)
	table := assert.Must[*tables.Account](t)(account(s)).Table("Events")
	assert.Check(t, table.Create(ctx))
	of := func(number int, came time.Time) *access {
		return &access{Department: "Sales", Employee: number * 7919 % 100, At: came, ID: number}
	}
	var insert func(context.Context, *access) error
	options := &scatter.Options{Now: s.Clock.Now}
	var n int
	if _, err := fmt.Sscanf(design, "scatter %d", &n); err == nil {
		insert = assert.Must[*scatter.Spread[access]](t)(scatter.New(table, scatter.Schema[access]{Order: scatter.ByTime("access", 0), Row: (*access).row, Partitions: n}, options)).Insert
	} else if design == "natural key" {
		insert = assert.Must[*scatter.Natural[access]](t)(scatter.NewNatural(table, scatter.NaturalSchema[access]{Name: "access", Prefix: "access",
			Partition: func(a *access) compoundkey.Part { return natural(a.Department, a.Employee) }, Row: (*access).row}, options)).Insert
	} else {
		insert = assert.Must[*patterns.Repository[access]](t)(patterns.NewRepository(table, patterns.Schema[access]{Key: func(a *access) tables.Key {
			return tables.Key{Partition: a.At.Format("2006010215"), Row: a.row()}
		}})).Insert
	}
	o, err := offer(ctx, s.Clock, count, rate, func(ctx context.Context, number int, came time.Time) error { return insert(ctx, of(number, came)) })
	assert.Check(t, err)
	return o
}

// TestComparison: what one partition cannot take, several can. A partition takes 2,500 of these at once.
func TestComparison(t *testing.T) {
	const count, rate = 3_000, 12_000
	took := time.Duration(count) * time.Second / rate
	one, several := []string{"date and hour", "scatter 1"}, []string{"scatter 4", "scatter 16", "natural key"}
	if harness.Shortened() {
		one, several = one[:1], several[:1]
	}
	for _, design := range one {
		if o := measure(t, design, count, rate); o.throttled < 400 || o.stored < 2*took || o.longest < took {
			t.Errorf("%s: %+v", design, o)
		}
	}
	for _, design := range several {
		if o := measure(t, design, count, rate); o.throttled != 0 || o.stored > took+time.Millisecond {
			t.Errorf("%s: %+v", design, o)
		}
	}
}

// BenchmarkComparison gives the figures of the documentation: 40,000 events in two seconds, as many as an account takes.
func BenchmarkComparison(b *testing.B) {
	for _, design := range designs() {
		b.Run(design, func(b *testing.B) {
			var o outcome
			for b.Loop() {
				o = measure(b, design, 40_000, 20_000)
			}
			b.ReportMetric(o.stored.Seconds(), "virtual-s")
			b.ReportMetric(o.longest.Seconds(), "longest-s")
			b.ReportMetric(float64(o.throttled), "throttled")
		})
	}
}
