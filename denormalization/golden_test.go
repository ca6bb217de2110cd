package denormalization_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// recorder is a runner that notes what intents say, and makes the changes.
type recorder struct{ said []string }

func (*recorder) Register(string, func(context.Context, intents.Intent) error) error { return nil }

func (r *recorder) Run(ctx context.Context, intent intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	r.said = append(r.said, fmt.Sprintf("%q", intent.Members[0].Outside))
	if err := commit(ctx); err != nil {
		return err
	}
	return harness.ApplyAndClose(apply)(ctx)
}

// TestGoldenIntents: what intents say is stored on queues, and read by later versions.
func TestGoldenIntents(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w, fan := newWorld(t, s, elsewhere), newOffices(t, s, 1)
	p, f := assert.Must[*process](t)(w.start(s)), assert.Must[*officeProcess](t)(fan.start(s))
	r := &recorder{}
	manager, city := denormalization.New("manager", managing(), nil), denormalization.New("city", cityLink(), nil)
	departments := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(harness.In(p.departments.Table(), r),
		patterns.Schema[department]{Key: p.departments.KeyOf}, manager.Holder()))
	employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(p.employees.Table(), r),
		patterns.Schema[employee]{Key: p.employees.KeyOf}, manager.Source()))
	members := assert.Must[*patterns.Repository[member]](t)(patterns.NewRepository(harness.In(f.members.Table(), r), patterns.Schema[member]{Key: f.members.KeyOf}, city.Holder()))
	places := assert.Must[*patterns.Repository[office]](t)(patterns.NewRepository(harness.In(f.offices.Table(), r),
		patterns.Schema[office]{Key: f.offices.KeyOf}, city.Source()))

	e, o := jones(), &office{Code: "L", City: "London"}
	assert.Check(t, employees.Insert(ctx, e), employees.Replace(ctx, e))
	e.Manages = "B"
	assert.Check(t, employees.Replace(ctx, e), employees.Delete(ctx, e))
	assert.Check(t, places.Insert(ctx, o), places.DeleteUnconditional(ctx, o.Key()))
	assert.Check(t, departments.Insert(ctx, &department{Site: "Sales", Name: "C", ManagerSite: "Sales", ManagerID: 7}), members.Insert(ctx, &member{ID: 9, Office: "L"}))
	want := []string{
		`map["manager":["Sales\tdept_A\tnew"]]`,
		`map["manager":["Sales\tdept_A"]]`,
		`map["manager":["Sales\tdept_B\tnew" "Sales\tdept_A"]]`,
		`map["manager":["Sales\tdept_B"]]`,
		`map["city":["*"]]`,
		`map["city":["*"]]`,
		`map["manager.holder":["Sales\tempid_000007"]]`,
		`map["city.holder":["L\toffice_L"]]`,
	}
	if !slices.Equal(r.said, want) {
		t.Fatalf("intents say\n%q\nwant\n%q", r.said, want)
	}
}
