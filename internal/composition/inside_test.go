package composition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// clerk is an entity of the write paths below.
type clerk struct {
	tables.Meta
	Department, ID, Email string
}

func june() *clerk { return &clerk{Department: "Sales", ID: "1", Email: "june@contoso.com"} }

// writePath is one of the ways in which the library sends a transaction.
type writePath struct {
	name            string
	within, outside bool // which indexes the clerks have
	do              func(ctx context.Context, p *writer) error
	rows            int // stored in the end
	once, always    counts
	sentOnce        bool // the transaction is not repeated if nobody can tell what became of it
	onlyMarks       bool // the transaction is not the commit
}

// counts are the requests of an operation of which one transaction fails, or all do.
type counts struct {
	refused int // each failure says that nothing was applied
	unknown int // nobody can tell
}

// writePaths are all of them. The SDK makes 4 attempts. A Commit that ends unknown reads two rows.
func writePaths() []writePath {
	insert := func(ctx context.Context, p *writer) error { return p.clerks.Insert(ctx, june()) }
	return []writePath{
		{name: "Transaction of 2", rows: 2, once: counts{2, 2}, always: counts{4, 6}, do: func(ctx context.Context, p *writer) error {
			x := p.table.NewTransaction()
			x.Insert(&tables.Entity{Key: tables.Key{Partition: "p", Row: "1"}})
			x.Insert(&tables.Entity{Key: tables.Key{Partition: "p", Row: "2"}})
			return second(x.Commit(ctx))
		}},
		{name: "Insert with an index", within: true, rows: 2, once: counts{2, 2}, always: counts{4, 6}, do: insert},
		{name: "BulkNonAtomic of 1,000", rows: 1000, once: counts{11, 11}, always: counts{4, 6}, do: func(ctx context.Context, p *writer) error {
			return second(p.table.Entities().BulkNonAtomic(ctx, thousand(), nil))
		}},
		{name: "Insert with an outside index", outside: true, onlyMarks: true, rows: 3, once: counts{4, 4}, always: counts{6, 24}, do: insert},
		{name: "Insert with both", within: true, outside: true, sentOnce: true, rows: 3, once: counts{4, 4}, always: counts{7, 4}, do: insert},
	}
}

func thousand() iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range 1000 {
			if !yield(&tables.Entity{Key: tables.Key{Partition: "p", Row: fmt.Sprintf("%04d", i)}}, nil) {
				return
			}
		}
	}
}

// writer is one process of a write path.
type writer struct {
	table  *tables.Table
	clerks *patterns.Repository[clerk]
}

func (w *writePath) open(s *storagetest.Service) (*writer, error) {
	account, err := open(s)
	if err != nil {
		return nil, err
	}
	p := &writer{table: account.Table("Clerks")}
	schema := patterns.Schema[clerk]{Prefix: "id", Key: func(c *clerk) tables.Key {
		return tables.Key{Partition: c.Department, Row: compoundkey.Join("id", compoundkey.String(c.ID))}
	}}
	email := func(c *clerk) compoundkey.Part { return compoundkey.String(c.Email) }
	var kept []patterns.Pattern[clerk]
	if w.within {
		kept = append(kept, intrapartition.NewUnique("within", email, nil))
	}
	if w.outside {
		keys := func(c *clerk) []compoundkey.Part {
			all := []compoundkey.Part{email(c)}
			if !w.within {
				all = append(all, compoundkey.String(c.ID)) // so that a transaction marks both
			}
			return all
		}
		kept = append(kept, interpartition.NewMulti("outside", keys, &interpartition.Options[clerk]{ByPartition: true}))
	}
	p.clerks, err = patterns.NewRepository(p.table, schema, kept...)
	return p, err
}

// TestFailuresInsideTransactions: whatever the library sends as a transaction survives one transient failure inside the answer,
// and ends in the documented error after all repetitions: ErrUnavailable where the service says that nothing was applied,
// ErrUnknownOutcome where nobody can tell.
func TestFailuresInsideTransactions(t *testing.T) {
	for _, w := range writePaths() {
		for _, fault := range []storagetest.Inside{
			{Status: 503, Code: "ServerBusy"}, {Status: 503}, {Status: 500}, {Status: 500, Code: "OperationTimedOut"}, {Status: 429}, {Status: 429, Code: "TooManyRequests"},
			{Status: 503, Applied: true}, {Status: 500, Applied: true}, {Status: 500, Code: "OperationTimedOut", Applied: true},
		} {
			t.Run(fmt.Sprintf("%s/%v", w.name, fault), func(t *testing.T) {
				c := failingInside{path: w, fault: fault}
				c.run(t, true)
				c.run(t, false)
			})
		}
	}
}

type failingInside struct {
	path  writePath
	fault storagetest.Inside
}

// run has one transaction fail, or all of them.
func (c failingInside) run(t *testing.T, once bool) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	plain := assert.Must[*writer](t)(c.path.open(s))
	assert.Check(t, plain.table.Create(ctx))
	times := 1
	if !once {
		times = 1_000_000
	}
	faulty, faults := s.Faulty(storagetest.Times(times, c.fault))
	err := c.path.do(ctx, assert.Must[*writer](t)(c.path.open(faulty)))
	if want := c.want(once); want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("once %v: error is %v, want %v", once, err, want)
	}
	if got, want := len(faults.Calls()), c.requests(once); !c.fault.Applied && got != want {
		t.Errorf("once %v: %d requests, want %d: %v", once, got, want, faults.Calls())
	}
	if c.path.outside {
		assert.Check(t, clean(ctx, plain.clerks))
	}
	marked, rows := assert.Must[map[tables.Key]bool](t)(harness.Marked(ctx, plain.table)), 0
	for row, readErr := range plain.table.Entities().Query().AllowTableScan().All(ctx) {
		assert.Check(t, readErr)
		if err == nil || !marked[row.Key] {
			rows++
		}
	}
	if want := c.path.rows; err == nil && rows != want || err != nil && rows != 0 {
		t.Errorf("once %v: %d rows, want %d after nil and 0 after an error, which is %v", once, rows, want, err)
	}
}

// refuses reports whether the failure says that nothing was applied.
func (c failingInside) refuses() bool { return c.fault.Status == 429 || c.fault.Code == "ServerBusy" }

// want is the error of the call.
func (c failingInside) want(once bool) error {
	switch {
	case once && (!c.path.sentOnce || c.refuses()), c.fault.Applied: // a row with the id of the write proves that it was applied
		return nil
	case c.refuses() || c.path.onlyMarks:
		return tables.ErrUnavailable
	}
	return tables.ErrUnknownOutcome
}

func (c failingInside) requests(once bool) int {
	n := c.path.always
	if once {
		n = c.path.once
	}
	if c.refuses() {
		return n.refused
	}
	return n.unknown
}
