package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// people is a repository of persons with an index by email, its prefix declared.
func people(t testing.TB, a *tables.Account) (*patterns.Repository[person], *intrapartition.Unique[person, string]) {
	t.Helper()
	email := intrapartition.NewUnique("email", func(p *person) string {
		if p.Email == "" {
			return ""
		}
		return p.Email
	}, nil)
	return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, a), personSchema(), email)), email
}

func TestRepositoryUnknownOldState(t *testing.T) {
	ctx := context.Background()
	repo, email := people(t, harness.Account(t))
	e := ann()
	harness.WantKind(t, repo.Replace(ctx, e), tables.ErrInvalid) // never read
	harness.WantKind(t, repo.ReplaceUnconditional(ctx, e), tables.ErrNotFound)
	harness.WantKind(t, repo.DeleteUnconditional(ctx, personSchema().Key(e)), tables.ErrNotFound)
	if err := repo.Upsert(ctx, e); err != nil {
		t.Fatal(err)
	}
	first := e.Incarnation()
	other := ann()
	other.Email = "other@contoso.com"
	if err := repo.Upsert(ctx, other); err != nil {
		t.Fatal(err)
	}
	if other.Incarnation() != first {
		t.Fatal("an upsert of an entity that is there began a new life of it")
	}
	if _, err := email.In("red").Get(ctx, "ann@contoso.com"); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("the old index row is left over: %v", err)
	}
	harness.WantKind(t, repo.Replace(ctx, e), tables.ErrConflict)
	if err := repo.ReplaceUnconditional(ctx, e); err != nil {
		t.Fatal(err)
	}
	if err := repo.DeleteUnconditional(ctx, e.Key()); err != nil {
		t.Fatal(err)
	}
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	if e.Incarnation() == first {
		t.Fatal("an insert after a delete has the incarnation of the old entity")
	}
	moved := *e
	moved.ID = 8
	if err := harness.WantKind(t, repo.Replace(ctx, &moved), tables.ErrInvalid); !strings.Contains(err.Error(), "key has changed") {
		t.Fatal(err)
	}
}

func TestRepositoryUpdateUnderConflicts(t *testing.T) {
	ctx := context.Background()
	repo, email := people(t, harness.Account(t))
	e := ann()
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 5
	var running sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		running.Go(func() {
			for range each {
				_, err := repo.Update(ctx, e.Key(), func(p *person) error {
					p.Salary++
					p.Email = fmt.Sprintf("ann%d@contoso.com", p.Salary)
					return nil
				})
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := int64(91_000 + writers*each)
	got, err := email.In("red").Get(ctx, fmt.Sprintf("ann%d@contoso.com", want))
	if err != nil || got.Salary != want {
		t.Fatalf("%+v, %v", got, err)
	}
	n := 0
	for range email.In("red").Range(ctx) {
		n++
	}
	if n != 1 {
		t.Fatalf("%d index rows", n)
	}
	refused := errors.New("not today")
	if _, err := repo.Update(ctx, e.Key(), func(p *person) error { p.Salary = 0; return refused }); !errors.Is(err, refused) {
		t.Fatalf("error is %v", err)
	}
	_, err = repo.Update(ctx, tables.Key{Partition: "red", Row: "person_9999"}, func(*person) error { return nil })
	harness.WantKind(t, err, tables.ErrNotFound)
}

func TestRepositoryRepairsDrift(t *testing.T) {
	ctx := context.Background()
	repo, email := people(t, harness.Account(t))
	bags := repo.Table().Entities()
	e := ann()
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	lose := func() {
		t.Helper()
		if err := bags.DeleteUnconditional(ctx, tables.Key{Partition: "red", Row: "email_" + e.Email}); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	if err := repo.Replace(ctx, e); err != nil {
		t.Fatal(err)
	}
	if _, err := email.In("red").Get(ctx, e.Email); err != nil {
		t.Fatalf("the lost copy was not written again: %v", err)
	}
	lose()
	e.Email = "ann2@contoso.com"
	if err := repo.Replace(ctx, e); err != nil {
		t.Fatalf("a copy that was lost is in the way of its move: %v", err)
	}
	lose()
	if err := repo.Delete(ctx, e); err != nil {
		t.Fatalf("a copy that was lost is in the way of the delete: %v", err)
	}
	if n := harness.CountRows(t, repo.Table()); n != 0 {
		t.Fatalf("%d rows are left", n)
	}
}

func TestRepositoryStagesIntoATransaction(t *testing.T) {
	ctx := context.Background()
	repo, email := people(t, harness.Account(t))
	e, f := ann(), ann()
	f.ID, f.Email = 8, "bob@contoso.com"
	if err := repo.Insert(ctx, f); err != nil {
		t.Fatal(err)
	}
	x := repo.Table().NewTransaction()
	x.Insert(&tables.Entity{Key: tables.Key{Partition: "red", Row: "audit_1"}})
	repo.StageInsert(x, e)
	repo.StageDelete(x, f)
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	e.Name = "Anna"
	if err := repo.Replace(ctx, e); err != nil {
		t.Fatalf("the staged insert left no usable Meta: %v", err)
	}
	if _, err := email.In("red").Get(ctx, "bob@contoso.com"); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("the staged delete left the copy: %v", err)
	}
	repo.StageReplace(x, e)
	_, err := x.Commit(ctx)
	harness.WantKind(t, err, tables.ErrWiring)
}

func TestRepositoryQueriesSeeEntitiesOnly(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	repo, _ := people(t, a)
	unprefixed := personSchema()
	unprefixed.Prefix = ""
	wide := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(repo.Table(), unprefixed))
	for i := range 5 {
		p := ann()
		p.ID, p.Email = i, fmt.Sprintf("p%d@contoso.com", i)
		if err := repo.Insert(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*patterns.Repository[person]{repo, wide} {
		q := r.Query().Partition("red")
		plan := assert.Must[tables.Plan](t)(q.Plan())
		if want := map[bool]tables.QueryClass{true: tables.RangeQuery, false: tables.PartitionScan}[r == repo]; plan.Class != want {
			t.Fatalf("class is %v, want %v", plan.Class, want)
		}
		var ids []int
		for p, err := range q.Where(tables.Ge("ID", 2)).All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, p.ID)
		}
		if !slices.Equal(ids, []int{2, 3, 4}) {
			t.Fatalf("found %v", ids)
		}
		before := requests.Load()
		first := assert.Must[*person](t)(q.First(ctx))
		if n := requests.Load() - before; first.ID != 0 || n != 1 {
			t.Fatalf("First found %d in %d requests", first.ID, n)
		}
	}
	_, err := repo.Get(ctx, tables.Key{Partition: "red", Row: "email_p1@contoso.com"})
	harness.WantKind(t, err, tables.ErrNotFound)
}

func TestRepositoryRefusesWhatDoesNotFit(t *testing.T) {
	a := harness.Account(t)
	table := a.Table("Unused")
	schema := personSchema()
	index := func(name string) *intrapartition.Unique[person, string] {
		return intrapartition.NewUnique(name, func(p *person) string { return p.Email }, nil)
	}
	attached := index("email")
	assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema, attached))
	type plain struct{ Name string }
	type oddField struct {
		tables.Meta
		C chan int
	}
	_, noMeta := patterns.NewRepository(table, patterns.Schema[plain]{Key: func(*plain) tables.Key { return tables.Key{} }})
	_, badField := patterns.NewRepository(table, patterns.Schema[oddField]{Key: func(*oddField) tables.Key { return tables.Key{} }})
	_, noKey := patterns.NewRepository(table, patterns.Schema[person]{})
	_, twoNames := patterns.NewRepository(table, schema, index("email"), index("email"))
	_, twice := patterns.NewRepository(table, schema, attached)
	_, ownPrefix := patterns.NewRepository(table, schema, index("person"))
	_, badName := patterns.NewRepository(table, schema, index("e_mail"))
	_, noIntents := patterns.NewRepository(table, schema, &refusing{})
	_, twoLayouts := patterns.NewRepository(table, schema, halved{}, halvedAgain{})
	for name, err := range map[string]error{"no Meta": noMeta, "field": badField, "no Key": noKey, "two names": twoNames, "twice": twice,
		"own prefix": ownPrefix, "bad name": badName, "no intents": noIntents, "two layouts": twoLayouts} {
		t.Run(name, func(t *testing.T) { harness.WantKind(t, err, tables.ErrWiring) })
	}
}

type halvedAgain struct{ halved }

func (h halvedAgain) Attach(host driver.Host, of *person) (driver.Implementation, error) {
	implementation, err := h.halved.Attach(host, of)
	implementation.Name = "again"
	return implementation, err
}

func TestRepositoryWithoutPatterns(t *testing.T) {
	ctx := context.Background()
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, harness.Account(t)), personSchema()))
	e := ann()
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	part, err := repo.Query().Partition("red").Row("person_0007").Select("Name").First(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if part.Name != "Ann" || part.Salary != 0 {
		t.Fatalf("%+v", part)
	}
	harness.WantKind(t, repo.Replace(ctx, part), tables.ErrInvalid)
	harness.WantKind(t, repo.Merge(ctx, part), tables.ErrInvalid)
	part.Name = "Anna"
	if err := repo.Merge(ctx, part, "Name"); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, repo.Replace(ctx, part), tables.ErrInvalid) // merging did not make it whole
	whole, err := repo.Get(ctx, e.Key())
	if err != nil || whole.Name != "Anna" || whole.Salary != 91_000 || whole.Incarnation() != e.Incarnation() {
		t.Fatalf("%+v, %v", whole, err)
	}
	whole.Salary++
	if err := repo.Merge(ctx, whole); err != nil {
		t.Fatal(err)
	}
	if err := repo.Delete(ctx, part); err == nil || !errors.Is(err, tables.ErrConflict) {
		t.Fatalf("delete of a stale part: %v", err)
	}
	if err := repo.Delete(ctx, whole); err != nil {
		t.Fatal(err)
	}
}

// byEmail is the index of people.
func byEmail() *intrapartition.Unique[person, string] {
	return intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)
}

// TestRepositoryAddedIndex: an index that comes to a table with data, and programs with and without it side by side.
func TestRepositoryAddedIndex(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	repository := assert.Must[*patterns.Repository[person]](t)
	email := byEmail()
	without, with := repository(patterns.NewRepository(table, personSchema())), repository(patterns.NewRepository(table, personSchema(), email))
	a, b := ann(), ann()
	b.ID = 8
	for _, p := range []*person{a, b} { // the data breaks the rule of the index to come
		if err := without.Insert(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	update := func(r *patterns.Repository[person], key tables.Key, address string) error {
		_, err := r.Update(ctx, key, func(p *person) error { p.Email = address; return nil })
		return err
	}
	owns := func(address string, id int) {
		t.Helper()
		got, err := email.In("red").Get(ctx, address)
		if err != nil || got.ID != id || got.Email != address {
			t.Fatalf("%s is of %+v, %v", address, got, err)
		}
	}
	if err := update(with, a.Key(), "ann@contoso.com"); err != nil {
		t.Fatal(err)
	}
	if e := harness.WantKind(t, update(with, b.Key(), "ann@contoso.com"), tables.ErrDuplicate); e.Pattern != "email" {
		t.Fatalf("%+v", e)
	}
	owns("ann@contoso.com", 7)
	// Deleting the one that is not in the index yet leaves the other's copy alone.
	if err := with.DeleteUnconditional(ctx, b.Key()); err != nil {
		t.Fatal(err)
	}
	owns("ann@contoso.com", 7)
	// A program without the index moves the entity and leaves its copy behind, again and again.
	if err := update(without, a.Key(), "moved@contoso.com"); err != nil {
		t.Fatal(err)
	}
	if err := update(with, a.Key(), "ann@contoso.com"); err != nil {
		t.Fatalf("its own copy is in the entity's way: %v", err)
	}
	owns("ann@contoso.com", 7)
	if err := update(without, a.Key(), "moved@contoso.com"); err != nil {
		t.Fatal(err)
	}
	c := ann()
	c.ID = 9
	if err := with.Insert(ctx, c); err != nil {
		t.Fatalf("a copy left behind is in the way: %v", err)
	}
	owns("ann@contoso.com", 9)
	if err := update(with, a.Key(), "moved@contoso.com"); err != nil {
		t.Fatal(err)
	}
	owns("moved@contoso.com", 7)
	owns("ann@contoso.com", 9)
}
