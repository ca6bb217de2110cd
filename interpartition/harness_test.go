package interpartition_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Email      string
	Badge      string
}

func jones() *employee {
	return &employee{Department: "Sales", ID: 223, Name: "June Jones", Email: "jonesj@contoso.com", Badge: "B-1"}
}

// kind is how a world's indexes are declared, and whether its copies are settled in the background.
type kind struct{ unique, spread, background bool }

func (k kind) String() string {
	return map[bool]string{false: "shared", true: "unique"}[k.unique] + map[bool]string{false: "", true: "-spread"}[k.spread] + map[bool]string{false: "", true: "-background"}[k.background]
}

// spreadOver is Options.Spread.
func (k kind) spreadOver() int { return map[bool]int{true: 3}[k.spread] }

// world is where the tests' processes work: names, and how they keep employees.
type world struct {
	kind
	table, other string
}

func newWorld(t testing.TB, s *storagetest.Service, k kind) *world {
	t.Helper()
	w := &world{kind: k, table: s.TableName(t), other: s.TableName(t)}
	p := assert.Must[*process](t)(w.start(s))
	if err := p.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// process is what one process has: clients, handles, a repository with two indexes over partitions.
type process struct {
	store  *patterns.Store
	repo   *patterns.Repository[employee]
	email  *either[employee] // in the same table, by department
	badge  *either[employee] // in the table badges: a global index with a projection
	badges *tables.Table
}

// close waits for what goes on in the background.
func (p *process) close(ctx context.Context) error { return harness.Settle(ctx, p.store) }

func (w *world) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p := &process{}
	if p.store, err = patterns.Open("staff", &patterns.StoreOptions{Account: account, MaxOpen: map[bool]int{false: -1}[w.background]}); err != nil {
		return nil, err
	}
	p.badges = p.store.Table(w.other)
	p.email = newEither(w.unique, "email", emailOf, &interpartition.Options[employee]{ByPartition: true, Spread: w.spreadOver()})
	p.badge = newEither(w.unique, "badge", func(e *employee) compoundkey.Part { return text(e.Badge) },
		&interpartition.Options[employee]{Table: p.badges, Project: []string{"Name"}, Spread: w.spreadOver()})
	p.repo, err = patterns.NewRepository(p.store.Table(w.table), staffSchema("staff"), p.email, p.badge)
	return p, err
}

// staffSchema is the schema of employees.
func staffSchema(name string) patterns.Schema[employee] {
	return patterns.Schema[employee]{Name: name, Key: keyOf, Prefix: "empid"}
}

// open makes a repository of employees with other indexes, in a table of its own.
func (p *process) open(t testing.TB, s *storagetest.Service, name string, all ...patterns.Pattern[employee]) *patterns.Repository[employee] {
	t.Helper()
	repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.store.Table(s.TableName(t)), staffSchema(name), all...))
	assert.Check(t, p.store.Create(t.Context()))
	return repo
}

func keyOf(e *employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

func emailOf(e *employee) compoundkey.Part { return text(e.Email) }

// text is the key of a text, none for "".
func text(s string) compoundkey.Part {
	if s == "" {
		return compoundkey.Part{}
	}
	return compoundkey.String(s)
}

// check holds the stored rows of the indexes against the employees, and returns these as texts by key. No row may be marked.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]string, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found := map[tables.Key]string{}
	wanted := map[string]string{}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found[e.Key()] = textOf(e)
		for at, content := range map[string]string{
			e.Department + " " + e.Email: joined(e.Name, e.Email, e.Badge, e.Key().Row, string(e.ETag)),
			e.Badge:                      joined(e.Name, e.Key().Row),
		} {
			if at == e.Badge && e.Badge != "" || at != e.Badge && e.Email != "" {
				at = cmp.Or(map[bool]string{true: "badge " + at}[at == e.Badge], "email "+at)
				wanted[w.owned(at, e.Key())] = content
			}
		}
	}
	got, err := w.copies(ctx, p)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("the indexes hold\n%s\nand should hold\n%s", lines(got), lines(wanted))
	}
	return found, nil
}

// owned is the place of a copy, which in an index of shared values names its entity.
func (w *world) owned(at string, of tables.Key) string {
	if w.unique {
		return at
	}
	return at + " of " + of.Partition + " " + of.Row
}

// copies reads the rows of both indexes as they are stored, by place.
func (w *world) copies(ctx context.Context, p *process) (map[string]string, error) {
	got := map[string]string{}
	for _, table := range []*tables.Table{p.repo.Table(), p.badges} {
		rows, err := rawRows(ctx, table)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row["_tpPrimary"] == "" {
				continue
			}
			if row["_tpMark"] != "" {
				return nil, fmt.Errorf("row %q %q is marked", row["PartitionKey"], row["RowKey"])
			}
			var index, group, value string
			if index, group, _ = strings.Cut(row["PartitionKey"], "_"); index == "email" {
				group = strings.Split(group, "!")[0] + " "
			} else {
				group = ""
			}
			if err := compoundkey.Parse(row["RowKey"], "", append([]compoundkey.Target{compoundkey.ToString(&value)}, w.rest()...)...); err != nil {
				return nil, err
			}
			got[w.owned(index+" "+group+value, tables.Key{Partition: row["_tpPartition"], Row: row["_tpPrimary"]})] =
				joined(row["Name"], row["Email"], row["Badge"], row["_tpPrimary"], row["_tpVersion"])
		}
	}
	return got, nil
}

// rest are the parts that follow the index key in a row key.
func (w *world) rest() []compoundkey.Target {
	if w.unique {
		return nil
	}
	return []compoundkey.Target{compoundkey.ToString(new(string)), compoundkey.ToString(new(string))}
}

// rawRows reads a table as it is stored, with the properties that the library does not show.
func rawRows(ctx context.Context, table *tables.Table) (rows []map[string]string, err error) {
	pager := table.Client().NewListEntitiesPager(nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, body := range page.Entities {
			row, err := decode(body)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// marked counts the marked rows of the indexes.
func (p *process) marked(ctx context.Context) (n int, err error) {
	for _, table := range []*tables.Table{p.repo.Table(), p.badges} {
		rows, err := rawRows(ctx, table)
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			if row["_tpMark"] != "" {
				n++
			}
		}
	}
	return n, nil
}

// joined is what there is of some texts.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " ")
}

func textOf(e *employee) string { return fmt.Sprintf("%s <%s> %s", e.Name, e.Email, e.Badge) }

func lines(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\t%s: %s\n", key, m[key])
	}
	return b.String()
}
