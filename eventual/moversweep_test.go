package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// rival is somebody who changes the entity just after it was copied for the first time.
type rival struct {
	act func(ctx context.Context, p *officer, c *clerk) error
	// current and archived are what the places have in the end, "" for nothing; stays is what may stay in the archive once
	// something has gone wrong.
	current, archived string
	stays             string
	floors            [3]int // of the sweeps
}

func sweptRivals() map[string]rival {
	return map[string]rival{
		"none": {archived: "first: hired", floors: [3]int{220, 216, 344}},
		"update": {archived: "first: promoted", floors: [3]int{316, 308, 500}, act: func(ctx context.Context, p *officer, c *clerk) error {
			_, err := p.current.Update(ctx, clerkKey(c), rewrite("promoted"))
			return err
		}},
		"delete": {stays: "first: hired", floors: [3]int{284, 276, 344}, act: func(ctx context.Context, p *officer, c *clerk) error {
			return p.current.DeleteUnconditional(ctx, clerkKey(c))
		}},
		"re-insert": {stays: "first: hired", current: "second: hired", floors: [3]int{284, 276, 344}, act: func(ctx context.Context, p *officer, c *clerk) error {
			err := p.current.DeleteUnconditional(ctx, clerkKey(c))
			return errors.Join(err, p.current.Insert(ctx, &clerk{Department: c.Department, ID: c.ID, Email: c.Email, Life: "second", Note: "hired"}))
		}},
	}
}

// TestSweepMover: whatever befalls any request of a worker, and whoever comes between, after workers have drained the queue
// the entity is in one place with its last content.
func TestSweepMover(t *testing.T) {
	offices := []office{{}, {toBlobs: true}, {reachesOut: true}}
	for name, rival := range sweptRivals() {
		for i, o := range offices {
			to := []string{"a repository", "a container", "a repository, reaching out"}[i]
			t.Run(name+" to "+to, func(t *testing.T) {
				storagetest.Sweep(t, storagetest.SweepCase{Floor: rival.floors[i], Every: harness.WideSweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
					return rival.world(t, s, newOffice(t, s, o))
				}})
			})
		}
	}
}

func (r rival) world(t testing.TB, s *storagetest.Service, o *office) storagetest.World {
	plain, c := o.open(t, s), june()
	check(t, plain.current.Insert(t.Context(), c))
	check(t, plain.mover.Move(t.Context(), c))
	var once sync.Once
	acted := false
	act := func() {
		once.Do(func() {
			err := errors.New("nobody")
			if r.act != nil {
				err = r.act(context.Background(), plain, c)
			}
			acted = err == nil
			if err != nil && r.act != nil && !errors.Is(err, patterns.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			p, err := o.start(between(s, o, act))
			if err != nil {
				return err
			}
			_, err = p.work(ctx, 5)
			return err
		},
		Recover: o.recover,
		Check: func(ctx context.Context, _ *storagetest.Service, end storagetest.Ending) error {
			found, err := plain.find(ctx, c)
			if err != nil {
				return err
			}
			if err := r.judge(found, acted, end.Point.Fault != nil); err != nil {
				return err
			}
			return plain.checkRows(ctx)
		},
	}
}

// judge compares the places with what the rival has done, if it came so far.
func (r rival) judge(found places, acted, faulty bool) error {
	state := func(c *clerk) string {
		if c == nil {
			return ""
		}
		return c.state()
	}
	current, archived := r.current, r.archived
	if r.act != nil && !acted {
		if faulty { // the process died before, and its successor came first
			current, archived = "", "first: hired"
		} else {
			return errors.New("the rival never came")
		}
	}
	ok := state(found.current) == current && state(found.archived) == archived
	if acted && faulty && r.stays != "" && state(found.current) == current && state(found.archived) == r.stays {
		ok = true
	}
	if !ok {
		return fmt.Errorf("%v; want %q and %q", found, current, archived)
	}
	return nil
}
