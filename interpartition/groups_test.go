package interpartition_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGroups: an index has one group with all entities, a group for each partition, or those of a function. A read that names no
// group of an index with groups, or one of an index without, is refused before a request.
func TestGroups(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)(newWorld(t, s, kind{}).start(s))
	anywhere, shared := interpartition.NewUnique("anywhere", emailOf, nil), interpartition.NewIndex("shared", emailOf, nil)
	here := interpartition.NewUnique("here", emailOf, &interpartition.Options[employee]{ByPartition: true})
	initials := interpartition.NewUnique("initials", emailOf, &interpartition.Options[employee]{Group: func(e *employee) string { return e.Email[:1] }})
	staff := p.open(t, s, "grouped", anywhere, here, initials, shared)
	if err := staff.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	email := compoundkey.String("jonesj@contoso.com")
	for name, x := range map[string]*interpartition.Unique[employee, compoundkey.Part]{"anywhere": anywhere, "here": here.In("Sales"), "initials": initials.In("j")} {
		if _, err := x.Get(ctx, email); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := x.Query().First(ctx); err != nil || e.ID != jones().ID {
			t.Errorf("%s: a query finds %v, %v", name, e, err)
		}
	}
	for name, x := range map[string]*interpartition.Unique[employee, compoundkey.Part]{"here": here, "initials": initials} { // in all groups, beside rows of the other indexes
		if found := idsOf(t, x.Query().AllowTableScan().All(ctx)); !slices.Equal(found, []int{jones().ID}) {
			t.Errorf("%s: a query of all groups finds %v", name, found)
		}
	}
	if _, err := here.In("IT").Get(ctx, email); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("in another group: %v", err)
	}
	if errs := errorsOf(shared.In("Sales").All(ctx, email)); len(errs) != 1 || !errors.Is(errs[0], tables.ErrWiring) {
		t.Errorf("All in a group of an index without groups: %v", errs)
	}
	for want, x := range map[string]*interpartition.Unique[employee, compoundkey.Part]{"choose one with In": here, "read it without In": anywhere.In("Sales")} {
		_, got := x.Get(ctx, email)
		_, full := x.GetFull(ctx, email)
		for read, err := range map[string]error{"Get": got, "GetFull": full, "Range": errors.Join(errorsOf(x.Range(ctx))...)} {
			if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", read, err, want)
			}
		}
	}
}

// TestGroupsOfDeclaration: what NewRepository refuses.
func TestGroupsOfDeclaration(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)(newWorld(t, s, kind{}).start(s))
	group := func(*employee) string { return "" }
	for want, x := range map[string]*interpartition.Unique[employee, compoundkey.Part]{
		"give the repository the index itself": interpartition.NewUnique("email", emailOf, &interpartition.Options[employee]{ByPartition: true}).In("Sales"),
		"set one of them":                      interpartition.NewUnique("email", emailOf, &interpartition.Options[employee]{ByPartition: true, Group: group}),
		"Options.Spread is -1;":                interpartition.NewUnique("email", emailOf, &interpartition.Options[employee]{Spread: -1}),
		"Options.Spread is 65;":                interpartition.NewUnique("email", emailOf, &interpartition.Options[employee]{Spread: 65}),
	} {
		_, err := patterns.NewRepository(p.repo.Table(), patterns.Schema[employee]{Name: "refused", Key: keyOf}, x)
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// idsOf returns the numbers of employees.
func idsOf(t *testing.T, all iter.Seq2[*employee, error]) (ids []int) {
	t.Helper()
	for e, err := range all {
		assert.Check(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

// namesOf returns their names.
func namesOf(t *testing.T, all iter.Seq2[*employee, error]) (names []string) {
	t.Helper()
	for e, err := range all {
		assert.Check(t, err)
		names = append(names, e.Name)
	}
	return names
}

// TestSchemaOfTheEntity: Schema.Where compares the entity's own row. So it neither leaves copies out whose keys do not meet it, nor
// needs properties that a projection leaves out.
func TestSchemaOfTheEntity(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	for name, where := range map[string]tables.Condition{"of the row key": tables.Lt("RowKey", "f"), "of the partition": tables.Eq("PartitionKey", "Sales"), "of a property": tables.Eq("Department", "Sales")} {
		p := assert.Must[*process](t)(newWorld(t, s, kind{}).start(s))
		email := interpartition.NewIndex("mail", emailOf, &interpartition.Options[employee]{Project: []string{"ID"}})
		schema := staffSchema("chosen")
		schema.Where = where
		staff := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.store.Table(s.TableName(t)), schema, email))
		assert.Check(t, p.store.Create(ctx), staff.Insert(ctx, jones()))
		for read, all := range map[string]iter.Seq2[*employee, error]{"Range": email.Range(ctx), "Query": email.Query().All(ctx)} {
			if found := idsOf(t, all); !slices.Equal(found, []int{jones().ID}) {
				t.Errorf("a condition %s: %s finds %v", name, read, found)
			}
		}
	}
}

// TestRowsOfAnotherRepository: without a store, nothing refuses two repositories whose indexes share a partition. Reads then leave out
// the copies of entities that the schema excludes.
func TestRowsOfAnotherRepository(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)(newWorld(t, s, kind{}).start(s))
	table := p.store.Account().Table(p.repo.Table().Name())
	open := func(prefix string) (*patterns.Repository[employee], *interpartition.Index[employee, compoundkey.Part]) {
		x := interpartition.NewIndex("mail", emailOf, nil)
		key := func(e *employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join(prefix, compoundkey.Int(e.ID, 6))}
		}
		return assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(table,
			patterns.Schema[employee]{Name: prefix, Key: key, Prefix: prefix}, x)), x
	}
	staff, mine := open("empid")
	guests, _ := open("guest")
	guest := &employee{Department: "Sales", ID: 7, Email: "g@contoso.com"}
	assert.Check(t, staff.Insert(ctx, jones()), guests.Insert(ctx, guest))
	if found := idsOf(t, mine.Range(ctx)); !slices.Equal(found, []int{jones().ID}) {
		t.Errorf("the index of the staff yields %v", found)
	}
	if found := idsOf(t, mine.All(ctx, emailOf(guest))); found != nil {
		t.Errorf("the index of the staff yields %v for a guest", found)
	}
}
