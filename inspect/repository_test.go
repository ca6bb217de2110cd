package inspect_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

type person struct {
	tables.Meta
	Team  string
	ID    int
	Email string
	City  string
}

func personSchema() patterns.Schema[person] {
	return patterns.Schema[person]{Prefix: "person", Key: func(p *person) tables.Key {
		return tables.Key{Partition: p.Team, Row: compoundkey.Join("person", compoundkey.Int(p.ID, 6))}
	}}
}

func email(p *person) compoundkey.Part { return compoundkey.Fold(p.Email) }
func city(p *person) string            { return p.City }

// people yields n people of so many teams, of whom each owns an email.
func people(n, teams int) func(yield func(*person, error) bool) {
	return func(yield func(*person, error) bool) {
		for id := range n {
			if !yield(&person{Team: fmt.Sprintf("t%03d", id*teams/n), ID: id, Email: fmt.Sprintf("p%06d@contoso.com", id), City: fmt.Sprintf("c%02d", id%20)}, nil) {
				return
			}
		}
	}
}

// storeOf makes a store with a table, and counts its requests.
func storeOf(t *testing.T) (*patterns.Store, *tables.Table, func() int64) {
	t.Helper()
	a, requests := harness.Counted(t)
	name := harness.NewTable(t, a).Name()
	store := assert.Must[*patterns.Store](t)(patterns.Open(strings.ToLower(name), &patterns.StoreOptions{Account: a}))
	return store, store.Table(name), requests.Load
}

// TestRepositoryRows: how many rows are the repository's, the library's, and neither.
func TestRepositoryRows(t *testing.T) {
	ctx := t.Context()
	store, table, _ := storeOf(t)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), intrapartition.NewUnique("email", email, nil),
		interpartition.NewUnique("global", email, nil), indexentities.NewInPartition("city", city), widentities.New[person](nil)))
	assert.Check(t, store.Create(ctx))
	for p := range people(10, 2) {
		assert.Check(t, repo.Insert(ctx, p))
	}
	put(t, table, harness.Bag("t000", "settings", "x"), harness.Bag("t000", "person_000100", "x"))
	moved := harness.Row("t000", "person_000101", property("Team", tables.String("t000")), property("ID", tables.Int64(7)), property("Email", tables.String("x@contoso.com")), property("City", tables.String("c")))
	unread := harness.Row("t000", "person_000102", property("ID", tables.String("seven")))
	put(t, table, moved, unread)
	r := assert.Must[*inspect.Report](t)(inspect.Repository(ctx, repo, nil))
	s := r.Schema
	// With a Layout, entities that the repository has written are its own to read.
	if s.Own != 12 || s.Library != r.Library.Copies+r.Library.OutsideCopies+r.Library.Shared || s.Neither != 2 || s.Own+s.Library+s.Neither != r.Rows || s.Sealed != 10 {
		t.Errorf("%+v, %+v", s, r.Library)
	}
	if want := (inspect.Library{Copies: 10, OutsideCopies: 10, Shared: 10, Entities: 10}); r.Library != want {
		t.Errorf("%+v, want %+v", r.Library, want)
	}
	if s.OtherKeys != 2 || !slices.Contains(s.OtherKeysExamples, inspect.Key{Partition: "t000", Row: "person_000101"}) {
		t.Errorf("other keys %+v", s)
	}
	var text strings.Builder
	if assert.Check(t, r.WriteText(&text)); !strings.Contains(text.String(), "rows that are its entities: 12; copies and further rows: 30; neither: 2") {
		t.Error(text.String())
	}
}

// TestNoRowFits: a schema that fits no row of a table that has rows is told, and one on an empty table is not.
func TestNoRowFits(t *testing.T) {
	_, table, _ := storeOf(t)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	if r, err := inspect.Repository(t.Context(), repo, nil); err != nil || len(r.Warnings) != 0 {
		t.Errorf("%q, %v", r.Warnings, err)
	}
	put(t, table, harness.Bag("t", "P-1", "x"))
	r, err := inspect.Repository(t.Context(), repo, nil)
	if err != nil || len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "no row of the table is an entity of the repository") || r.Schema.Neither != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTakenKeys: the keys that two rows want are those for which Rebuild reports an entity.
func TestTakenKeys(t *testing.T) {
	ctx := t.Context()
	store, table, _ := storeOf(t)
	bare := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), intrapartition.NewUnique("email", email, nil),
		interpartition.NewUnique("global", email, nil)))
	assert.Check(t, store.Create(ctx))
	want := map[string]int64{}
	id := 0
	for p := range people(200, 2) {
		switch {
		case p.ID%50 == 7: // two of one team
			p.Email = fmt.Sprintf("near%d@contoso.com", p.ID/100)
			want[fmt.Sprintf(`global ("global", "near%d@contoso.com")`, p.ID/100)]++
			want[fmt.Sprintf(`email ("%s", "email_near%d@contoso.com")`, p.Team, p.ID/100)]++
		case p.ID%100 == 9: // one of each team
			p.Email = "Far@contoso.com"
			want[`global ("global", "far@contoso.com")`]++
		}
		id = p.ID
		assert.Check(t, bare.Insert(ctx, p))
	}
	put(t, table, harness.Bag("t000", fmt.Sprintf("email_p%06d@contoso.com", 1), "stands there"))
	want[`+email ("t000", "email_p000001@contoso.com")`] = 2
	r := assert.Must[*inspect.Report](t)(inspect.Repository(ctx, repo, nil))
	got, entities := map[string]int64{}, int64(0)
	for _, k := range r.Schema.TakenKeys {
		got[strings.Join(k.Patterns, "+")+" "+k.Key.String()] = k.Wanted
		if k.Table != table.Name() || int64(len(k.By)) != k.Wanted {
			t.Errorf("%+v", k)
		}
		entities += k.Wanted - 1
	}
	if !maps.Equal(got, want) || id != 199 {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	refused := map[tables.Key]bool{}
	for _, f := range assert.Must[[]patterns.Finding](t)(harness.Findings(ctx, repo.Rebuild, nil)) {
		if !errors.Is(f.Err, tables.ErrDuplicate) && !errors.Is(f.Err, tables.ErrConflict) {
			t.Errorf("Rebuild: %v", f)
		}
		refused[f.Entity] = true
	}
	if len(refused) != 4 { // one of each pair, and the one at whose key another row stands
		t.Errorf("Rebuild refuses %d entities, and %d keys are wanted in vain", len(refused), entities)
	}
	few, err := inspect.Repository(ctx, repo, &inspect.Options{MaxKeys: 100})
	if err != nil || few.Schema.KeysNotCompared == 0 || !slices.ContainsFunc(few.Warnings, func(w string) bool { return strings.Contains(w, "MaxKeys") }) {
		t.Errorf("%+v, %v", few.Schema, err)
	}
}

// TestRebuildCost: what Rebuild takes is between the bounds, and where entities lie together it is the lower one.
func TestRebuildCost(t *testing.T) {
	for name, c := range map[string]struct {
		n, teams int
		pattern  func() patterns.Pattern[person]
		exact    bool
	}{
		"in the partition": {250, 3, func() patterns.Pattern[person] { return intrapartition.NewUnique("email", email, nil) }, true},
		"many partitions":  {60, 30, func() patterns.Pattern[person] { return intrapartition.NewUnique("email", email, nil) }, true},
		"one outside": {300, 1, func() patterns.Pattern[person] {
			return interpartition.NewUnique("email", email, nil)
		}, false},
		"spread outside": {40, 5, func() patterns.Pattern[person] {
			return interpartition.NewIndex("email", email, &interpartition.Options[person]{Group: func(p *person) string { return p.Email }})
		}, false},
		"lists": {40, 2, func() patterns.Pattern[person] { return indexentities.NewInPartition("city", city) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store, table, requests := storeOf(t)
			bare := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), c.pattern()))
			assert.Check(t, store.Create(ctx))
			assert.Must[tables.BulkReport](t)(bare.BulkNonAtomic(ctx, people(c.n, c.teams), nil))
			r := assert.Must[*inspect.Report](t)(inspect.Repository(ctx, repo, nil))
			cost, before := r.Schema.Rebuild, requests()
			assert.Check(t, harness.Clean(ctx, repo.Rebuild, nil))
			made := requests() - before
			if t.Logf("%d to %d requests foretold, %d made", cost.Least.All(), cost.Most.All(), made); cost.Fill != int64(c.n) || made < cost.Least.All() || made > cost.Most.All() || c.exact && made != cost.Least.All() {
				t.Errorf("%+v, made %d", cost, made)
			}
			if cost.Least.Price <= 0 || cost.Least.Price > cost.Most.Price || cost.Prices.Currency != "USD" {
				t.Errorf("%+v", cost)
			}
			again, err := inspect.Repository(ctx, repo, &inspect.Options{Prices: &inspect.Prices{Table: 10_000, Currency: "EUR"}})
			if err != nil || c.exact && (again.Schema.Rebuild.Fill != 0 || again.Schema.Rebuild.Least.Price != float64(again.Schema.Rebuild.Least.Table)) {
				t.Errorf("%+v, %v", again.Schema.Rebuild, err)
			}
		})
	}
}

// TestRefusingIndex: entities that an index refuses, or whose key function panics, are told by their keys.
func TestRefusingIndex(t *testing.T) {
	_, table, _ := storeOf(t)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), intrapartition.NewUnique("email", func(p *person) compoundkey.Part {
		if p.ID == 3 {
			panic("secret")
		}
		return email(p)
	}, nil)))
	row := func(id int64, email string) *tables.Entity {
		return harness.Row("t", fmt.Sprintf("person_%06d", id), property("Team", tables.String("t")), property("ID", tables.Int64(id)), property("Email", tables.String(email)))
	}
	put(t, table, row(1, "a@contoso.com"), row(2, strings.Repeat("x", 2_000)), row(3, "b@contoso.com"))
	r := assert.Must[*inspect.Report](t)(inspect.Repository(t.Context(), repo, nil))
	if len(r.Schema.Refused) != 2 || r.Schema.Refused[0].Pattern != "email" || strings.Contains(fmt.Sprint(r.Schema.Refused), "secret") || strings.Contains(fmt.Sprint(r.Schema.Refused), "xxx") {
		t.Errorf("%+v", r.Schema.Refused)
	}
}

// TestOwnRows: Schema.Rows, Mine and Where decide together which rows are the repository's.
func TestOwnRows(t *testing.T) {
	_, table, _ := storeOf(t)
	schema := personSchema()
	schema.Mine = func(key tables.Key) bool { return key.Partition != "archive" }
	schema.Where = tables.Eq("City", "Rome")
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema))
	row := func(team, row, city string) *tables.Entity {
		return harness.Row(team, row, property("Team", tables.String(team)), property("ID", tables.Int64(1)), property("Email", tables.String("e")), property("City", tables.String(city)))
	}
	put(t, table, row("t", "person_000001", "Rome"), row("t", "person_000002", "Oslo"), row("archive", "person_000001", "Rome"), row("t", "settings", "Rome"))
	r, err := inspect.Repository(t.Context(), repo, nil)
	if err != nil || r.Schema.Own != 1 || r.Schema.Neither != 3 || r.Schema.OtherKeys != 0 || r.Type.Read != 1 {
		t.Errorf("%+v, %v", r.Schema, err)
	}
}
