package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// interrupted is a change of Jones into whose calls a concurrent writer's change comes, from its message to its copies. The concurrent writer takes
// other keys, or the same, or deletes her and leaves her keys to another employee.
type interrupted struct {
	kind
	waive      lease.Rules
	concurrent func(ctx context.Context, repo *patterns.Repository[employee]) error
}

// writerRenames takes keys of its own; both changes cannot have the last word on them.
func writerRenames(ctx context.Context, repo *patterns.Repository[employee]) error {
	_, err := repo.Update(ctx, keyOf(jones()), func(e *employee) error {
		e.Name, e.Email, e.Badge = "June Writer", "writer@contoso.com", "B-9"
		return nil
	})
	return err
}

// writerKeepsKeys is a concurrent writer that sets the same keys and another name.
func writerKeepsKeys(ctx context.Context, repo *patterns.Repository[employee]) error {
	_, err := repo.Update(ctx, keyOf(jones()), func(e *employee) error {
		e.Name, e.Email, e.Badge = "June Writer", changed().Email, changed().Badge
		return nil
	})
	return err
}

// writerReplaces deletes Jones, and gives the keys that she had and was to have to others. With unique keys, those may be
// reserved for her.
func writerReplaces(ctx context.Context, repo *patterns.Repository[employee]) error {
	if err := repo.DeleteUnconditional(ctx, keyOf(jones())); err != nil {
		return err
	}
	for _, e := range []*employee{second(changed().Email, changed().Badge), {Department: "Sales", ID: 6, Name: "Ona", Email: jones().Email, Badge: jones().Badge}} {
		if err := repo.Insert(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// sweep is the case: a concurrent writer at each of the calls.
func (r interrupted) sweep() storagetest.SweepCase {
	var w *world
	var outside *storagetest.Service
	var said error
	concurrent := storagetest.Before("concurrent writer", func() {
		own := *w
		own.async = false
		p, err := own.start(outside)
		if err == nil {
			err = r.concurrent(context.Background(), p.repo)
		}
		said = err
	})
	return storagetest.SweepCase{Faults: []storagetest.Fault{concurrent}, Callers: []storagetest.Caller{storagetest.CallerGivesUp},
		World: func(t testing.TB, s *storagetest.Service) storagetest.World {
			w, outside, said = newWorld(t, s, r.kind), s, nil
			if err := harness.Must[*process](t)(w.start(s)).repo.Insert(t.Context(), jones()); err != nil {
				t.Fatal(err)
			}
			return storagetest.World{
				Operate: func(ctx context.Context, s *storagetest.Service) error {
					p, err := w.start(s)
					if err != nil {
						return err
					}
					return updateJones(lease.Waive(ctx, r.waive), p.repo)
				},
				Recover: w.drain,
				Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
					if said != nil && !(r.unique && errors.Is(said, tables.ErrDuplicate)) {
						return fmt.Errorf("the concurrent writer was told %w", said)
					}
					_, err := w.check(ctx, s)
					return err
				},
			}
		}}
}

// TestSweepConcurrentWriter has a concurrent writer write between any two calls of a change, and compares the indexes with the entities.
func TestSweepConcurrentWriter(t *testing.T) {
	for name, concurrent := range map[string]func(context.Context, *patterns.Repository[employee]) error{
		"renames": writerRenames, "keeps keys": writerKeepsKeys, "replaces": writerReplaces} {
		for _, k := range []kind{{}, {unique: true}, {async: true}, {async: true, unique: true}} {
			c := interrupted{kind: k, concurrent: concurrent}.sweep()
			c.Floor = map[string]int{"sync": 18, "sync-unique": 22, "async": 8, "async-unique": 12}[k.String()]
			t.Run(name+"/"+k.String(), func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// carelessRule is the environment variable that tells this test binary, run again by the test, to let the sweep fail.
const carelessRule = "SWEEP_CARELESS_RULE"

// TestSweepFindsNoReread: without its second look at the entity, a change undoes what a concurrent writer did meanwhile.
func TestSweepFindsNoReread(t *testing.T) {
	if os.Getenv(carelessRule) != "" {
		storagetest.Sweep(t, interrupted{concurrent: writerRenames, waive: lease.Reread}.sweep())
		return
	}
	cmd := exec.CommandContext(t.Context(), harness.Must[string](t)(os.Executable()), "-test.run=^TestSweepFindsNoReread$", "-test.v")
	cmd.Env = append(os.Environ(), carelessRule+"=1")
	out, err := cmd.CombinedOutput()
	said := regexp.MustCompile(`sweep TestSweepFindsNoReread: \d+ points, ([1-9]\d*) divergences`).FindString(string(out))
	if err == nil || said == "" || !strings.Contains(string(out), "the indexes hold") {
		t.Fatalf("a change without its second look was not caught: %v\n%s", err, out)
	}
	t.Log("as expected: " + said)
}

// TestSweepWorker breaks a worker at every call that it makes for a change that was left to it, in every way.
func TestSweepWorker(t *testing.T) {
	for name, operate := range map[string]func(ctx context.Context, repo *patterns.Repository[employee]) error{
		"Update": updateJones,
		"Delete": func(ctx context.Context, repo *patterns.Repository[employee]) error {
			return repo.DeleteUnconditional(ctx, keyOf(jones()))
		},
	} {
		for _, k := range []kind{{async: true}, {async: true, unique: true}} {
			floor := map[string]int{"Update/async": 524, "Update/async-unique": 652, "Delete/async": 300, "Delete/async-unique": 428}[name+"/"+k.String()]
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				storagetest.Sweep(t, storagetest.SweepCase{Floor: floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
					w := newWorld(t, s, k)
					p := harness.Must[*process](t)(w.start(s))
					if err := p.repo.Insert(t.Context(), jones()); err != nil {
						t.Fatal(err)
					}
					if err := w.drainNow(t.Context(), p); err != nil {
						t.Fatal(err)
					}
					if err := operate(t.Context(), p.repo); err != nil {
						t.Fatal(err)
					}
					return storagetest.World{
						Operate: func(ctx context.Context, s *storagetest.Service) error {
							p, err := w.start(s)
							if err != nil {
								return err
							}
							return w.drainNow(ctx, p)
						},
						Recover: w.drain,
						Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
							found, err := w.check(ctx, s)
							if err != nil {
								return err
							}
							if got := found[keyOf(jones())]; got != map[string]string{"Update": textOf(changed())}[name] {
								return fmt.Errorf("there is %q", got)
							}
							return nil
						},
					}
				}})
			})
		}
	}
}
