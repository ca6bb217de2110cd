package intrapartition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department string
	ID         int
	FirstName  string
	LastName   string
	Email      string
	Age        int
	Tags       []string `table:",json"`
}

type indexes struct {
	email, name, tag *intrapartition.Unique[employee, compoundkey.Part]
}

func open(t testing.TB) (*patterns.Repository[employee], indexes, *storagetest.RequestCounter) {
	t.Helper()
	requests := &storagetest.RequestCounter{}
	service := storagetest.Open(t)
	options := service.ClientOptions
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), requests)
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	x := indexes{
		email: intrapartition.NewUnique("email", func(e *employee) compoundkey.Part {
			if e.Email == "" {
				return compoundkey.Part{}
			}
			return compoundkey.String(e.Email)
		}, nil),
		name: intrapartition.NewUnique("name", func(e *employee) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(e.LastName), compoundkey.String(e.FirstName), compoundkey.Int(e.ID, 6))
		}, &intrapartition.Options{Project: []string{"LastName", "FirstName"}}),
		tag: intrapartition.NewMultiUnique("tag", func(e *employee) []compoundkey.Part {
			var keys []compoundkey.Part
			for _, tag := range e.Tags {
				keys = append(keys, compoundkey.Tuple(compoundkey.String(tag), compoundkey.Int(e.ID, 6)))
			}
			return keys
		}, nil),
	}
	table := account.Table(service.TableName(t))
	if err := table.CreateIfMissing(context.Background()); err != nil {
		t.Fatal(err)
	}
	repo, err := patterns.NewRepository(table, patterns.Schema[employee]{
		Key: func(e *employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, x.email, x.name, x.tag)
	if err != nil {
		t.Fatal(err)
	}
	requests.Reset()
	return repo, x, requests
}

func jones() *employee {
	return &employee{Department: "Sales", ID: 223, FirstName: "Jun", LastName: "Jones", Email: "jonesj@contoso.com", Age: 41, Tags: []string{"go", "azure"}}
}

func rowKeys(t *testing.T, repo *patterns.Repository[employee]) []string {
	t.Helper()
	var keys []string
	for e, err := range repo.Table().Entities().Query().Partition("Sales").All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key.Row)
	}
	return keys
}

func TestEveryChangeMovesTheCopies(t *testing.T) {
	ctx := context.Background()
	repo, x, requests := open(t)
	e := jones()
	check := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := rowKeys(t, repo); !slices.Equal(got, want) {
			t.Fatalf("rows are %q, want %q", got, want)
		}
		requests.Reset()
	}
	spent := func(n int) {
		t.Helper()
		if got := requests.Count(); got != n {
			t.Fatalf("%d requests, want %d", got, n)
		}
	}
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	spent(1)
	check("empid_000223", "email_jonesj@contoso.com", "name_Jones!_Jun!_000223", "tag_go!_000223", "tag_azure!_000223")

	got, err := x.email.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com"))
	if err != nil {
		t.Fatal(err)
	}
	spent(1)
	if got.Age != 41 || got.Key() != e.Key() || got.Incarnation() == "" || got.Incarnation() != e.Incarnation() {
		t.Fatalf("%+v", got)
	}
	// Read through a copy, compared with the entity's own row before it is written.
	got.Email, got.Tags = "jun@contoso.com", []string{"go"}
	requests.Reset()
	if err := repo.Replace(ctx, got); err != nil {
		t.Fatal(err)
	}
	spent(2)
	check("empid_000223", "email_jun@contoso.com", "name_Jones!_Jun!_000223", "tag_go!_000223")
	if err := repo.Replace(ctx, e); !errors.Is(err, tables.ErrConflict) {
		t.Fatalf("stale replace: %v", err)
	}
	got.Email = ""
	if err := repo.Merge(ctx, got, "Age"); err != nil {
		t.Fatal(err)
	}
	check("empid_000223", "email_jun@contoso.com", "name_Jones!_Jun!_000223", "tag_go!_000223")
	if err := repo.Replace(ctx, got); err != nil {
		t.Fatal(err)
	}
	check("empid_000223", "name_Jones!_Jun!_000223", "tag_go!_000223")
	if err := repo.Delete(ctx, got); err != nil {
		t.Fatal(err)
	}
	spent(1)
	check()
	if _, err := x.email.In("Sales").Get(ctx, compoundkey.String("jun@contoso.com")); !errors.Is(err, tables.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestTakenKeyIsDuplicate(t *testing.T) {
	ctx := context.Background()
	repo, _, _ := open(t)
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	other := jones()
	other.ID = 224
	err := repo.Insert(ctx, other)
	var e *tables.Error
	if !errors.As(err, &e) || !errors.Is(err, tables.ErrDuplicate) || e.Pattern != "email" {
		t.Fatalf("error is %v", err)
	}
	if keys := rowKeys(t, repo); slices.Contains(keys, "empid_000224") {
		t.Fatalf("the refused insert left %q", keys)
	}
	if err := repo.Insert(ctx, jones()); !errors.Is(err, tables.ErrExists) {
		t.Fatalf("same key: %v", err)
	}
	other.Email = "other@contoso.com"
	if err := repo.Insert(ctx, other); err != nil {
		t.Fatal(err)
	}
	other.Email = "jonesj@contoso.com"
	if err := repo.Replace(ctx, other); !errors.Is(err, tables.ErrDuplicate) {
		t.Fatalf("replace into a taken key: %v", err)
	}
}

func TestRangesAndProjection(t *testing.T) {
	ctx := context.Background()
	repo, x, requests := open(t)
	for i, name := range []string{"Adams", "Baker", "Ba/ker", "Clark", "Cl_ark"} {
		e := &employee{Department: "Sales", ID: i, LastName: name, FirstName: "A", Email: fmt.Sprintf("%c%d@contoso.com", 'a'+i%2, i), Age: i}
		if err := repo.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	requests.Reset()
	var names []string
	for e, err := range x.name.In("Sales").Range(ctx, compoundkey.Between(compoundkey.String("B"), compoundkey.String("D"))) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.LastName)
	}
	if want := []string{"Ba/ker", "Baker", "Cl_ark", "Clark"}; !slices.Equal(names, want) || requests.Count() != 1 {
		t.Fatalf("%q in %d requests", names, requests.Count())
	}
	emails := 0
	for e, err := range x.email.In("Sales").Range(ctx, compoundkey.Prefix(compoundkey.String("a"))) {
		if err != nil || e.Email[0] != 'a' {
			t.Fatal(err, e)
		}
		emails++
	}
	if emails != 3 {
		t.Fatalf("%d emails with a", emails)
	}
	partial, err := x.name.In("Sales").Get(ctx, compoundkey.Tuple(compoundkey.String("Clark"), compoundkey.String("A"), compoundkey.Int(3, 6)))
	if err != nil {
		t.Fatal(err)
	}
	if partial.Age != 0 || partial.LastName != "Clark" {
		t.Fatalf("%+v", partial)
	}
	if err := repo.Replace(ctx, partial); !errors.Is(err, tables.ErrInvalid) {
		t.Fatalf("replace of a projection: %v", err)
	}
	partial.LastName = "Clarke"
	if err := repo.Merge(ctx, partial, "LastName"); err != nil {
		t.Fatal(err)
	}
	whole, err := repo.Get(ctx, partial.Key())
	if err != nil || whole.Age != 3 || whole.LastName != "Clarke" || whole.Email != "b3@contoso.com" {
		t.Fatalf("%+v, %v", whole, err)
	}
	if err := repo.Delete(ctx, partial); err != nil {
		t.Fatal(err)
	}
	for _, key := range rowKeys(t, repo) {
		if key == "email_b3@contoso.com" || key == "empid_000003" || key == "name_Clarke!_A!_000003" {
			t.Fatalf("row %s is left over", key)
		}
	}
}
