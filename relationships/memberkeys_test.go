package relationships_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMembersWithLongKeys: an entity whose member row would have a key over 512 units cannot enter the parent. One that a
// program without Members has stored there can still change, leave the parent, and be deleted.
func TestMembersWithLongKeys(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)(newWorld(t, s, members).start(s))
	long := strings.Repeat("p", 500)
	in := func(id int, project string) *employee { return &employee{Site: "Sales", ID: id, Project: project} }
	if err := p.employees.Insert(ctx, in(1, long)); !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), "512") {
		t.Errorf("Insert: %v", err)
	}
	short := in(2, "P")
	assert.Check(t, p.employees.Insert(ctx, short))
	short.Project = long
	if err := p.employees.Replace(ctx, short); err == nil {
		t.Error("Replace puts an employee into a project whose member row cannot be stored")
	}
	read := func(id int) *employee {
		return assert.Must[*employee](t)(p.employees.Get(ctx, employeeKey("Sales", id)))
	}
	for id := 3; id <= 4; id++ {
		assert.Check(t, p.plain.Insert(ctx, in(id, long)))
		e := read(id)
		e.Name = "changed"
		assert.Check(t, p.employees.Replace(ctx, e))
	}
	assert.Check(t, p.employees.Delete(ctx, read(3)))
	moving := read(4)
	moving.Project = "P"
	assert.Check(t, p.employees.Replace(ctx, moving))
	if n := assert.Must[int64](t)(p.members.Count(ctx, projectKey("P"))); n != 2 {
		t.Errorf("project P has %d members, want 2", n)
	}
	if n := assert.Must[int](t)(p.queue.Length(ctx)); n != 0 {
		t.Errorf("%d intents are left", n)
	}
	// An intent of an older build names the parent that is left.
	assert.Check(t, harness.ReconcileOne(ctx, harness.PatternOf(t, p.employees, "members").Effect.Reconcile, &driver.Reconciliation{Key: employeeKey("Sales", 3), Keys: []string{"projects\t" + long}}))
}

// TestVerifyTellsOfLongMemberKeys: Verify reports an entity whose member row cannot be stored, and goes on.
func TestVerifyTellsOfLongMemberKeys(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)(newWorld(t, s, members).start(s))
	assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", ID: 1, Project: strings.Repeat("p", 500)}), p.plain.Insert(ctx, &employee{Site: "Sales", ID: 2, Project: "P"}))
	found := map[patterns.FindingKind]int{}
	all, err := harness.Findings(ctx, p.employees.Verify, &patterns.JobOptions{Lag: 1})
	assert.Check(t, err)
	for _, d := range all {
		found[d.Kind]++
		if d.Kind == patterns.Undecodable && !strings.Contains(d.Err.Error(), "512") {
			t.Errorf("the error of the long key is %v", d.Err)
		}
	}
	if len(found) != 2 || found[patterns.Undecodable] != 1 || found[patterns.Missing] != 1 {
		t.Errorf("found %v", found)
	}
}
