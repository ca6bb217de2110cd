package scatter_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// stopwatch is a clock that a test sets.
type stopwatch struct{ now time.Time }

func newStopwatch() *stopwatch {
	return &stopwatch{time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}
}

func (w *stopwatch) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *stopwatch) meter(t testing.TB, o scatter.MeterOptions) *scatter.Meter {
	t.Helper()
	o.Now = func() time.Time { return w.now }
	return assert.Must[*scatter.Meter](t)(scatter.NewMeter(&o))
}

func TestMeter(t *testing.T) {
	w := newStopwatch()
	m := w.meter(t, scatter.MeterOptions{Seconds: 3})
	if m.Enough() != 1 || len(m.Loads()) != 0 {
		t.Errorf("at the beginning: %d, %v", m.Enough(), m.Loads())
	}
	m.Add("a", 1500)
	m.Add("b", 700)
	m.Add("b", 0)
	w.pass(time.Second)
	m.Add("a", 1700)
	m.Add("c", 1599)
	want := "[{a 1700 0 3200 0.85} {c 1599 0 1599 0.7995} {b 700 0 700 0.35}]"
	assert.Equal(t, fmt.Sprint(m.Loads()), want, "loads")
	if hot := m.Hot(); len(hot) != 1 || hot[0].Partition != "a" {
		t.Errorf("hot: %v", hot)
	}
	if got := m.Enough(); got != 3 { // 3,299 in the busiest second over 3 are 1,100, over 2 they are 1,650
		t.Errorf("%d are enough", got)
	}
	w.pass(-3 * time.Second) // a clock that goes back a little counts into the latest second
	m.Add("c", 1)
	if hot := m.Hot(); len(hot) != 2 || hot[1].Peak != 1600 {
		t.Errorf("hot: %v", hot)
	}
	w.pass(5 * time.Second)
	assert.Equal(t, fmt.Sprint(m.Loads()), "[{a 1700 0 1700 0.85} {c 1600 0 1600 0.8}]", "two seconds later")
	w.pass(time.Second)
	if loads := m.Loads(); len(loads) != 0 || m.Enough() != 1 {
		t.Errorf("all is past, and there is %v", loads)
	}
	assert.ErrorIs(t, assert.Err(scatter.NewMeter(&scatter.MeterOptions{Hot: -1})), tables.ErrWiring)
}

// TestMeterFollowsAClockThatWasSet: one that was hours ahead for a moment does not make all that comes one second for hours.
func TestMeterFollowsAClockThatWasSet(t *testing.T) {
	for _, jump := range []time.Duration{4 * time.Second, time.Hour, 290 * 365 * 24 * time.Hour} {
		w := newStopwatch()
		m := w.meter(t, scatter.MeterOptions{Seconds: 3})
		w.pass(jump)
		m.Add("ahead", 1)
		w.pass(-jump)
		for range 5 {
			m.Add("a", 1000)
			w.pass(time.Second)
		}
		if loads := m.Loads(); len(loads) != 1 || loads[0].Peak != 1000 || loads[0].Total != 2000 {
			t.Errorf("set back by %v: %+v", jump, loads)
		}
	}
	w := &stopwatch{time.Unix(-100, 0)}
	m := w.meter(t, scatter.MeterOptions{Seconds: 3})
	m.Add("a", 1)
	w.pass(time.Second)
	if m.Add("a", 1); fmt.Sprint(m.Loads()) != "[{a 1 0 2 0.0005}]" {
		t.Errorf("before 1970: %v", m.Loads())
	}
}

// TestMeterFindsHotPartitions: with fewer counters than partitions, no heavy partition is missed, no count is too low, and
// each is too high by Over at most.
func TestMeterFindsHotPartitions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const counters = 20
		m := newStopwatch().meter(t, scatter.MeterOptions{Partitions: counters, Target: 1000})
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		heavy := rapid.IntRange(0, 3).Draw(rt, "heavy")
		truth, total := map[string]int{}, 0
		for range 8_000 {
			p, n := fmt.Sprint("light", rng.IntN(2000)), 1+rng.IntN(3)
			if rng.IntN(4) < heavy {
				p = fmt.Sprint("heavy", rng.IntN(heavy))
			}
			m.Add(p, n)
			truth[p] += n
			total += n
		}
		loads := m.Loads()
		if len(loads) > counters {
			rt.Fatalf("%d partitions in %d counters", len(loads), counters)
		}
		told := map[string]bool{}
		for _, l := range loads {
			told[l.Partition] = true
			if l.Peak < truth[l.Partition] || l.Peak-l.Over > truth[l.Partition] || l.Over > total/counters {
				rt.Fatalf("%+v, and there were %d", l, truth[l.Partition])
			}
		}
		for p, n := range truth {
			if n > total/counters && !told[p] {
				rt.Fatalf("%s has %d of %d and is not told", p, n, total)
			}
		}
	})
}

func TestMeterIsSafe(t *testing.T) {
	m := assert.Must[*scatter.Meter](t)(scatter.NewMeter(&scatter.MeterOptions{Seconds: 600, Partitions: 3}))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 1000 {
				m.Add(fmt.Sprint(n%(i+2)), 1)
				if n%100 == 0 {
					m.Hot()
				}
			}
		})
	}
	all.Wait()
	total := 0
	for _, l := range m.Loads() {
		total += l.Total
	}
	assert.Equal(t, total, 4000, "counted")
}
