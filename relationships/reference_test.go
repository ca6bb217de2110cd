package relationships_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestJoin: each child with its parent, in order, each parent read once for a batch, whatever the batch.
func TestJoin(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, inParent)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := assert.Must[*process](t)(w.start(&counted))
	var want []string
	for id := range 7 {
		e := &employee{Site: "Sales", ID: id, Group: []string{"A", "B", "none", ""}[id%4]}
		assert.Check(t, p.plain.Insert(ctx, e))
		parent := ""
		if e.Group == "A" || e.Group == "B" {
			parent = e.Group
		}
		want = append(want, fmt.Sprint(id, parent))
	}
	read := func(r relationships.Reference[employee, department], children iter.Seq2[*employee, error], most int) ([]string, error) {
		var found []string
		for j, err := range r.Join(ctx, children) {
			if err != nil {
				return found, err
			}
			parent := ""
			if j.Parent != nil {
				parent = j.Parent.Name
			}
			if found = append(found, fmt.Sprint(j.Child.ID, parent)); len(found) == most {
				break
			}
		}
		return found, nil
	}
	all := p.employees.Query().Partition("Sales").All(ctx)
	for batch, requests := range map[int]int{0: 1 + 3, 7: 1 + 3, 3: 1 + 3 + 2 + 1, 1: 1 + 6} {
		r := relationships.Reference[employee, department]{Source: relationships.FromRepository(p.departments, 2), Key: groupOf, Batch: batch}
		counter.Reset()
		found, err := read(r, all, 0)
		if assert.Check(t, err); !slices.Equal(found, want) {
			t.Errorf("batches of %d: %q", batch, found)
		}
		if got := counter.Count(); got != requests {
			t.Errorf("batches of %d: %d requests, want %d", batch, got, requests)
		}
		if found, err = read(r, all, 2); err != nil || !slices.Equal(found, want[:2]) {
			t.Errorf("the first two are %q, %v", found, err)
		}
	}
	cache := assert.Must[*relationships.Cache[department]](t)(relationships.NewCache(p.departments, p.departments.Query().Partition("Sales"), nil))
	defer cache.Close()
	r := relationships.Reference[employee, department]{Source: cache, Key: groupOf, Batch: 1}
	counter.Reset()
	if found, err := read(r, all, 0); err != nil || !slices.Equal(found, want) || counter.Count() != 2 {
		t.Errorf("through a cache: %q, %v, %d requests", found, err, counter.Count())
	}
	own := errors.New("own")
	found, err := read(r, func(yield func(*employee, error) bool) {
		_ = yield(&employee{Site: "Sales", Group: "A"}, nil) && yield(nil, own)
	}, 0)
	if !errors.Is(err, own) || !slices.Equal(found, []string{"0A"}) {
		t.Errorf("an error of the children: %q, %v", found, err)
	}
	for _, bad := range []relationships.Reference[employee, department]{{}, {Source: cache}, {Source: cache, Key: groupOf, Batch: -1}} {
		if _, err := read(bad, all, 0); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("a bad reference: %v", err)
		}
		if _, err := bad.Get(ctx, jones()); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("a bad reference: %v", err)
		}
	}
}

// TestGet: one parent; none, one that is not there, and a source without a repository.
func TestGet(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)(newWorld(t, s, inParent).start(s))
	r := relationships.Reference[employee, department]{Source: relationships.FromRepository(p.departments, 0), Key: groupOf}
	if d := assert.Must[*department](t)(r.Get(ctx, jones())); d.Name != "A" {
		t.Errorf("got %s", d.Name)
	}
	for _, group := range []string{"", "none"} {
		if _, err := r.Get(ctx, &employee{Site: "Sales", Group: group}); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("group %q: %v", group, err)
		}
	}
	r.Source = relationships.FromRepository[department](nil, 0)
	if _, err := r.Get(ctx, jones()); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("no repository: %v", err)
	}
}

// photo belongs to one employee.
type photo struct {
	tables.Meta
	Site string
	ID   int
	Data []byte
}

func photoKey(e tables.Key) tables.Key {
	return tables.Key{Partition: e.Partition, Row: "photo" + e.Row[len("empid"):]}
}

// TestPair: both or none, in one request; a partner of another convention is refused.
func TestPair(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, ownRow)
	p := assert.Must[*process](t)(w.start(s))
	schema := patterns.Schema[photo]{Prefix: "photo", Key: func(v *photo) tables.Key { return photoKey(employeeKey(v.Site, v.ID)) }}
	photos := assert.Must[*patterns.Repository[photo]](t)(patterns.NewRepository(p.employees.Table(), schema))
	pair := assert.Must[*relationships.Pair[employee, photo]](t)(relationships.NewPair(p.employees, photos, photoKey))
	e, own := jones(), &photo{Site: "Sales", ID: 223, Data: []byte{1}}
	if err := pair.Insert(ctx, e, &photo{Site: "Sales", ID: 1}); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("another's photo: %v", err)
	}
	assert.Check(t, pair.Insert(ctx, e, own))
	if err := pair.Insert(ctx, jones(), &photo{Site: "Sales", ID: 223}); !errors.Is(err, tables.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	_, err := w.check(ctx, s) // the employees' own pattern follows
	assert.Check(t, err)
	a, b, err := pair.Get(ctx, e.Key())
	if err != nil || a.Name != "Jones" || len(b.Data) != 1 {
		t.Errorf("got %v, %v, %v", a, b, err)
	}
	stale := *b
	b.Data = []byte{2}
	assert.Check(t, photos.Replace(ctx, b))
	if err := pair.Delete(ctx, a, &stale); !errors.Is(err, tables.ErrConflict) {
		t.Errorf("a stale photo: %v", err)
	}
	assert.Check(t, pair.Delete(ctx, a, b))
	if _, _, err := pair.Get(ctx, e.Key()); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	assert.Check(t, p.employees.Insert(ctx, jones()))
	if a, b, err := pair.Get(ctx, e.Key()); err != nil || a == nil || b != nil {
		t.Errorf("without a photo: %v, %v, %v", a, b, err)
	}
	for _, err := range []error{pair.Insert(ctx, nil, own), pair.Delete(ctx, e, nil)} {
		if !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("a nil: %v", err)
		}
	}
	elsewhere := assert.Must[*patterns.Repository[photo]](t)(patterns.NewRepository(p.other, schema))
	if _, err := relationships.NewPair(p.employees, elsewhere, photoKey); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("two tables: %v", err)
	}
	if _, err := relationships.NewPair(p.employees, photos, nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("no convention: %v", err)
	}
	// On two tables the convention is a reference.
	assert.Check(t, elsewhere.Table().Create(ctx))
	r := relationships.Reference[employee, photo]{Source: relationships.FromRepository(elsewhere, 0), Key: relationships.SameKey(p.employees)}
	if _, err := r.Get(ctx, jones()); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the same key elsewhere: %v", err)
	}
}
