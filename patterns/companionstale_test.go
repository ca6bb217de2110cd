package patterns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// team is what persons' transactions change with them.
type team struct {
	tables.Meta
	Name string
	Size int
}

func teamSchema() patterns.Schema[team] {
	return patterns.Schema[team]{Name: "teams", Prefix: "team", Key: func(v *team) tables.Key {
		return tables.Key{Partition: "red", Row: compoundkey.Join("team", compoundkey.String(v.Name))}
	}}
}

// teams is a repository in the persons' partition, with an index that follows the size.
func teams(t *testing.T, table *tables.Table) *patterns.Repository[team] {
	t.Helper()
	size := intrapartition.NewUnique("size", func(v *team) compoundkey.Part { return compoundkey.Int(v.Size, 4) }, nil)
	return assert.Must[*patterns.Repository[team]](t)(patterns.NewRepository(table, teamSchema(), size))
}

// growing is a pattern of persons that has their team grow with each change.
func growing(t *testing.T, all *patterns.Repository[team], called func()) *scripted {
	return &scripted{companions: func(x *tables.Transaction) {
		called()
		teams := patterns.HostOf(all)
		v, err := driver.Got[team](teams.GetIn(t.Context(), x, tables.Key{Partition: "red", Row: "team_red"}))
		if err != nil {
			t.Error(err)
			return
		}
		v.Size++
		teams.Stage(t.Context(), driver.ChangeReplace, x, v)
	}}
}

// TestCompanionsCopyIsMissing: a copy that is missing is repaired by the next change, also where that is another entity's whose
// transaction it is in, and a concurrent writer who puts it back meanwhile leaves nothing behind.
func TestCompanionsCopyIsMissing(t *testing.T) {
	for name, concurrent := range map[string]bool{"alone": false, "put back": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			table := harness.NewTable(t, harness.Account(t))
			all := teams(t, table)
			red, calls := tables.Key{Partition: "red", Row: "team_red"}, 0
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), growing(t, all, func() {
				if calls++; calls == 20 {
					cancel() // or it would go on for ever
				}
				if concurrent && calls == 2 {
					assert.Must[*team](t)(all.Update(ctx, red, func(*team) error { return nil }))
				}
			})))
			if err := errors.Join(all.Insert(ctx, &team{Name: "red"}), table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "red", Row: "size_0000"})); err != nil {
				t.Fatal(err)
			}
			if err := repo.Insert(ctx, ann()); err != nil || calls != 2 {
				t.Fatalf("after %d plans: %v", calls, err)
			}
			if v := assert.Must[*team](t)(all.Get(ctx, red)); v.Size != 1 {
				t.Errorf("a size of %d", v.Size)
			}
			if err := harness.Clean(ctx, all.Verify, &patterns.JobOptions{Partitions: []string{"red"}, Lag: 1}); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestCompanionsKeyIsTaken: an index key of a companion that somebody left behind is no copy of the change's own entity.
func TestCompanionsKeyIsTaken(t *testing.T) {
	ctx, table := t.Context(), harness.NewTable(t, harness.Account(t))
	all := teams(t, table)
	calls := 0
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), growing(t, all, func() { calls++ })))
	// A copy that was left behind by a program without the index: the persons' repository cannot tell whose it is.
	old := &team{Name: "old", Size: 1}
	unindexed := assert.Must[*patterns.Repository[team]](t)(patterns.NewRepository(table, teamSchema()))
	if err := errors.Join(all.Insert(ctx, &team{Name: "red"}), all.Insert(ctx, old), unindexed.DeleteUnconditional(ctx, old.Key())); err != nil {
		t.Fatal(err)
	}
	e := harness.WantKind(t, repo.Insert(ctx, ann()), tables.ErrDuplicate)
	if e.Key.Row != "size_0001" || calls != 1 {
		t.Errorf("%+v, after %d plans", e, calls)
	}
}

// TestCompanionsReadThroughTheSet: a pattern that changes an entity which the transaction changes already reads it with GetIn, or is
// refused; and GetIn is for Companions alone.
func TestCompanionsReadThroughTheSet(t *testing.T) {
	ctx, table := t.Context(), harness.NewTable(t, harness.Account(t))
	all := teams(t, table)
	red, stored := tables.Key{Partition: "red", Row: "team_red"}, &team{Name: "red"}
	assert.Check(t, all.Insert(ctx, stored))
	through := true
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), &scripted{companions: func(x *tables.Transaction) {
		host := patterns.HostOf(all)
		get := host.Get
		if through {
			get = func(ctx context.Context, key tables.Key) (any, error) { return host.GetIn(ctx, x, key) }
		}
		v := assert.Must[*team](t)(driver.Got[team](get(ctx, red)))
		v.Size++
		host.Stage(ctx, driver.ChangeReplace, x, v)
	}}))
	both := func() error {
		x := table.NewTransaction()
		v := assert.Must[*team](t)(all.Get(ctx, red))
		v.Size += 10
		all.StageReplace(x, v)
		repo.StageInsert(x, ann())
		bob := ann()
		bob.ID, bob.Email = 8, "bob@contoso.com"
		repo.StageInsert(x, bob)
		_, err := x.Commit(ctx)
		if err == nil && v.Size != 12 {
			t.Errorf("the value given to the transaction has size %d", v.Size)
		}
		return err
	}
	assert.Check(t, both())
	if v := assert.Must[*team](t)(all.Get(ctx, red)); v.Size != 12 {
		t.Errorf("a size of %d", v.Size)
	}
	through = false
	if e := harness.WantKind(t, both(), tables.ErrInvalid); e.Pattern != "scripted" || e.Change != 2 {
		t.Errorf("%+v", e)
	}
	_, err := patterns.HostOf(all).GetIn(ctx, table.NewTransaction(), red)
	harness.WantKind(t, err, tables.ErrInvalid)
	assert.Check(t, harness.Clean(ctx, all.Verify, nil))
}
