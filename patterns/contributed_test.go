package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scripted is a pattern that contributes what a test says.
type scripted struct {
	rows       func() []driver.RowOperation
	companions func(x *tables.Transaction)
}

func (s *scripted) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "scripted",
		Rows: func(context.Context, []*driver.Change) ([]driver.RowOperation, error) {
			if s.rows == nil {
				return nil, nil
			}
			return s.rows(), nil
		},
		Companions: func(_ context.Context, _ *driver.Change, x *tables.Transaction) error {
			if s.companions != nil {
				s.companions(x)
			}
			return nil
		},
	}, nil
}

// TestContributionsAreChecked: a pattern that leaves out the condition, or gives what is no row, is told so, and nothing is written.
func TestContributionsAreChecked(t *testing.T) {
	key := tables.Key{Partition: "red", Row: "shared"}
	row := func(change func(*tables.Entity)) *tables.Entity {
		e := &tables.Entity{Key: key, Properties: tables.Properties{{Name: "N", Value: tables.Int64(2)}}}
		if change != nil {
			change(e)
		}
		return e
	}
	for name, s := range map[string]*scripted{
		"a replace without ETag": {rows: func() []driver.RowOperation {
			return []driver.RowOperation{{Verb: driver.ReplaceRow, Row: row(nil)}}
		}},
		"a delete without ETag": {rows: func() []driver.RowOperation {
			return []driver.RowOperation{{Verb: driver.DeleteRow, Row: row(nil)}}
		}},
		"no row": {rows: func() []driver.RowOperation { return []driver.RowOperation{{Verb: driver.InsertRow}} }},
		"no verb": {rows: func() []driver.RowOperation {
			return []driver.RowOperation{{Verb: 7, Row: row(func(e *tables.Entity) { e.Key.Row = "new" })}}
		}},
		"a companion's replace, no ETag":    {companions: func(x *tables.Transaction) { x.Replace(row(nil)) }},
		"a companion's merge, no ETag":      {companions: func(x *tables.Transaction) { x.Merge(row(nil)) }},
		"a companion that is nil":           {companions: func(x *tables.Transaction) { x.Insert(nil) }},
		"a companion's transaction is over": {companions: func(x *tables.Transaction) { _, _ = x.Commit(t.Context()) }},
	} {
		t.Run(name, func(t *testing.T) {
			table := harness.NewTable(t, harness.Account(t))
			if err := table.Entities().Insert(t.Context(), &tables.Entity{Key: key, Properties: tables.Properties{{Name: "N", Value: tables.Int64(1)}}}); err != nil {
				t.Fatal(err)
			}
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), s))
			if e := harness.WantKind(t, repo.Insert(t.Context(), ann()), map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[!strings.HasSuffix(name, "transaction is over")]); e.Pattern != "scripted" {
				t.Errorf("%+v", e)
			}
			n := 0
			for e, err := range table.Entities().Query().AllowTableScan().All(t.Context()) {
				if n++; err != nil || e.Get("N") != tables.Int64(1) {
					t.Errorf("%+v, %v", e, err)
				}
			}
			if n != 1 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// refusing is a pattern with effects outside that refuses an entity.
type refusing struct{ scripted }

func (r *refusing) Attach(host driver.Host, of *person) (driver.Implementation, error) {
	implementation, err := r.scripted.Attach(host, of)
	implementation.Effect.OutsideKeys = func(context.Context, *driver.Change) ([]string, error) {
		return nil, errors.New("the entity has no place outside")
	}
	implementation.Effect.Reconcile = func(context.Context, []*driver.Reconciliation) error { return nil }
	return implementation, err
}

// TestCheckAsksForOutsideKeys: what a pattern with effects outside refuses before any request, Check refuses too.
func TestCheckAsksForOutsideKeys(t *testing.T) {
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(harness.NewTable(t, harness.Account(t)), &intentLog{}), personSchema(), &refusing{}))
	harness.WantKind(t, repo.Insert(t.Context(), ann()), tables.ErrInvalid)
	harness.WantKind(t, repo.Check(t.Context(), ann()), tables.ErrInvalid)
	harness.WantKind(t, patterns.HostOf(repo).CheckUnder(t.Context(), tables.Key{Partition: "red", Row: "person_0007"}, ann()), tables.ErrInvalid)
}

// TestBulkOptionsAreChecked before anything is taken from the sequence.
func TestBulkOptionsAreChecked(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	rows := func(_ func(*tables.Entity, error) bool) { t.Error("the sequence is asked") }
	for want, all := range map[error][]tables.BulkOptions{tables.ErrInvalid: {{Resume: "-1"}}, tables.ErrWiring: {{Verb: tables.BulkDelete + 1}, {Properties: []string{"N"}}, {Concurrency: -1}}} {
		for _, o := range all {
			_, err := table.Entities().BulkNonAtomic(t.Context(), rows, &o)
			harness.WantKind(t, err, want)
		}
	}
}

// forgetful is a transformer that does not find what it needs to read an entity, such as a key.
type forgetful struct{ err error }

func (f *forgetful) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "forgetful", Transform: &driver.Transform{
		Stage: driver.StageEncrypt,
		Store: func(_ context.Context, _ *driver.Change, p tables.Properties) (tables.Properties, error) {
			return p, nil
		},
		Load: func(_ context.Context, _ driver.Reading, p tables.Properties) (tables.Properties, error) {
			return p, f.err
		},
	}}, nil
}

// TestNotFoundIsSaidOfEntities: an entity that is there and cannot be read is neither not found nor passed over.
func TestNotFoundIsSaidOfEntities(t *testing.T) {
	for name, c := range map[string]struct{ err, kind error }{
		"an answer":        {&azcore.ResponseError{StatusCode: http.StatusNotFound, ErrorCode: "ResourceNotFound"}, tables.ErrGarbled},
		"another service":  {&azcore.ResponseError{StatusCode: http.StatusNotFound, ErrorCode: "KeyNotFound"}, tables.ErrRefused},
		"a table's":        {&tables.Error{Kind: tables.ErrNotFound}, tables.ErrGarbled},
		"in its own words": {fmt.Errorf("no such key: %w", tables.ErrNotFound), tables.ErrGarbled},
	} {
		t.Run(name, func(t *testing.T) {
			f := &forgetful{}
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, harness.Account(t)), personSchema(), f))
			v := ann()
			if err := repo.Insert(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			f.err = c.err
			notAbsent := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, c.kind) || errors.Is(err, tables.ErrNotFound) {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := repo.Get(t.Context(), v.Key())
			notAbsent("Get", err)
			_, err = repo.Update(t.Context(), v.Key(), func(*person) error { return nil })
			notAbsent("Update", err)
			notAbsent("Upsert", repo.Upsert(t.Context(), ann()))
			n := 0
			for _, err := range repo.GetMany(t.Context(), []tables.Key{v.Key()}, nil) {
				n++
				notAbsent("GetMany", err)
			}
			if n != 1 {
				t.Error("GetMany passes it over")
			}
		})
	}
}

// TestCopiesFromOutsideAreNotClaimed: a copy of an entity of another partition is not taken for one that was left behind in this.
func TestCopiesFromOutsideAreNotClaimed(t *testing.T) {
	const taken = "email_ann@contoso.com"
	for name, ids := range map[string][2]int{"one id": {7, 7}, "another id": {7, 8}} {
		t.Run(name, func(t *testing.T) {
			table := harness.NewTable(t, harness.Account(t))
			log := &intentLog{}
			blue := personSchema()
			blue.Name = "blue"
			outside := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(table, log), blue, &elsewhere{table, func(_ *person) ([]driver.OutsideCopy, error) {
				return []driver.OutsideCopy{{Key: tables.Key{Partition: "red", Row: taken}}}, nil
			}}))
			email := intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)
			near := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), email))
			other := ann()
			other.Team, other.ID = "blue", ids[0]
			if err := outside.Insert(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			v := ann()
			v.ID = ids[1]
			harness.WantKind(t, near.Insert(t.Context(), v), tables.ErrDuplicate)
			row := assert.Must[*tables.Entity](t)(table.Entities().Get(t.Context(), tables.Key{Partition: "red", Row: taken}))
			if team, _ := row.Get("Team").Text(); team != "blue" {
				t.Errorf("the copy is of team %q now", team)
			}
		})
	}
}
