package indexentities_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// worlds are all kinds of them.
func worlds() []*world {
	return []*world{{option: inPartition}, {option: outside}, {option: outside, global: true}}
}

// TestLifeOfEntities: inserted, moved, merged, upserted, deleted; the lists follow.
func TestLifeOfEntities(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			lists := func(want map[string][]int) {
				t.Helper()
				if _, err := w.check(ctx, s); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"Jones", "O'Brien/Müller", "Smith"} {
					ids := want[name]
					got := assert.Must[[]tables.Key](t)(w.sales(p).Keys(ctx, compoundkey.String(name)))
					rows := []string{}
					for _, id := range ids {
						rows = append(rows, at(id).Row)
					}
					if !slices.Equal(rowsOf(got), rows) {
						t.Errorf("%s: %q, want %q", name, rowsOf(got), rows)
					}
					if got := idsOf(t, w.sales(p).Find(ctx, compoundkey.String(name), nil)); !slices.Equal(got, append([]int{}, ids...)) {
						t.Errorf("%s: found %d, want %d", name, got, ids)
					}
				}
			}
			june, otto, nobody := with(223, "Jones"), with(152, "Jones"), with(7, "")
			for _, e := range []*employee{june, otto, nobody} {
				if err := p.repo.Insert(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			lists(map[string][]int{"Jones": {152, 223}})
			june.LastName = "O'Brien/Müller"
			if err := p.repo.Replace(ctx, june); err != nil {
				t.Fatal(err)
			}
			lists(map[string][]int{"Jones": {152}, "O'Brien/Müller": {223}})
			nobody.LastName = "Smith"
			if err := p.repo.Merge(ctx, nobody, "LastName"); err != nil {
				t.Fatal(err)
			}
			if _, err := p.repo.Update(ctx, at(152), func(e *employee) error { e.Note = "again"; return nil }); err != nil {
				t.Fatal(err)
			}
			lists(map[string][]int{"Jones": {152}, "O'Brien/Müller": {223}, "Smith": {7}})
			if err := p.repo.Upsert(ctx, with(7, "Jones")); err != nil {
				t.Fatal(err)
			}
			lists(map[string][]int{"Jones": {7, 152}, "O'Brien/Müller": {223}})
			if err := p.repo.DeleteUnconditional(ctx, at(7)); err != nil {
				t.Fatal(err)
			}
			if err := p.repo.Delete(ctx, june); err != nil {
				t.Fatal(err)
			}
			lists(map[string][]int{"Jones": {152}})
		})
	}
}

// TestSeveralValues: an entity with several values, repeated ones, and none; folded ones; a value that is a tuple.
func TestSeveralValues(t *testing.T) {
	for _, o := range options {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := &world{option: o, values: func(e *employee) []compoundkey.Part {
				values := []compoundkey.Part{{}}
				for _, tag := range e.Tags {
					values = append(values, compoundkey.Fold(tag))
				}
				if e.LastName != "" {
					values = append(values, compoundkey.Tuple(compoundkey.Fold(e.LastName), compoundkey.Int(1, 4)))
				}
				return values
			}}
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			e := with(1, "go")
			e.Tags = []string{"Go", "GO", "azure", "go."}
			other := with(2, "")
			other.Tags = []string{"go"}
			for _, e := range []*employee{e, other} {
				if err := p.repo.Insert(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			e.Tags = []string{"AZURE", "storage"}
			if err := p.repo.Replace(ctx, e); err != nil {
				t.Fatal(err)
			}
			if _, err := w.check(ctx, s); err != nil {
				t.Fatal(err)
			}
			for value, want := range map[string][]int{"go": {2}, "go.": {}, "azure": {1}, "storage": {1}} {
				if got := idsOf(t, p.index.In("Sales").Find(ctx, compoundkey.Fold(value), &indexentities.FindOptions{Concurrency: 1})); !slices.Equal(got, want) {
					t.Errorf("%s: found %d, want %d", value, got, want)
				}
			}
			tuple := compoundkey.Tuple(compoundkey.Fold("Go"), compoundkey.Int(1, 4))
			if got := assert.Must[[]tables.Key](t)(p.index.In("Sales").Keys(ctx, tuple)); len(got) != 1 || got[0] != at(1) {
				t.Errorf("the tuple's list has %v", got)
			}
		})
	}
}

// TestHostileValues: values and groups that are no safe names, or look like other lists' rows.
func TestHostileValues(t *testing.T) {
	names := []string{".", "..", "a.", "a", "a/b", "a!0001", "a\\b", "?", "#", "%2F", "a b", "ä\u2028\U0001F600", "Jones_0001", "\n", "\t", "!"}
	for _, o := range options {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := (&world{option: o}).open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			for _, department := range []string{"", "Inc.", "..", "R&D 'x'"} {
				for i, name := range names {
					e := with(i, name)
					e.Department = department
					if err := p.repo.Insert(ctx, e); err != nil {
						t.Fatalf("%q in %q: %v", name, department, err)
					}
				}
				var values []string
				for v, err := range p.index.In(department).Values(ctx) {
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, assert.Must[string](t)(v.Text()))
				}
				slices.Sort(values)
				if want := slices.Sorted(slices.Values(names)); !slices.Equal(values, want) {
					t.Errorf("in %q there are %q, want %q", department, values, want)
				}
			}
			for i, name := range names {
				if got := idsOf(t, p.index.In("..").Find(ctx, compoundkey.String(name), nil)); !slices.Equal(got, []int{i}) {
					t.Errorf("%q: found %d, want %d", name, got, i)
				}
			}
			if _, err := w.check(ctx, s); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBadInputSendsNothing: what cannot be stored is refused before any request.
func TestBadInputSendsNothing(t *testing.T) {
	for _, o := range options {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			counter := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), counter)
			w := (&world{option: o}).open(t, s)
			p := assert.Must[*process](t)(w.start(&counted))
			bad := with(1, strings.Repeat("x", map[option]int{inPartition: 500, outside: 509}[o])) // no room for the number of a further row
			var e *tables.Error
			if err := p.repo.Insert(ctx, bad); !errors.Is(err, tables.ErrTooLarge) || !errors.As(err, &e) || e.Pattern != "lastname" {
				t.Errorf("inserted: %v", err)
			}
			if _, err := p.index.In(bad.Department).Keys(ctx, compoundkey.String(bad.LastName)); !errors.Is(err, tables.ErrTooLarge) {
				t.Errorf("looked up: %v", err)
			}
			if _, err := p.index.In("Sales").Keys(ctx, compoundkey.String("\xff")); !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("looked up what is no text: %v", err)
			}
			if _, err := p.index.In("Sales").Page(ctx, compoundkey.String("Jones"), 0, ""); !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("a page of none: %v", err)
			}
			if n := counter.Count(); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestAttach: what would fail or find nothing later is refused when it is declared.
func TestAttach(t *testing.T) {
	s := storagetest.Open(t)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	for want, x := range map[string]patterns.Pattern[employee]{
		"Schema.Prefix":       indexentities.NewInPartition("empid", byLastName),
		"key function is nil": indexentities.NewInPartition[employee, compoundkey.Part]("lastname", nil),
		"last_name":           indexentities.NewInPartition("last_name", byLastName),
	} {
		schema := patterns.Schema[employee]{Key: keyOf, Prefix: "empid"}
		if _, err := patterns.NewRepository(account.Table("Employees"), schema, x); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestReadsWithoutARepository: an index that was given to no repository says so, whatever is read through it.
func TestReadsWithoutARepository(t *testing.T) {
	ctx := t.Context()
	for where, x := range map[option]*indexentities.Index[employee, compoundkey.Part]{
		inPartition: indexentities.NewInPartition("lastname", byLastName),
		outside:     indexentities.NewInTable("lastname", byLastName, nil, &indexentities.Options[employee]{ByPartition: true}),
	} {
		x = x.In("Sales")
		_, keys := x.Keys(ctx, compoundkey.String("Jones"))
		_, page := x.Page(ctx, compoundkey.String("Jones"), 10, "")
		errs := map[string][]error{"Keys": {keys}, "Page": {page}}
		for _, err := range x.Find(ctx, compoundkey.String("Jones"), nil) {
			errs["Find"] = append(errs["Find"], err)
		}
		for _, err := range x.Values(ctx) {
			errs["Values"] = append(errs["Values"], err)
		}
		for _, read := range []string{"Keys", "Page", "Find", "Values"} {
			if got := errs[read]; len(got) != 1 || !errors.Is(got[0], tables.ErrWiring) {
				t.Errorf("%s, %s: %v", where, read, got)
			}
		}
	}
}
