package archive_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// moverRequests is the number of requests of a worker between which users write, or at which a worker dies.
const moverRequests = 7

// TestMoverUsersAtBothEnds: whatever users do at either end, at whichever request of a worker that dies there or goes on, what
// they were told stays true once workers have drained the queue.
func TestMoverUsersAtBothEnds(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		for _, atSource := range acts() {
			for _, atCopy := range acts() {
				name := fmt.Sprintf("to blobs %v, source %q, copy %q", toBlobs, atSource, atCopy)
				t.Run(name, func(t *testing.T) {
					for at := range moverRequests {
						for _, mode := range []string{"dies before", "dies after", "goes on", "gets a 503"} {
							if harness.Shortened() && mode != "dies after" {
								continue
							}
							if err := bothEnds(t, toBlobs, usersOf(atSource, atCopy), at, mode); err != nil {
								t.Errorf("at request %d, the worker %s: %v", at, mode, err)
							}
						}
					}
				})
			}
		}
	}
}

// bothEnds is one run: the worker comes to a request, users come, and other workers drain the queue.
func bothEnds(t *testing.T, toBlobs bool, users []user, at int, mode string) error {
	s := storagetest.Simulator(t, nil)
	o := newOffice(t, s, office{toBlobs: toBlobs})
	ctx, plain, c := t.Context(), o.open(t, s), june()
	harness.Check(t, plain.current.Insert(ctx, c))
	harness.Check(t, plain.mover.Move(ctx, c))
	var once sync.Once
	come := func() {
		once.Do(func() {
			for _, u := range users {
				if err := u.come(context.Background(), plain); err != nil {
					t.Errorf("user at %s: %v", u.name, err)
				}
			}
		})
	}
	faults := map[string]storagetest.Fault{"dies before": storagetest.DiesBefore, "dies after": storagetest.DiesAfter,
		"goes on": storagetest.After("users", come), "gets a 503": storagetest.Before500}
	faulty, calls := s.WithRetries(0).Faulty(storagetest.OnIndex(at, storagetest.Always(faults[mode])))
	living, cancel := calls.Context(ctx)
	defer cancel()
	_, _ = o.open(t, faulty).work(living, 5)
	come()
	for range 3 {
		s.Wait(2 * moverVisibility)
		if _, err := plain.work(ctx, 8); err != nil {
			return err
		}
	}
	if n := harness.Must[int](t)(plain.queue.Length(ctx)); n != 0 {
		return fmt.Errorf("%d messages are left", n)
	}
	return plain.promised(ctx, users)
}
