package logtail_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type claim struct {
	tables.Meta
	logtail.Entry
	Employee string
	Category string
	Amount   int
}

// day is when the tests' claims are made.
var day = time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func accountOf(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

func schemaAt(now func() time.Time) logtail.Schema[claim] {
	return logtail.Schema[claim]{Partition: func(c *claim) string { return c.Employee }, Now: now}
}

// openLog is a log in a new table, with an index by category.
func openLog(t testing.TB, s *storagetest.Service, now func() time.Time) *logtail.Log[claim] {
	t.Helper()
	l := openTable(t, s, s.TableName(t), schemaAt(now))
	assert.Check(t, l.Table().Create(t.Context()))
	return l
}

func openTable(t testing.TB, s *storagetest.Service, table string, schema logtail.Schema[claim]) *logtail.Log[claim] {
	t.Helper()
	return assert.Must[*logtail.Log[claim]](t)(logtail.New(accountOf(t, s).Table(table), schema, byCategory()))
}

func byCategory() *intrapartition.Unique[claim, compoundkey.Part] {
	return intrapartition.NewUnique("category", func(c *claim) compoundkey.Part {
		if c.Category == "" {
			return compoundkey.Part{}
		}
		return compoundkey.Tuple(compoundkey.String(c.Category), compoundkey.TimeDesc(c.LoggedAt), compoundkey.String(c.LogID))
	}, nil)
}

// amounts are those of what a sequence yields.
func amounts(t testing.TB, all iter.Seq2[*claim, error]) []int {
	t.Helper()
	got := []int{}
	for c, err := range all {
		assert.Check(t, err)
		got = append(got, c.Amount)
	}
	return got
}

func amountsOf(claims []*claim) []int {
	got := []int{}
	for _, c := range claims {
		got = append(got, c.Amount)
	}
	return got
}

// fill loads claims 1 to n of one employee, a second after the other, in bulk. Amounts are 1 for the oldest.
func fill(t testing.TB, l *logtail.Log[claim], employee string, n int) {
	t.Helper()
	all := iter.Seq2[*claim, error](func(yield func(*claim, error) bool) {
		for i := range n {
			c := &claim{Entry: logtail.Entry{LoggedAt: day.Add(time.Duration(i) * time.Second), LogID: fmt.Sprintf("%07d", i)}, Employee: employee, Amount: i + 1}
			if !yield(c, nil) {
				return
			}
		}
	})
	if p, err := l.Repository().BulkNonAtomic(t.Context(), all, nil); err != nil || p.Written != int64(n) {
		t.Fatal(p.Written, err)
	}
}

// down is from, from-1 and so on, n of them.
func down(from, n int) []int {
	all := []int{}
	for i := range n {
		all = append(all, from-i)
	}
	return all
}
