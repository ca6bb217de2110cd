package logtail_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestLatestIsOneRequest: whatever the size of the partition, and of its neighbours.
func TestLatestIsOneRequest(t *testing.T) {
	sizes := []int{100, 4_000}
	if harness.Thorough() {
		sizes[1] = 10_000
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s, requests := harness.CountedService(storagetest.Open(t))
			l := openLog(t, s, nil)
			fill(t, l, "223", size)
			fill(t, l, "222", 20)
			fill(t, l, "2231", 20)
			for _, n := range []int{1, 10, 100, 1000} {
				requests.Reset()
				latest := assert.Must[[]*claim](t)(l.Latest(t.Context(), "223", n))
				if got := amountsOf(latest); !slices.Equal(got, down(size, min(n, size))) || requests.Count() != 1 {
					t.Errorf("the latest %d of %d: %d entries with %d requests, want 1", n, size, len(got), requests.Count())
				}
			}
			if size > 1000 {
				requests.Reset()
				if got := assert.Must[[]*claim](t)(l.Latest(t.Context(), "223", 2500)); len(got) != 2500 || requests.Count() != 3 {
					t.Errorf("the latest 2,500: %d with %d requests, want 3", len(got), requests.Count())
				}
			}
			assert.Len(t, assert.Must[[]*claim](t)(l.Latest(t.Context(), "nobody", 10)), 0, "nobody")
			assert.ErrorIs(t, assert.Err(l.Latest(t.Context(), "223", 0)), tables.ErrInvalid, "the latest 0")
		})
	}
}

func TestBetween(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	l := openLog(t, s, nil)
	fill(t, l, "223", 50)
	at := func(n int) time.Time { return day.Add(time.Duration(n-1) * time.Second) } // of amount n
	for _, c := range []struct {
		name     string
		from, to time.Time
		want     []int
	}{
		{"all", time.Time{}, time.Time{}, down(50, 50)},
		{"half open", at(10), at(13), []int{12, 11, 10}},
		{"from", at(49), time.Time{}, []int{50, 49}},
		{"to", time.Time{}, at(3), []int{2, 1}},
		{"finer than a tick", at(10).Add(1), at(12).Add(1), []int{12, 11}},
		{"within a tick", at(10).Add(1), at(10).Add(99), nil},
		{"another zone", at(10).In(time.FixedZone("", -3600)), at(11).In(time.FixedZone("", 3600)), []int{10}},
		{"nothing", at(60), at(70), nil},
		{"backwards", at(13), at(10), nil},
		{"the end of time", at(50), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), []int{50}},
	} {
		requests.Reset()
		if got := amounts(t, l.Between(t.Context(), "223", c.from, c.to)); !slices.Equal(got, slices.Concat([]int{}, c.want)) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if want := 1; c.name != "backwards" && c.name != "within a tick" && requests.Count() != want {
			t.Errorf("%s: %d requests, want %d", c.name, requests.Count(), want)
		}
	}
	last := error(nil)
	for _, err := range l.Between(t.Context(), "223", time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}) {
		last = err
	}
	assert.ErrorIs(t, last, tables.ErrInvalid, "from the year 10001")
	query := l.Query("223", at(10), at(40))
	assert.Equal(t, assert.Must[tables.Plan](t)(query.Plan()).Class, tables.RangeQuery, "the class")
	assert.Slices(t, amounts(t, query.Where(tables.Gt("Amount", 35)).Select("Amount").All(t.Context())), down(39, 4), "with a condition")
}

// TestIndexesCompose: the rows of an index are in the partition, and in nobody's way.
func TestIndexesCompose(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	categories := byCategory()
	table := accountOf(t, s).Table(s.TableName(t))
	c := &clock{day}
	l := assert.Must[*logtail.Log[claim]](t)(logtail.New(table, schemaAt(c.now), categories))
	assert.Check(t, table.Create(ctx))
	for i, category := range []string{"Travel", "Meals", "Travel", "", "Meals", "Travel"} {
		assert.Check(t, l.Append(ctx, &claim{Employee: "223", Category: category, Amount: i}))
	}
	assert.Slices(t, amountsOf(assert.Must[[]*claim](t)(l.Latest(ctx, "223", 10))), down(5, 6), "the latest")
	travel := compoundkey.Exactly(compoundkey.String("Travel"))
	assert.Slices(t, amounts(t, categories.In("223").Range(ctx, travel)), []int{5, 2, 0}, "the latest for travel")
	// The newest of several partitions.
	assert.Check(t, l.Append(ctx, &claim{Employee: "7", Amount: 100}))
	merged := l.Repository().Query().Top(3).AllPartitions(ctx, []string{"223", "7"}, &tables.ParallelOptions[claim]{Order: l.NewestFirst})
	assert.Slices(t, amounts(t, merged), []int{100, 5, 4}, "the latest of two partitions")
}

// TestUnorderedIsRefused: a service that returns entities in no order of their keys is not believed.
func TestUnorderedIsRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	l := openLog(t, s, nil)
	fill(t, l, "223", 200)
	s.SetChaos(storagetest.Chaos{Unordered: true})
	if got, err := l.Latest(t.Context(), "223", 100); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("Latest: %d entries, %v, want ErrGarbled", len(got), err)
	}
	last := error(nil)
	for _, err := range l.Between(t.Context(), "223", time.Time{}, time.Time{}) {
		last = err
	}
	assert.ErrorIs(t, last, tables.ErrGarbled, "Between")
	f := assert.Must[*logtail.Follower[claim]](t)(l.Follower("223", "", nil))
	last = nil
	for _, err := range f.Poll(t.Context()) {
		last = err
	}
	assert.ErrorIs(t, last, tables.ErrGarbled, "Poll")
}
