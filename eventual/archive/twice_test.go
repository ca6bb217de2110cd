package archive_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestMoverTwice: two messages about one entity that are handled at the same time. When the second worker finds the entity gone,
// the copy is all there is of it.
func TestMoverTwice(t *testing.T) {
	everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
		ctx, plain, c := t.Context(), o.open(t, s), june()
		assert.Check(t, plain.current.Insert(ctx, c))
		for range 2 {
			assert.Check(t, plain.mover.Move(ctx, c))
		}
		// The first worker is stopped after its copy, while another one does the rest, after an update.
		p := o.open(t, between(s, o, func() {
			if _, err := plain.current.Update(ctx, clerkKey(c), rewrite("promoted")); err != nil {
				t.Error(err)
			}
			drainMoves(t, plain)
		}))
		if stats := drainMoves(t, p); stats.Failed != 0 {
			t.Errorf("%+v", stats)
		}
		wantPlaces(t, plain, c, "", "first: promoted")
	})
}

// hook does something before or after one of the requests of a process: the one of its kind that has this index.
type hook struct {
	kind  storagetest.Kind
	index int
	after bool
	do    func()
}

// hooked returns a service whose client comes by the hooks.
func hooked(s *storagetest.Service, hooks ...hook) *storagetest.Service {
	var mu sync.Mutex
	seen := map[storagetest.Kind]int{}
	hooked, _ := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		seen[call.Kind]++
		for _, h := range hooks {
			switch {
			case h.kind != call.Kind || h.index != seen[call.Kind]-1:
			case h.after:
				return storagetest.After("hook", h.do)
			default:
				return storagetest.Before("hook", h.do)
			}
		}
		return nil
	}))
	return hooked
}

// pair is two workers of which the second is at work while the first is held up, each with a message about one entity.
type pair struct {
	t       *testing.T
	s       *storagetest.Service
	o       *office
	plain   *officer
	clerk   *clerk
	write   storagetest.Kind // of writes to the destination
	read    storagetest.Kind // of reads of the destination
	copied  chan struct{}
	release chan struct{}
	ended   sync.WaitGroup
}

func newPair(t *testing.T, s *storagetest.Service, o *office) *pair {
	p := &pair{t: t, s: s, o: o, plain: o.open(t, s), clerk: june(), write: storagetest.Batch, read: storagetest.GetEntity,
		copied: make(chan struct{}), release: make(chan struct{})}
	if o.toBlobs {
		p.write, p.read = storagetest.PutBlob, storagetest.GetBlobProperties
	}
	assert.Check(t, p.plain.current.Insert(t.Context(), p.clerk))
	for range 2 {
		assert.Check(t, p.plain.mover.Move(t.Context(), p.clerk))
	}
	return p
}

// update changes the entity.
func (p *pair) update() {
	if _, err := p.plain.current.Update(p.t.Context(), clerkKey(p.clerk), rewrite("promoted")); err != nil {
		p.t.Error(err)
	}
}

// startSecond starts the second worker, and returns when it has made its write to the destination of that index.
func (p *pair) startSecond(index int) {
	second, err := p.o.start(hooked(p.s, hook{p.write, index, true, func() { close(p.copied); <-p.release }}))
	if err != nil {
		p.t.Error(err)
		return
	}
	p.ended.Go(func() {
		if stats, err := second.work(p.t.Context(), 5); err != nil || stats.Failed != 0 {
			p.t.Errorf("%v, %+v", err, stats)
		}
	})
	<-p.copied
}

// endSecond lets the second worker go on to its end.
func (p *pair) endSecond() {
	close(p.release)
	p.ended.Wait()
}

// first has the first worker handle one message.
func (p *pair) first(hooks ...hook) {
	first := p.o.open(p.t, hooked(p.s, hooks...))
	if stats := drainMoves(p.t, first); stats.Failed != 0 {
		p.t.Errorf("%+v", stats)
	}
	wantPlaces(p.t, p.plain, p.clerk, "", "first: promoted")
}

// TestMoverOlderContent: what a worker has read before it saw another one's copy is not written over that, since it may be older,
// and the other one may be about to delete the entity.
func TestMoverOlderContent(t *testing.T) {
	everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
		p := newPair(t, s, o)
		p.first(
			hook{p.write, 0, false, func() { p.update(); p.startSecond(0) }}, // the entity was read, and its insert will be refused
			hook{p.write, 1, true, p.endSecond},                              // the other's copy was replaced
		)
	})
}

// TestMoverOthersCopy: a copy that another worker has made of a worker's own is the other's, who may have deleted the entity.
func TestMoverOthersCopy(t *testing.T) {
	everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
		p := newPair(t, s, o)
		reads := map[bool]int{false: 2, true: 0}[o.toBlobs] // the entity was read twice before it is read again
		p.first(
			hook{p.write, 0, true, func() { p.update(); p.startSecond(1) }}, // inserted, and the second one replaces that
			hook{p.read, reads, true, p.endSecond},                          // reads: the worker has read the destination, and now the entity is deleted
		)
	})
}

// TestMoverReplaceDeleted: two workers handle two messages about one entity, whose blob's name another blob has. A user deletes
// the entity after the first worker has inserted the record. The second worker then reads the blob, and finds that the first one
// has not filled it yet. Whichever of the two goes on first, the deleted entity must not remain in its blob.
func TestMoverReplaceDeleted(t *testing.T) {
	for _, fillsFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("fills first ", fillsFirst), func(t *testing.T) {
			s := storagetest.Open(t)
			ctx, o := t.Context(), newOffice(t, s, office{toBlobs: true, replaces: true})
			plain, c := o.open(t, s), june()
			assert.Check(t, plain.occupy(ctx))
			assert.Check(t, plain.current.Insert(ctx, c))
			for range 2 {
				assert.Check(t, plain.mover.Move(ctx, c))
			}
			read, release := make(chan struct{}), make(chan struct{})
			second := o.open(t, hooked(s, hook{storagetest.GetBlobProperties, 0, true, func() { close(read); <-release }}))
			var ended sync.WaitGroup
			endSecond := func() { close(release); ended.Wait() }
			first := o.open(t, hooked(s,
				hook{storagetest.PutBlob, 1, false, func() { // the pending blob was refused, and the record inserted
					if err := plain.current.DeleteUnconditional(ctx, clerkKey(c)); err != nil {
						t.Error(err)
					}
					ended.Go(func() {
						if stats, err := second.work(ctx, 5); err != nil || stats.Failed != 0 {
							t.Errorf("%v, %+v", err, stats)
						}
					})
					<-read
					if !fillsFirst {
						endSecond()
					}
				}},
				hook{storagetest.Batch, 0, false, func() { // the blob was filled, and the entity is to be deleted
					if fillsFirst {
						endSecond()
					}
				}}))
			if stats := drainMoves(t, first); stats.Failed != 0 {
				t.Errorf("%+v", stats)
			}
			if n := assert.Must[int](t)(plain.queue.Length(ctx)); n != 0 {
				t.Errorf("%d messages are left", n)
			}
			wantPlaces(t, plain, c, "", "")
			assert.Check(t, plain.checkLeftOver(ctx))
		})
	}
}

// TestMoverInsertTwice: the first attempt to insert the entity arrives after the move. Both entities stay, and a message about the
// move goes to the poison queue: one that is still on the queue, or that of a later call of Move. Without one, nothing reports it.
func TestMoverInsertTwice(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("another message ", again), func(t *testing.T) {
			everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
				late := &harness.HeldRequest{Network: s.ClientOptions.Transport}
				faulty, _ := s.WithRetries(1).Faulty(storagetest.On(storagetest.Batch, storagetest.Once(storagetest.Always(late))))
				ctx, p, c := t.Context(), o.open(t, s), june()
				assert.Check(t, o.open(t, faulty).current.Insert(ctx, c))
				moved := *c
				assert.Check(t, p.mover.Move(ctx, c))
				drainMoves(t, p)
				wantPlaces(t, p, c, "", "first: hired")
				if status := late.Arrive(); status != http.StatusAccepted {
					t.Fatalf("the first attempt is answered with %d", status)
				}
				if again {
					assert.Check(t, p.mover.Move(ctx, &moved))
				}
				drainMoves(t, p)
				wantPlaces(t, p, c, "first: hired", "first: hired")
				if poisoned := entries(t, p.queue); (len(poisoned) == 1) != again {
					t.Errorf("%+v", poisoned)
				}
			})
		})
	}
}
