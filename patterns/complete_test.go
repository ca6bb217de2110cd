package patterns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// completing is a pattern with Complete: it names a person after how often it was asked, or takes the photo away.
type completing struct {
	scripted
	asked   int
	refuses error
	strips  bool
}

func (c *completing) Attach(host driver.Host, of *person) (driver.Implementation, error) {
	implementation, err := c.scripted.Attach(host, of)
	implementation.Complete = c.complete
	return implementation, err
}

func (c *completing) complete(_ context.Context, change *driver.Change) error {
	v := driver.As[person](change.Entity)
	c.asked++
	v.Name += "!"
	if c.strips {
		v.Photo = nil
	}
	change.Note(c.asked)
	return c.refuses
}

// TestComplete: each attempt completes the entity as the caller gave it; the caller sees it once it is stored, and a Merge sends
// what was completed.
func TestComplete(t *testing.T) {
	ctx := t.Context()
	table := harness.NewTable(t, harness.Account(t))
	p, attempts := &completing{}, 0
	all := teams(t, table)
	stage := growing(t, all, func() { attempts++ }).companions
	p.companions = func(x *tables.Transaction) {
		stage(x)
		if attempts == 1 { // another writer comes before the transaction
			assert.Must[*team](t)(all.Update(ctx, tables.Key{Partition: "red", Row: "team_red"}, func(v *team) error { v.Size += 10; return nil }))
		}
	}
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), p))
	if err := all.Insert(ctx, &team{Name: "red"}); err != nil {
		t.Fatal(err)
	}
	p.refuses = errors.New("not this one")
	v := ann()
	if err := repo.Insert(ctx, v); !errors.Is(err, tables.ErrInvalid) || v.Name != "Ann" {
		t.Errorf("%v, and the caller has %q", err, v.Name)
	}
	p.refuses, p.asked = nil, 0
	if err := repo.Insert(ctx, v); err != nil || v.Name != "Ann!" || attempts != 2 || p.asked != 2 {
		t.Errorf("%v, and the caller has %q after %d plans and %d completions", err, v.Name, attempts, p.asked)
	}
	v.Salary = 1
	if err := repo.Merge(ctx, v, "Salary"); err != nil {
		t.Error(err)
	}
	got := assert.Must[*person](t)(repo.Get(ctx, v.Key()))
	if got.Name != "Ann!!" || got.Salary != 1 || len(got.Photo) == 0 {
		t.Errorf("stored is %q with %d", got.Name, got.Salary)
	}
	p.strips = true
	if err := repo.Merge(ctx, got, "Salary"); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a merge that has to remove a property: %v", err)
	}
	p.strips = false
	if err := repo.Delete(ctx, got); err != nil {
		t.Error(err)
	}
}

// TestEncodeOnly: a property that is not named need not be storable.
func TestEncodeOnly(t *testing.T) {
	type dated struct {
		Name  string
		Hired time.Time
		Rest  map[string]tables.Value `table:",rest"`
	}
	codec := assert.Must[*tables.Codec[dated]](t)(tables.NewCodec[dated]())
	v := &dated{Name: "Ann", Rest: map[string]tables.Value{"Size": tables.Int32(3), "Other": tables.Int32(4)}}
	if _, err := codec.Encode(v); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("the zero time: %v", err)
	}
	p := assert.Must[tables.Properties](t)(codec.EncodeOnly(v, []string{"Name", "Size", "Missing"}))
	if len(p) != 2 || p.Get("Name") != tables.String("Ann") || p.Get("Size") != tables.Int32(3) {
		t.Errorf("%v", p)
	}
	if _, err := codec.EncodeOnly(v, []string{"Hired"}); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("the zero time, named: %v", err)
	}
	bags := assert.Must[*tables.Codec[tables.Entity]](t)(tables.NewCodec[tables.Entity]())
	bag := &tables.Entity{Properties: tables.Properties{{Name: "A", Value: tables.Int32(1)}, {Name: "B", Value: tables.Int32(2)}}}
	if p := assert.Must[tables.Properties](t)(bags.EncodeOnly(bag, []string{"B"})); len(p) != 1 || p[0].Name != "B" {
		t.Errorf("%v", p)
	}
}

// TestRebuildGoesOnAfterMissingReferences: an entity whose required reference is missing is a problem of its own, and not the end.
func TestRebuildGoesOnAfterMissingReferences(t *testing.T) {
	ctx := t.Context()
	table := harness.NewTable(t, harness.Account(t))
	plain := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	for id := range 2 {
		v := ann()
		v.ID = id
		if err := plain.Insert(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	p := &completing{refuses: &tables.Error{Kind: tables.ErrMissingReference}}
	byName := intrapartition.NewUnique("name", func(p *person) compoundkey.Part { return compoundkey.Int(p.ID, 3) }, nil) // because of which Rebuild writes the entities
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), p, byName))
	found, err := harness.Findings(ctx, repo.Rebuild, nil)
	if err != nil || len(found) != 2 || found[0].Kind != patterns.Missing {
		t.Errorf("%v, %v", found, err)
	}
}
