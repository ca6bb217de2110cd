package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// referring is managing, with departments that decide who manages them.
func referring() denormalization.Link[employee, department] {
	l := managing()
	l.Holders, l.Properties = nil, []string{"ManagerName", "ManagerEmail"}
	l.Find = func(departments tables.Query[department], _ tables.Key) tables.Query[department] {
		return departments.AllowTableScan()
	}
	l.Copy = func(e *employee, d *department) {
		if e == nil {
			e = &employee{}
		}
		d.ManagerName, d.ManagerEmail = e.Name, e.Email
	}
	return l
}

// attacked is a table in which somebody else may write the rows of the partition Attacker.
type attacked struct {
	employees   *patterns.Repository[employee]
	departments *patterns.Repository[department]
	queue       *eventual.Queue
	carryOut    func(context.Context, intents.Intent) error // an intent of an employee
}

func newAttacked(t *testing.T, copies *denormalization.Copies[employee, department], mayName func(entity, other tables.Key) bool) *attacked {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	account, queue, err := connect(s, s.QueueName(t))
	assert.Check(t, err)
	a, table := &attacked{queue: queue}, account.Table(s.TableName(t))
	a.departments = assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(harness.In(table, queue), patterns.Schema[department]{
		Name: "departments", Prefix: "dept", MayName: mayName, Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) },
	}, copies.Holder()))
	a.employees = assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(table, registered{harness.Runner(queue), &a.carryOut}), patterns.Schema[employee]{
		Name: "employees", Prefix: "empid", MayName: mayName, Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) },
	}, copies.Source()))
	assert.Check(t, table.Create(t.Context()), queue.Create(t.Context()))
	assert.Check(t, a.departments.Insert(t.Context(), &department{Site: "Works", Name: "A"}))
	assert.Check(t, a.employees.Insert(t.Context(), &employee{Site: "Works", ID: 1, Name: "June", Email: "june@contoso.com", ManagesSite: "Works", Manages: "A"}))
	return a
}

// forge writes a row with a plain client.
func (a *attacked) forge(t *testing.T, key tables.Key, properties map[string]any) {
	t.Helper()
	row := &tables.Entity{Key: key}
	for name, v := range properties {
		row.Set(name, assert.Must[tables.Value](t)(tables.ValueOf(v)))
	}
	assert.Check(t, a.employees.Table().Entities().Upsert(t.Context(), row))
}

// rows returns the ETags of the victim's rows, and whether a row of the attacker has the victim's address.
func (a *attacked) rows(t *testing.T) (victims map[string]string, leaked bool) {
	t.Helper()
	victims = map[string]string{}
	for row, err := range a.employees.Table().Entities().Query().AllowTableScan().All(t.Context()) {
		assert.Check(t, err)
		email, _ := row.Get("ManagerEmail").Text()
		switch row.Key.Partition {
		case "Works":
			victims[row.Key.Row] = string(row.ETag)
		default:
			leaked = leaked || email == "june@contoso.com"
		}
	}
	return victims, leaked
}

// TestForgedNames: a row of one partition that names a source or a holder in another partition has nothing written there and nothing
// copied from there, by a job, by a worker or by a change, if Schema.MayName does not let it, or the link copies within a partition.
// The cases "open" show that the attempt is one.
func TestForgedNames(t *testing.T) {
	within := func(entity, other tables.Key) bool { return entity.Partition == other.Partition }
	for name, c := range map[string]struct {
		copies  *denormalization.Copies[employee, department]
		mayName func(entity, other tables.Key) bool
		open    bool
		want    string // in a finding, unless open
	}{
		"Holders, open":  {denormalization.New("manager", managing(), nil), nil, true, ""},
		"Holders":        {denormalization.New("manager", managing(), nil), within, false, "Schema.MayName"},
		"Find, open":     {denormalization.New("manager", referring(), nil), nil, true, ""},
		"Find":           {denormalization.New("manager", referring(), nil), within, false, "Schema.MayName"},
		"NewInPartition": {denormalization.NewInPartition("manager", managing(), nil), nil, false, "in two partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, a := t.Context(), newAttacked(t, c.copies, c.mayName)
			source, holder := employeeKey("Attacker", 9), departmentKey("Attacker", "B")
			assert.Check(t, a.employees.Insert(ctx, &employee{Site: "Attacker", ID: 9}))
			assert.Check(t, a.departments.Insert(ctx, &department{Site: "Attacker", Name: "B"}))
			before, _ := a.rows(t)
			a.forge(t, source, map[string]any{"Site": "Attacker", "ID": int32(9), "Name": "?", "ManagesSite": "Works", "Manages": "A"})
			a.forge(t, holder, map[string]any{"Site": "Attacker", "Name": "B", "ManagerSite": "Works", "ManagerID": int32(1)})
			found, err := harness.Findings(ctx, a.employees.Repair, atOnce())
			assert.Check(t, err)
			if name != "NewInPartition" { // which has no intents
				err = a.carryOut(ctx, intents.Intent{Members: []intents.Member{{Key: source, Outside: map[string][]string{"manager": {driver.JoinKey(departmentKey("Works", "A"))}}}}})
			}
			_, updateErr := a.employees.Update(ctx, source, func(e *employee) error { e.Name = "??"; return nil })
			insertErr := a.departments.Insert(ctx, &department{Site: "Attacker", Name: "C", ManagerSite: "Works", ManagerID: 1})
			assert.Check(t, drainNow(ctx, a.queue))
			after, leaked := a.rows(t)
			if changed := !maps.Equal(before, after) || leaked; changed != c.open {
				t.Errorf("the victim's rows: before %v, after %v; leaked: %v", before, after, leaked)
			}
			if strings.HasPrefix(name, "Find") && !maps.Equal(before, after) {
				t.Error("a holder that does not name the source was written")
			}
			if reason := fmt.Sprint(insertErr); !c.open && (!errors.Is(insertErr, tables.ErrInvalid) || !strings.Contains(reason, c.want)) {
				t.Errorf("no word of %s in %s", c.want, reason)
			}
			if reason := fmt.Sprint(found, err, updateErr); !c.open && !strings.HasPrefix(name, "Find") && (!errors.Is(updateErr, tables.ErrInvalid) || strings.Count(reason, c.want) < 2) {
				t.Errorf("no word of %s in %s", c.want, reason)
			}
			if found, err := harness.Findings(ctx, a.employees.Repair, atOnce()); err != nil || !c.open && slices.ContainsFunc(found, func(f patterns.Finding) bool { return f.Repaired }) {
				t.Errorf("a second run of Repair: %v, %v", found, err)
			}
			// The victim's own changes succeed, and so does the attacker's row once it names what it may.
			_, err = a.employees.Update(ctx, employeeKey("Works", 1), func(e *employee) error { e.Email = "jones@contoso.com"; return nil })
			assert.Check(t, err)
			_, err = a.employees.Update(ctx, source, func(e *employee) error { e.Manages = ""; return nil })
			assert.Check(t, err)
			_, err = a.departments.Update(ctx, holder, func(d *department) error { d.ManagerSite, d.ManagerID = "Attacker", 9; return nil })
			assert.Check(t, err)
			if n := assert.Must[int](t)(a.queue.Length(ctx)); n != 0 {
				t.Errorf("%d intents are left", n)
			}
		})
	}
}
