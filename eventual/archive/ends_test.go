package archive_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// moverRequests is the number of requests of a worker between which users write, or at which a worker dies.
const moverRequests = 7

// TestMoverUsersAtBothEnds: whatever users do at either end, at whichever request of a worker that dies there or goes on, what
// they were told stays true once workers have drained the queue. Unless the test is thorough, it tries a third of these points.
func TestMoverUsersAtBothEnds(t *testing.T) {
	pair := 0
	for _, toBlobs := range []bool{false, true} {
		for _, atSource := range acts() {
			for _, atCopy := range acts() {
				name := fmt.Sprintf("to blobs %v, source %q, copy %q", toBlobs, atSource, atCopy)
				pair++
				first := pair
				t.Run(name, func(t *testing.T) {
					for at := range moverRequests {
						for i, mode := range []string{"dies before", "dies after", "goes on", "gets a 503"} {
							if harness.Shortened() && mode != "dies after" || !harness.Thorough() && (first+4*at+i)%3 != 0 {
								continue
							}
							if err := bothEnds(t, office{toBlobs: toBlobs}, usersOf(atSource, atCopy), at, mode); err != nil {
								t.Errorf("at request %d, the worker %s: %v", at, mode, err)
							}
						}
					}
				})
			}
		}
	}
}

// replaceRequests is the number of requests of a worker that replaces another blob.
const replaceRequests = 11

// TestMoverUsersReplace: users change the entity while the copy replaces something else.
func TestMoverUsersReplace(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		for _, atSource := range acts() {
			t.Run(fmt.Sprintf("to blobs %v, source %q", toBlobs, atSource), func(t *testing.T) {
				for at := range replaceRequests {
					for i, mode := range []string{"dies before", "dies after", "goes on", "gets a 503"} {
						if !harness.Thorough() && (len(atSource)+4*at+i)%3 != 0 {
							continue
						}
						if err := bothEnds(t, office{toBlobs: toBlobs, replaces: true}, usersOf(atSource, ""), at, mode); err != nil {
							t.Errorf("at request %d, the worker %s: %v", at, mode, err)
						}
					}
				}
			})
		}
	}
}

// occupy puts something else at the destination.
func (p *officer) occupy(ctx context.Context) error {
	if !p.toBlobs {
		return p.archive.Insert(ctx, &clerk{Department: june().Department, ID: june().ID, Email: "occupant@contoso.com", Life: "occupant"})
	}
	_, err := blobstorage.Container(p.queue.Account(), p.container).NewBlockBlobClient(clerkBlob(june())).Upload(ctx, streaming.NopCloser(strings.NewReader(
		`{"v":1,"partition":"Sales","row":"empid_000223","properties":{"Life":"occupant"}}`)), nil)
	return err
}

// bothEnds is one run: the worker comes to a request, users come, and other workers drain the queue. If the office replaces,
// something else is at the destination before.
func bothEnds(t *testing.T, o office, users []user, at int, mode string) error {
	s := storagetest.Simulator(t, nil)
	p := newOffice(t, s, o)
	ctx, plain, c := t.Context(), p.open(t, s), june()
	if o.replaces {
		assert.Check(t, plain.occupy(ctx))
	}
	assert.Check(t, plain.current.Insert(ctx, c))
	assert.Check(t, plain.mover.Move(ctx, c))
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
	_, _ = p.open(t, faulty).work(living, 5)
	come()
	for range 3 {
		s.Wait(2 * moverVisibility)
		if _, err := plain.work(ctx, 8); err != nil {
			return err
		}
	}
	if n := assert.Must[int](t)(plain.queue.Length(ctx)); n != 0 {
		return fmt.Errorf("%d messages are left", n)
	}
	return plain.promised(ctx, users)
}
