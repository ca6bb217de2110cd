package denormalization_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// recorder is a runner that notes what intents say, and makes the changes.
type recorder struct{ said []string }

func (*recorder) Register(string, func(context.Context, patterns.Intent) error) error { return nil }

func (r *recorder) Run(ctx context.Context, intent patterns.Intent, commit, reconcile func(context.Context) error) error {
	r.said = append(r.said, fmt.Sprintf("%q", intent.Outside))
	if err := commit(ctx); err != nil {
		return err
	}
	return reconcile(ctx)
}

// TestGoldenIntents: what intents say is stored on queues, and read by later versions.
func TestGoldenIntents(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w, fan := newWorld(t, s, elsewhere), newOffices(t, s, 1)
	p, f := must[*process](t)(w.start(s)), must[*officeProcess](t)(fan.start(s))
	r := &recorder{}
	employees := must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.employees.Table(),
		patterns.Schema[employee]{Key: p.employees.KeyOf, Intents: r}, denormalization.New("manager", managing(p.departments))))
	city := denormalization.New("city", cityLink(f.members, 0))
	places := must[*patterns.Repository[office]](t)(patterns.NewRepository(f.offices.Table(),
		patterns.Schema[office]{Key: f.offices.KeyOf, Intents: r}, city))

	e, o := jones(), &office{Code: "L", City: "London"}
	check(t, employees.Insert(ctx, e), employees.Replace(ctx, e))
	e.Manages = "B"
	check(t, employees.Replace(ctx, e), employees.Delete(ctx, e))
	check(t, places.Insert(ctx, o), city.Refresh(ctx, memberKey(0)), places.DeleteUnconditional(ctx, o.Key()))
	want := []string{
		`map["manager":["Sales\tdept_A\tnew"]]`,
		`map["manager":["Sales\tdept_A"]]`,
		`map["manager":["Sales\tdept_B\tnew" "Sales\tdept_A"]]`,
		`map["manager":["Sales\tdept_B"]]`,
		`map["city":["*"]]`,
		`map["city":["members\tmember_000000"]]`,
		`map["city":["*"]]`,
	}
	if !slices.Equal(r.said, want) {
		t.Fatalf("intents say\n%q\nwant\n%q", r.said, want)
	}
}
