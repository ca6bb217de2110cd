package relationships_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestForgedParents: a row of one partition that names a parent in another partition adds no member there and changes no number, by
// Repair or by a change of the row, if Schema.MayName does not let it, or the type counts within a partition. The case "open" shows
// that the attempt is one.
func TestForgedParents(t *testing.T) {
	victim := departmentKey("Works", "A")
	named := func(e *employee) (tables.Key, bool) { return departmentKey(e.Project, "A"), e.Project != "" }
	within := func(entity, other tables.Key) bool { return entity.Partition == other.Partition }
	for name, c := range map[string]struct {
		mayName func(entity, other tables.Key) bool
		count   bool // by ParentCount
		open    bool
		want    string
	}{
		"Members, open": {open: true},
		"Members":       {mayName: within, want: "Schema.MayName"},
		"ParentCount":   {count: true, want: "in another partition"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, s.QueueName(t), &eventual.QueueOptions{VisibilityTimeout: visibility}))
			table := harness.In(account.Table(s.TableName(t)), queue)
			departments := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(table, patterns.Schema[department]{
				Name: "departments", Prefix: "dept", Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) },
			}))
			members := relationships.NewMembers("members", nil, named)
			kept := patterns.Pattern[employee](members)
			if c.count {
				kept = relationships.NewParentCount("count", departments, named, countOf)
			}
			employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(table, patterns.Schema[employee]{
				Name: "employees", Prefix: "empid", MayName: c.mayName, Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) },
			}, kept))
			assert.Check(t, table.Create(ctx), queue.Create(ctx))
			assert.Check(t, departments.Insert(ctx, &department{Site: "Works", Name: "A"}))
			assert.Check(t, employees.Insert(ctx, &employee{Site: "Works", ID: 1, Project: "Works"}))
			victims := func() string {
				var all []string
				for row, err := range table.Entities().Query().Partition("Works").All(ctx) {
					assert.Check(t, err)
					all = append(all, row.Key.Row+" "+string(row.ETag))
				}
				return strings.Join(all, "\n")
			}
			before := victims()
			forged := &tables.Entity{Key: employeeKey("Attacker", 9)}
			forged.Set("Site", tables.String("Attacker"))
			forged.Set("ID", tables.Int32(9))
			forged.Set("Project", tables.String("Works"))
			assert.Check(t, table.Entities().Insert(ctx, forged))
			found, err := harness.Findings(ctx, employees.Repair, &patterns.JobOptions{Lag: 1})
			assert.Check(t, err)
			insertErr := employees.Insert(ctx, &employee{Site: "Attacker", ID: 8, Project: "Works"})
			_, err = employees.Update(ctx, forged.Key, func(e *employee) error { e.Project = ""; return nil })
			assert.Check(t, err, drainNow(ctx, queue))
			if after := victims(); (before != after) != c.open {
				t.Errorf("the victim's rows, before:\n%s\nafter:\n%s", before, after)
			}
			if reason := fmt.Sprint(found, insertErr); !c.open && (!errors.Is(insertErr, tables.ErrInvalid) || !strings.Contains(reason, c.want) || !c.count && strings.Count(fmt.Sprint(found), c.want) == 0) {
				t.Errorf("no word of %s in %s", c.want, reason)
			}
			if n, err := members.Count(ctx, victim); !c.count && !c.open && (err != nil || n != 1) {
				t.Errorf("%d members, %v", n, err)
			}
		})
	}
}
