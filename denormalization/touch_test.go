package denormalization_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestTouch: to write a source again for an index does not write its holders, unless their copy is wrong.
func TestTouch(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A", "B")
		for id, name := range []string{"A", "B"} {
			assert.Check(t, t.employees.Insert(ctx, &employee{Site: "Sales", ID: id + 1, Name: name + "'s", ManagesSite: "Sales", Manages: name}))
		}
		assert.Check(t, drainNow(ctx, t.queue))
		_, err := t.w.unlinked(t, t.s).Update(ctx, departmentKey("Sales", "B"), func(d *department) error { d.ManagerName = "?"; return nil })
		assert.Check(t, err)
		stored := func(name string) *department {
			return assert.Must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", name)))
		}
		before := stored("A")

		account, queue, err := connect(t.s, t.w.queue)
		assert.Check(t, err)
		copies, runner := t.w.link(queue)
		_, err = t.w.openDepartments(account, runner, copies.Holder())
		assert.Check(t, err)
		index := intrapartition.NewUnique("name", func(e *employee) string { return e.Name }, nil)
		employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(account.Table(t.w.employees), runner),
			patterns.Schema[employee]{Name: "employees", Prefix: "empid", Key: t.employees.KeyOf}, index, copies.Source()))
		if report := assert.Must[patterns.RebuildReport](t)(employees.Rebuild(ctx, nil)); report.Written != 2 || report.Failed != 0 {
			t.Errorf("%+v", report)
		}
		assert.Check(t, drainNow(ctx, queue))
		if after := stored("A"); after.ETag != before.ETag {
			t.Error("the holder with the right copy was written")
		}
		if after := stored("B"); after.ManagerName != "B's" {
			t.Errorf("the wrong copy is %q", after.ManagerName)
		}
		if err := harness.Clean(ctx, employees.Verify, atOnce()); err != nil {
			t.Error(err)
		}
	})
}
