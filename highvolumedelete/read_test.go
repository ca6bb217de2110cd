package highvolumedelete_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func scan(q tables.Query[login]) tables.Query[login] { return q.AllowTableScan() }

// TestBetweenOverRewoundMidnight: St. John's set its clock from 00:01 back to 23:01 of the day before, so that the first minute of
// 7 November is before the last hour of the 6th. Nothing is left out for that, and the order is that of time.
func TestBetweenOverRewoundMidnight(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	schema := schemaOf(nameOf(t, s), func() time.Time { return time.Date(2010, 11, 8, 12, 0, 0, 0, time.UTC) })
	schema.Location = location(t, "America/St_Johns")
	logins := mustStart(t, s, schema)
	back := time.Date(2010, 11, 7, 2, 31, 0, 0, time.UTC)
	all := []time.Time{back.Add(-2 * time.Minute), back.Add(-30 * time.Second), back.Add(time.Minute), back.Add(time.Hour), back.Add(30 * time.Hour)}
	insert(t, logins, "june", all...)
	assert.Equal(t, labels(assert.Must[[]string](t)(logins.List(t.Context())), schema.Name), "[D20101106 D20101107 D20101108]", "the tables")
	for i, from := range all {
		for j, to := range append(all, time.Time{})[i+1:] {
			want := []string{}
			for _, at := range all[i : i+j+1] {
				want = append(want, "june "+at.Format("02T15:04"))
			}
			for _, newest := range []bool{false, true} {
				got := assert.Must[[]string](t)(times(t.Context(), logins.Between(t.Context(), from, to, &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}, Newest: newest})))
				if newest {
					slices.Reverse(got)
				}
				assert.Slices(t, got, want, "from %v to %v, newest %v", from, to, newest)
			}
		}
	}
	requests.Reset()
	assert.Must[[]string](t)(times(t.Context(), logins.Between(t.Context(), back.Add(time.Hour), back.Add(2*time.Hour), &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}})))
	assert.Equal(t, requests.Count(), 1, "requests for an hour of one day")
}

// TestBetween: over days with and without a table, in both directions, whatever order the rows are in.
func TestBetween(t *testing.T) {
	ctx := t.Context()
	s, requests := harness.CountedService(storagetest.Open(t))
	name := nameOf(t, s)
	schema := schemaOf(name, func() time.Time { return noon })
	logins := mustStart(t, s, schema)
	at := func(day, hour int) time.Time { return time.Date(2014, 8, day, hour, 0, 0, 0, time.UTC) }
	insert(t, logins, "june", at(18, 9), at(18, 10), at(20, 0), at(20, 23), at(22, 8))
	insert(t, logins, "otto", at(18, 9).Add(time.Minute), at(21, 5), at(22, 7))
	schema.RowOrder = highvolumedelete.Unordered
	unordered := mustStart(t, s, schema)
	june, both := []string{"june"}, []string{"june", "otto"}
	for _, c := range []struct {
		name       string
		from, to   time.Time
		partitions []string
		want       []string
		requests   int
	}{
		{"june", at(18, 0), at(23, 0), june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00", "june 20T23:00", "june 22T08:00"}, 5},
		{"june, half open", at(18, 10), at(20, 23), june, []string{"june 18T10:00", "june 20T00:00"}, 3},
		{"both", at(18, 0), at(23, 0), both, []string{"june 18T09:00", "otto 18T09:01", "june 18T10:00", "june 20T00:00", "june 20T23:00", "otto 21T05:00", "otto 22T07:00", "june 22T08:00"}, 9},
		{"all", at(18, 0), at(21, 0), nil, []string{"june 18T09:00", "otto 18T09:01", "june 18T10:00", "june 20T00:00", "june 20T23:00"}, 3},
		{"without bounds", time.Time{}, time.Time{}, june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00", "june 20T23:00", "june 22T08:00"}, 5},
		{"from", at(20, 1), time.Time{}, june, []string{"june 20T23:00", "june 22T08:00"}, 4},
		{"to", time.Time{}, at(20, 1), june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00"}, 3},
		{"a hundred years", at(18, 0).AddDate(-50, 0, 0), at(18, 0).AddDate(50, 0, 0), june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00", "june 20T23:00", "june 22T08:00"}, 5},
		{"nobody", at(18, 0), at(19, 0), []string{"ken"}, []string{}, 1},
		{"backwards", at(20, 0), at(18, 0), june, []string{}, 0},
	} {
		for _, newest := range []bool{false, true} {
			options := &highvolumedelete.ReadOptions[login]{Newest: newest, Partitions: c.partitions}
			if c.partitions == nil {
				options.Query = scan
			}
			want := slices.Clone(c.want)
			if newest {
				slices.Reverse(want)
			}
			for _, process := range []*highvolumedelete.Tables[login]{logins, unordered} {
				requests.Reset()
				got := assert.Must[[]string](t)(times(ctx, process.Between(ctx, c.from, c.to, options)))
				assert.Slices(t, got, want, "%s, newest %v", c.name, newest)
				if len(c.partitions) == 1 && requests.Count() != c.requests {
					t.Errorf("%s, newest %v: %d requests, want %d", c.name, newest, requests.Count(), c.requests)
				}
			}
		}
	}
	assert.ErrorIs(t, assert.Err(times(ctx, logins.Between(ctx, at(18, 0), at(19, 0), nil))), tables.ErrTableScan, "without partitions")
	_, err := times(ctx, unordered.Between(ctx, at(18, 0), at(19, 0), &highvolumedelete.ReadOptions[login]{Partitions: june, Limit: 1}))
	assert.ErrorIs(t, err, tables.ErrTooLarge, "over the limit")
	_, err = times(ctx, logins.Between(ctx, at(18, 0).AddDate(9000, 0, 0), time.Time{}, nil))
	assert.ErrorIs(t, err, tables.ErrInvalid, "from a year without periods")
}

// TestEarlyStop: a loop that is left reads no further table, and only the pages it needs.
func TestEarlyStop(t *testing.T) {
	ctx := t.Context()
	s, requests := harness.CountedService(storagetest.Simulator(t, nil))
	logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
	fill(t, logins, 5, 1, 20)
	from, to := noon.AddDate(0, 0, -10), noon.AddDate(0, 0, 1)
	for _, newest := range []bool{false, true} {
		requests.Reset()
		n := 0
		for _, err := range logins.Between(ctx, from, to, &highvolumedelete.ReadOptions[login]{Newest: newest, Partitions: []string{"user0000"},
			Query: func(q tables.Query[login]) tables.Query[login] { return q.PageSize(10) }}) {
			assert.Check(t, err)
			if n++; n == 3 {
				break
			}
		}
		want := 7 // six days without a table, and a page
		if newest {
			want = 3 // tomorrow, and today in two pages since its rows are oldest first
		}
		assert.Equal(t, requests.Count(), want, "newest %v: requests for the first three", newest)
	}
}

// TestReadFollowsRowOrder: newest first without memory where rows are so, and an order that is not kept is told.
func TestReadFollowsRowOrder(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	schema := schemaOf("Tail", func() time.Time { return noon })
	schema.RowOrder = highvolumedelete.NewestFirst
	schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
		return patterns.NewRepository(table, patterns.Schema[login]{Prefix: "at", Key: func(l *login) tables.Key {
			return tables.Key{Partition: l.User, Row: compoundkey.Join("at", compoundkey.TimeDesc(l.At))}
		}})
	}
	logins := mustStart(t, s, schema)
	fill(t, logins, 3, 2, 30)
	options := &highvolumedelete.ReadOptions[login]{Newest: true, Partitions: []string{"user0000", "user0001"}, Limit: 1} // nothing is held
	last, n := noon.AddDate(1, 0, 0), 0
	for l, err := range logins.Between(ctx, time.Time{}, time.Time{}, options) {
		if err != nil || l.At.After(last) {
			t.Fatal(n, l, err)
		}
		last = l.At
		n++
	}
	assert.Equal(t, n, 180, "entities")
	schema.RowOrder = highvolumedelete.OldestFirst
	wrong := mustStart(t, s, schema)
	options.Newest = false
	if _, err := times(ctx, wrong.Between(ctx, time.Time{}, time.Time{}, options)); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("rows in another order than declared: %v, want ErrInvalid", err)
	}
	options.Partitions = options.Partitions[:1]
	assert.ErrorIs(t, assert.Err(times(ctx, wrong.Between(ctx, time.Time{}, time.Time{}, options))), tables.ErrInvalid, "the same in one partition")
}

// TestReadWhileDropped: a table that goes while it is read ends there, and the reader goes on with the next period.
func TestReadWhileDropped(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
	fill(t, logins, 3, 1, 20)
	got := map[string]int{}
	for l, err := range logins.Between(ctx, noon.AddDate(0, 0, -5), noon.Add(time.Hour), &highvolumedelete.ReadOptions[login]{Partitions: []string{"user0000"},
		Query: func(q tables.Query[login]) tables.Query[login] { return q.PageSize(10) }}) {
		assert.Check(t, err)
		got[fmt.Sprint(l.At.Day())]++
		if l.At.Day() == 20 {
			assert.Check(t, assert.Err(logins.Drop(ctx, noon.AddDate(0, 0, -1), noGrace())))
		}
	}
	if got["20"] != 10 || got["21"] != 20 || got["22"] != 20 {
		t.Errorf("%v", got)
	}
}
