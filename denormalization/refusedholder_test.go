package denormalization_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// orphaned is a pattern of the holders that does not find what a holder needs to be written.
type orphaned struct{ refuses bool }

func (o *orphaned) Attach(driver.Host, *department) (driver.Implementation, error) {
	return driver.Implementation{Name: "orphaned", Rows: o.rows}, nil
}

func (o *orphaned) rows(context.Context, []*driver.Change) ([]driver.RowOperation, error) {
	if o.refuses {
		return nil, &tables.Error{Pattern: "orphaned", Kind: tables.ErrNotFound, Err: errors.New("the parent is not there")}
	}
	return nil, nil
}

// TestRefusedHolder: a holder that its own patterns refuse to write still exists, with an outdated copy. So the
// intent stays, and is carried out once they do.
func TestRefusedHolder(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, elsewhere)
	account, queue, err := connect(s, w.queue)
	if err != nil {
		t.Fatal(err)
	}
	refusing := &orphaned{}
	copies := denormalization.New("manager", managing(), nil)
	departments := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(harness.In(account.Table(w.departments), queue),
		patterns.Schema[department]{Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) }}, refusing, copies.Holder()))
	employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(account.Table(w.employees), queue),
		patterns.Schema[employee]{Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }},
		copies.Source()))
	if err := departments.Insert(t.Context(), &department{Site: "North", Name: "Sales"}); err != nil {
		t.Fatal(err)
	}
	refusing.refuses = true
	if err := employees.Insert(t.Context(), &employee{Site: "North", ID: 1, Name: "Ann", ManagesSite: "North", Manages: "Sales"}); err != nil {
		t.Fatal(err)
	}
	if n := assert.Must[int](t)(queue.Length(t.Context())); n != 1 {
		t.Fatalf("%d intents are left", n)
	}
	refusing.refuses = false
	if err := drainNow(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if d := assert.Must[*department](t)(departments.Get(t.Context(), departmentKey("North", "Sales"))); d.ManagerName != "Ann" {
		t.Errorf("the holder has %q", d.ManagerName)
	}
}
