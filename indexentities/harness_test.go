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

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
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
)

var options = []option{inPartition, outside}

// world is where the tests' processes work: names, and how they keep employees.
type world struct {
	option
	global   bool // a global index: one group for all entities
	attempts int  // Schema.MaxAttempts
	values   func(*employee) []compoundkey.Part

	table, lists string
}

func (w *world) String() string {
	return string(w.option) + map[bool]string{true: "-global"}[w.global]
}

func (w *world) open(t testing.TB, s *storagetest.Service) *world {
	t.Helper()
	w.table, w.lists = s.TableName(t), s.TableName(t)
	p := assert.Must[*process](t)(w.start(s))
	assert.Check(t, p.account.Table(w.table).Create(t.Context()), p.account.Table(w.lists).Create(t.Context()))
	return w
}

// process is what one process has.
type process struct {
	account *tables.Account
	repo    *patterns.Repository[employee]
	index   *indexentities.Index[employee, compoundkey.Part]
	lists   *tables.Table // where the lists are
}

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
	p := &process{account: account, lists: account.Table(w.table)}
	values := w.valuesOf
	options := indexentities.Options[employee]{ByPartition: !w.global}
	switch w.option {
	case inPartition:
		p.index = indexentities.NewMultiInPartition("lastname", values)
	case outside:
		var lists *tables.Table
		if w.global {
			lists = account.Table(w.lists)
			p.lists = lists
		}
		p.index = indexentities.NewMultiInTable("lastname", values, lists, &options)
	}
	schema := patterns.Schema[employee]{Key: keyOf, Prefix: "empid", AllowEmptyPartition: true, MaxAttempts: w.attempts}
	p.repo, err = patterns.NewRepository(account.Table(w.table), schema, p.index)
	return p, err
}

// sales is the index for reads of the lists with employees of Sales.
func (w *world) sales(p *process) *indexentities.Index[employee, compoundkey.Part] {
	if w.global {
		return p.index
	}
	return p.index.In("Sales")
}

// valuesOf are the values of an employee.
func (w *world) valuesOf(e *employee) []compoundkey.Part {
	if w.values != nil {
		return w.values(e)
	}
	return []compoundkey.Part{byLastName(e)}
}

// departments are the groups that check reads.
var departments = []string{"Sales", "Marketing", "", "Inc.", "..", "R&D 'x'"}

// check holds the lists against the employees, and returns these as texts.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]string, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found, wanted, got, parts := map[tables.Key]string{}, map[string]int{}, map[string]int{}, map[string]compoundkey.Part{}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found[e.Key()] = textOf(e)
		group := e.Department
		if w.global {
			group = ""
		}
		own := map[string]bool{}
		for _, value := range w.valuesOf(e) {
			if !value.IsZero() {
				text := compoundkey.Join("", value)
				parts[text], own[fmt.Sprintf("%q %q: %s", group, text, e.Key())] = value, true
			}
		}
		for text := range own {
			wanted[text]++
		}
	}
	for _, group := range departments {
		if w.global && group != "" {
			continue
		}
		if err := w.read(ctx, p, group, parts, got); err != nil {
			return nil, err
		}
	}
	if !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("the lists hold\n%s\nand should hold\n%s", lines(got), lines(wanted))
	}
	return found, harness.Clean(ctx, p.repo.Verify, nil)
}

// read adds what the lists of a group hold.
func (w *world) read(ctx context.Context, p *process, group string, parts map[string]compoundkey.Part, to map[string]int) error {
	x := p.index
	if !w.global {
		x = x.In(group)
	}
	for v, err := range x.Values(ctx) {
		if err != nil {
			return err
		}
		part, known := parts[v.Key]
		if !known {
			return fmt.Errorf("no entity has the value %q", v.Key)
		}
		keys, err := x.Keys(ctx, part)
		if err != nil || len(keys) != v.Count {
			return fmt.Errorf("%q has %d keys, and %v, %w", v.Key, v.Count, keys, err)
		}
		for _, key := range keys {
			to[fmt.Sprintf("%q %q: %s", group, v.Key, key)]++
		}
	}
	return nil
}

// audit is how Verify looks at the process's lists.
func (p *process) audit() *driver.Effect {
	return &patterns.HostOf(p.repo).Patterns()[0].Effect
}

// heldBy is what an index's lists hold, and how often.
func heldBy(ctx context.Context, index *driver.Effect, scope driver.Scope) (map[string]int, error) {
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
