package indexentities_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Note       string
	Tags       []string `table:",json,omitempty"`
}

func with(id int, lastName string) *employee {
	return &employee{Department: "Sales", ID: id, LastName: lastName, Note: "first"}
}

func keyOf(e *employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

func at(id int) tables.Key { return keyOf(with(id, "")) }

// option is where the lists are.
type option string

const (
	inPartition option = "partition"
	outside     option = "outside"
	inBlobs     option = "blobs"
)

var options = []option{inPartition, outside, inBlobs}

// world is where the tests' processes work: names, and how they keep employees.
type world struct {
	option
	async    bool
	global   bool // a global index: one group for all entities
	attempts int  // Schema.MaxAttempts
	values   func(*employee) []compoundkey.Part

	table, lists, queue, container string
}

func (w *world) String() string {
	return string(w.option) + map[bool]string{true: "-async"}[w.async] + map[bool]string{true: "-global"}[w.global]
}

func (w *world) open(t testing.TB, s *storagetest.Service) *world {
	t.Helper()
	w.table, w.lists, w.queue, w.container = s.TableName(t), s.TableName(t), s.QueueName(t), s.ContainerName(t)
	p := harness.Must[*process](t)(w.start(s))
	_, err := blobstorage.Container(p.account, w.container).Create(t.Context(), nil)
	for _, err := range []error{err, p.account.Table(w.table).Create(t.Context()), p.account.Table(w.lists).Create(t.Context()), p.queue.Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// process is what one process has.
type process struct {
	account *tables.Account
	repo    *patterns.Repository[employee]
	queue   *eventual.Queue
	index   *indexentities.Index[employee]
	lists   *tables.Table // where the lists are, unless in blobs
}

const visibility = 10 * time.Second

// byLastName leaves employees without a name out.
func byLastName(e *employee) compoundkey.Part {
	if e.LastName == "" {
		return compoundkey.Part{}
	}
	return compoundkey.String(e.LastName)
}

// start is a process of the world.
func (w *world) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: visibility})
	if err != nil {
		return nil, err
	}
	p := &process{account: account, queue: queue, lists: account.Table(w.table)}
	values := w.values
	if values == nil {
		values = func(e *employee) []compoundkey.Part { return []compoundkey.Part{byLastName(e)} }
	}
	options := indexentities.Options[employee]{ByPartition: !w.global}
	switch w.option {
	case inPartition:
		p.index = indexentities.NewInPartition("lastname", values)
	case outside:
		var lists *tables.Table
		if w.global {
			lists = account.Table(w.lists)
			p.lists = lists
		}
		p.index = indexentities.NewInTable("lastname", values, lists, &options)
	case inBlobs:
		p.index = indexentities.NewInBlobs("lastname", values, blobstorage.Container(account, w.container), &options)
	}
	schema := patterns.Schema[employee]{Key: keyOf, Rows: compoundkey.Starting("empid"), MaxAttempts: w.attempts}
	p.repo, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), schema, harness.AsyncIf[employee](w.async, p.index)...)
	return p, err
}

// sales is the index for reads of the lists with employees of Sales.
func (w *world) sales(p *process) *indexentities.Index[employee] {
	if w.global {
		return p.index
	}
	return p.index.In("Sales")
}

// openQueue opens the queue as a process does.
func (w *world) openQueue(s *storagetest.Service) (*eventual.Queue, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	return p.queue, nil
}

// drain lets every message appear and workers handle them, until none is left.
func (w *world) drain(ctx context.Context, s *storagetest.Service) error {
	if w.option == inPartition {
		return nil
	}
	return harness.Drain(ctx, s, visibility, w.openQueue)
}

// drainNow handles what is visible now.
func drainNow(ctx context.Context, p *process) error { return harness.DrainNow(ctx, p.queue) }

// check holds the lists against the employees, and returns these as texts.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]string, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found, wanted := map[tables.Key]string{}, map[string]int{}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found[e.Key()] = textOf(e)
		facts, err := p.audit().Expected(e)
		if err != nil {
			return nil, err
		}
		for _, fact := range facts {
			wanted[factText(fact)]++
		}
	}
	got, err := heldBy(ctx, p.audit(), driver.Scope{})
	if err != nil {
		return nil, err
	}
	if !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("the lists hold\n%s\nand should hold\n%s", lines(got), lines(wanted))
	}
	return found, nil
}

// audit is how Verify looks at the process's lists.
func (p *process) audit() *driver.Audit[employee] {
	return patterns.HostOf(p.repo).Patterns()[0].Audit
}

// heldBy is what an index's lists hold, and how often.
func heldBy(ctx context.Context, index *driver.Audit[employee], scope driver.Scope) (map[string]int, error) {
	got := map[string]int{}
	for fact, err := range index.List(ctx, scope) {
		if err := cmp.Or(err, fact.Err); err != nil {
			return nil, err
		}
		got[factText(fact)]++
	}
	return got, nil
}

func factText(f driver.Fact) string {
	return fmt.Sprintf("%q: %s %s", f.Place, f.Entity.Partition, f.Entity.Row)
}

func textOf(e *employee) string { return fmt.Sprintf("%s: %s", e.LastName, e.Note) }

func lines(m map[string]int) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\t%s: %d\n", key, m[key])
	}
	return b.String()
}

// rowsOf are the row keys of keys.
func rowsOf(keys []tables.Key) []string {
	rows := []string{}
	for _, key := range keys {
		rows = append(rows, key.Row)
	}
	return rows
}

// idsOf are the ids of what a sequence yields.
func idsOf(t testing.TB, found iter.Seq2[*employee, error]) []int {
	t.Helper()
	ids := []int{}
	for e, err := range found {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}
