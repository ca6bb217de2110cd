package largeentities

import (
	"context"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/tables"
)

// nursery holds the blobs that were stored and that no transaction points at yet, as far as is known.
type nursery struct {
	mu    sync.Mutex
	young map[string]*infant
}

// infant is such a blob. The transaction that points at it is sent by a deadline, which is what Sweep relies on. Where
// another value of the same change takes long to be sent, the blob is made younger by a request, and the deadline moved.
type infant struct {
	nursery  *nursery
	blobs    *blobs
	ctx      context.Context
	deadline time.Duration
	lease    *lease.Lease // of the change
	bound    *lease.Bound
	value    tables.Value // what is in it, so that the closing read of the change need not read it; null for a Stream

	blob *stored

	mu       sync.Mutex
	timer    *time.Timer
	failures int
	over     bool
}

// admit bounds the lease of the change by the blob's deadline. It looks after the blob until the change is over.
func (n *nursery) admit(ctx context.Context, b *blobs, s *stored, deadline time.Duration, value tables.Value) {
	i := &infant{nursery: n, blobs: b, ctx: ctx, deadline: deadline, blob: s, value: value, lease: lease.From(ctx)}
	i.bound = i.lease.Bound(s.since, deadline, "the entity was not written within the Deadline of a blob that was stored for it")
	n.mu.Lock()
	if n.young == nil {
		n.young = map[string]*infant{}
	}
	n.young[s.name] = i
	n.mu.Unlock()
	i.mu.Lock()
	i.timer = time.AfterFunc(deadline/2, i.renew)
	i.mu.Unlock()
	context.AfterFunc(ctx, func() { n.dismiss(s.name) })
}

// renew makes the blob younger, again and again until it is dismissed. If that fails for too long, the bound ends the
// change.
func (i *infant) renew() {
	since := time.Now()
	err := i.blobs.touch(i.ctx, i.blob)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return
	}
	wait := i.deadline / 2
	if err != nil {
		wait = backoff.Delay(i.failures)
		i.failures++
	} else {
		i.failures = 0
		i.bound.Move(since)
	}
	i.timer.Reset(wait)
}

// end makes an end of the renewals.
func (i *infant) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.timer.Stop()
}

// dismiss forgets a blob once its change is over.
func (n *nursery) dismiss(name string) {
	n.mu.Lock()
	i := n.young[name]
	delete(n.young, name)
	n.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// settle lifts the bound of a blob that an entity points at. Its value is kept until the change is over.
func (n *nursery) settle(name string) {
	n.mu.Lock()
	i := n.young[name]
	n.mu.Unlock()
	if i != nil {
		i.bound.Lift()
		i.end()
	}
}

// recall returns what is in a blob that the change under way in this context has stored. Everybody else reads the blob.
func (n *nursery) recall(ctx context.Context, name string) (tables.Value, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.young[name]; i != nil && !i.value.IsNull() && i.lease == lease.From(ctx) {
		return i.value, true
	}
	return tables.Value{}, false
}
