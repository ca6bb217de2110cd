package archive_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// sweptUsers are users who come just after the copy was written for the first time, and how many points the sweeps have at
// least: to a repository, to a container, and to a repository by patterns that reach out of the partition.
func sweptUsers() []struct {
	atSource, atCopy string
	floors           [3]int
} {
	return []struct {
		atSource, atCopy string
		floors           [3]int
	}{
		{"", "", [3]int{324, 296, 380}},
		{updates, "", [3]int{532, 500, 616}},
		{deletes, "", [3]int{484, 476, 544}},
		{insertsAgain, "", [3]int{412, 452, 380}},
		{"", updates, [3]int{324, 296, 380}},
		{"", deletes, [3]int{324, 296, 380}},
		{updates, updates, [3]int{456, 480, 484}},
		{deletes, updates, [3]int{520, 480, 580}},
	}
}

// TestSweepMover: whatever goes wrong with any request of a worker, and whoever changes the two ends meanwhile, what users were
// told stays true once workers have drained the queue.
func TestSweepMover(t *testing.T) {
	offices := []office{{}, {toBlobs: true}, {reachesOut: true}}
	for _, c := range sweptUsers() {
		if c.atSource == insertsAgain && !harness.Thorough() {
			continue // much as a delete
		}
		for i, o := range offices {
			to := []string{"a repository", "a container", "a repository, reaching out"}[i]
			t.Run(fmt.Sprintf("source %q, copy %q, to %s", c.atSource, c.atCopy, to), func(t *testing.T) {
				storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floors[i], Every: harness.WideSweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
					return sweptMove(t, s, newOffice(t, s, o), usersOf(c.atSource, c.atCopy))
				}})
			})
		}
	}
}

func sweptMove(t testing.TB, s *storagetest.Service, o *office, users []user) storagetest.World {
	plain, c := o.open(t, s), june()
	assert.Check(t, plain.current.Insert(t.Context(), c))
	assert.Check(t, plain.mover.Move(t.Context(), c))
	var once sync.Once
	came := false
	come := func() {
		once.Do(func() {
			came = true
			for _, u := range users {
				if err := u.come(context.Background(), plain); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			p, err := o.start(between(s, o, come))
			if err != nil {
				return err
			}
			_, err = p.work(ctx, 5)
			return err
		},
		Recover: o.recover,
		Check: func(ctx context.Context, _ *storagetest.Service, end storagetest.Ending) error {
			if !came && end.Point.Fault == nil {
				return errors.New("the users never came")
			}
			come() // who did not come before comes late
			return plain.promised(ctx, users)
		},
	}
}
