package highvolumedelete_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestUnits: periods of each unit follow one another over the borders of months and years, in summer and winter, up to the last
// there is: they are made, written, read in order both ways, and dropped.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit     highvolumedelete.Unit
		place    string
		at       [3]string // one of each period
		want     string    // their tables
		boundary string    // the beginning of the third
	}{
		{highvolumedelete.Hour, "Europe/Berlin", [3]string{"2014-10-26T00:59:59Z", "2014-10-26T01:00:00Z", "2014-10-26T02:30:00Z"},
			"[H2014102600 H2014102601 H2014102602]", "2014-10-26T02:00:00Z"},
		{highvolumedelete.Day, "Europe/Berlin", [3]string{"2014-10-24T22:00:00Z", "2014-10-26T22:59:59Z", "2014-10-26T23:00:00Z"}, // 25 hours
			"[D20141025 D20141026 D20141027]", "2014-10-26T23:00:00Z"},
		{highvolumedelete.Day, "Europe/Berlin", [3]string{"2014-03-28T23:00:00Z", "2014-03-30T21:59:59Z", "2014-03-30T22:00:00Z"}, // 23 hours
			"[D20140329 D20140330 D20140331]", "2014-03-30T22:00:00Z"},
		{highvolumedelete.Week, "America/Sao_Paulo", [3]string{"2018-10-29T02:59:59Z", "2018-11-05T01:59:59Z", "2018-11-05T02:00:00Z"},
			"[W20181022 W20181029 W20181105]", "2018-11-05T02:00:00Z"},
		{highvolumedelete.Week, "UTC", [3]string{"2014-12-28T23:59:59Z", "2014-12-29T00:00:00Z", "2015-01-05T00:00:00Z"},
			"[W20141222 W20141229 W20150105]", "2015-01-05T00:00:00Z"},
		{highvolumedelete.Month, "UTC", [3]string{"2015-12-31T23:59:59Z", "2016-01-31T23:59:59Z", "2016-02-29T12:00:00Z"},
			"[M201512 M201601 M201602]", "2016-02-01T00:00:00Z"},
		{highvolumedelete.Month, "Asia/Amman", [3]string{"2020-12-31T21:59:59Z", "2020-12-31T22:00:00Z", "2021-02-15T00:00:00Z"},
			"[M202012 M202101 M202102]", "2021-01-31T22:00:00Z"},
		{highvolumedelete.Hour, "UTC", [3]string{"9999-12-31T21:00:00Z", "9999-12-31T22:00:00Z", "9999-12-31T23:59:59.9999999Z"},
			"[H9999123121 H9999123122 H9999123123]", "9999-12-31T23:00:00Z"},
		{highvolumedelete.Week, "UTC", [3]string{"9999-12-19T23:00:00Z", "9999-12-20T00:00:00Z", "9999-12-31T23:59:59.9999999Z"},
			"[W99991213 W99991220 W99991227]", "9999-12-27T00:00:00Z"},
		{highvolumedelete.Month, "UTC", [3]string{"9999-10-31T00:00:00Z", "9999-11-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"},
			"[M999910 M999911 M999912]", "9999-12-01T00:00:00Z"},
	} {
		t.Run(fmt.Sprint(c.unit, " ", c.place, " ", c.at[0][:10]), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			var at []time.Time
			for _, text := range c.at {
				at = append(at, assert.Must[time.Time](t)(time.Parse(time.RFC3339Nano, text)))
			}
			schema := schemaOf("Logins", func() time.Time { return at[2] })
			schema.Unit, schema.Location = c.unit, location(t, c.place)
			logins := mustStart(t, s, schema)
			assert.Check(t, logins.Prepare(ctx, at[0], at[2]))
			assert.Equal(t, labels(assert.Must[[]string](t)(logins.List(ctx)), "Logins"), c.want, "the tables")
			insert(t, logins, "june", at...)
			for _, newest := range []bool{false, true} {
				var got []string
				for l, err := range logins.Between(ctx, at[0], at[2].Add(1), &highvolumedelete.ReadOptions[login]{Newest: newest, Partitions: []string{"june"}}) {
					assert.Check(t, err)
					got = append(got, l.At.Format(time.RFC3339Nano))
				}
				want := fmt.Sprint(c.at)
				if newest {
					want = fmt.Sprint([]string{c.at[2], c.at[1], c.at[0]})
				}
				assert.Equal(t, fmt.Sprint(got), want, "newest %v: %v", newest, got)
			}
			report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, at[2], noGrace()))
			if !report.Mark.Equal(assert.Must[time.Time](t)(time.Parse(time.RFC3339, c.boundary))) || len(report.Tables) != 2 {
				t.Errorf("the mark is %v, dropped are %v", report.Mark.UTC(), report.Tables)
			}
			assert.ErrorIs(t, logins.Insert(ctx, &login{User: "late", At: report.Mark.Add(-100)}), highvolumedelete.ErrLate, "one before the mark")
			insert(t, logins, "early", report.Mark)
		})
	}
}

// TestYearsThatNoNameHas: times that no table can be named by are refused before any request.
func TestYearsThatNoNameHas(t *testing.T) {
	ctx := t.Context()
	s, requests := harness.CountedService(storagetest.Simulator(t, nil))
	now := &clock{noon}
	logins := mustStart(t, s, schemaOf("Logins", now.now))
	for _, at := range []time.Time{time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		l := &login{User: "june", At: at}
		_, repository := logins.Repository(at)
		_, get := logins.Get(ctx, at, tables.Key{Partition: "june", Row: "at"})
		_, drop := logins.Drop(ctx, at, noGrace())
		_, from := times(ctx, logins.Between(ctx, at, time.Time{}, nil))
		_, to := times(ctx, logins.Between(ctx, noon, time.Date(10000, 1, 1, 0, 0, 0, 1, time.UTC), nil))
		now.at = at
		present := logins.Insert(ctx, &login{User: "june", At: noon})
		_, presentDrop := logins.Drop(ctx, noon, noGrace())
		now.at = noon
		for name, err := range map[string]error{
			"Insert": logins.Insert(ctx, l), "Upsert": logins.Upsert(ctx, l), "Replace": logins.Replace(ctx, l), "Delete": logins.Delete(ctx, l),
			"Repository": repository, "Get": get, "Drop": drop, "Between from": from, "Between to": to,
			"Prepare from": logins.Prepare(ctx, at, noon), "Prepare to": logins.Prepare(ctx, noon, at), "the clock": present, "the clock of Drop": presentDrop,
		} {
			if !errors.Is(err, tables.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "the years 1 to 9999") {
				t.Errorf("%s of the year %d: %v, want ErrInvalid", name, at.Year(), err)
			}
		}
	}
	assert.Equal(t, requests.Count(), 0, "requests")
}
