package largeentities

import (
	"context"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/tables"
)

// pendingBlobs holds the pending blobs: blobs that were stored, and at which no transaction is known to point
// yet.
type pendingBlobs struct {
	mu      sync.Mutex
	pending map[string]*pendingBlob
}

// pendingBlob is a pending blob. The transaction that points at it is sent before a deadline, on which Sweep relies. If
// another value of the same change takes long to upload, a request renews the blob's Last-Modified, which moves the
// deadline.
type pendingBlob struct {
	pendingBlobs *pendingBlobs
	blobs        *blobs
	ctx          context.Context
	deadline     time.Duration
	lease        *lease.Lease // of the change
	bound        *lease.Bound
	value        tables.Value // content of the blob, so that the final read of the change need not download it; null for a Stream

	blob *stored

	mu       sync.Mutex
	timer    *time.Timer
	failures int
	over     bool
}

// admit bounds the lease of the change by the blob's deadline, and renews the blob until the change is over.
func (n *pendingBlobs) admit(ctx context.Context, b *blobs, s *stored, deadline time.Duration, value tables.Value) {
	i := &pendingBlob{pendingBlobs: n, blobs: b, ctx: ctx, deadline: deadline, blob: s, value: value, lease: lease.From(ctx)}
	i.bound = i.lease.Bound(s.since, deadline, "the entity was not written within the Deadline of a blob that was stored for it")
	n.mu.Lock()
	if n.pending == nil {
		n.pending = map[string]*pendingBlob{}
	}
	n.pending[s.name] = i
	n.mu.Unlock()
	i.mu.Lock()
	i.timer = time.AfterFunc(deadline/2, i.renew)
	i.mu.Unlock()
	context.AfterFunc(ctx, func() { n.dismiss(s.name) })
}

// renew renews the blob's Last-Modified until it is dismissed. If that fails for too long, the bound ends the change.
func (i *pendingBlob) renew() {
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

// end stops the renewals.
func (i *pendingBlob) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.timer.Stop()
}

// dismiss removes a pending blob once its change is over.
func (n *pendingBlobs) dismiss(name string) {
	n.mu.Lock()
	i := n.pending[name]
	delete(n.pending, name)
	n.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// lift removes the bound of a blob that an entity points at. It keeps the blob's value in memory until the
// change is over.
func (n *pendingBlobs) lift(name string) {
	n.mu.Lock()
	i := n.pending[name]
	n.mu.Unlock()
	if i != nil {
		i.bound.Lift()
		i.end()
	}
}

// recall returns the content of a blob if the change to which ctx belongs has stored it. Other callers must
// download the blob.
func (n *pendingBlobs) recall(ctx context.Context, name string) (tables.Value, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.pending[name]; i != nil && !i.value.IsNull() && i.lease == lease.From(ctx) {
		return i.value, true
	}
	return tables.Value{}, false
}
