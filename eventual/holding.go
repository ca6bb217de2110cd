package eventual

import (
	"cmp"
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
)

// ErrLeaseLost is the cause of a handler's context that has ended because the visibility timeout of its message ran out, or because
// another process has the message.
var ErrLeaseLost = lease.ErrLost

// holding is the lease of this process on a message that it has put or received. Only a holding uses the
// message's pop receipt, which changes with every renewal.
type holding struct {
	queue      *azqueue.QueueClient
	id         string
	visibility time.Duration
	since      time.Time // before the request that hid the message was sent
	lease      *lease.Lease
	work       context.Context // context of all requests of the work on the message: ends with the lease, and with the context given to hold
	envelope   *envelope       // of a message that this process has sent; needed to delete the blob of its body
	own        context.Context // context of requests about the message itself: outlives the caller's context, but not the lease

	// lock protects receipt and text. It is a channel with one token, since its holder makes requests and waiting
	// must end with a context.
	lock    chan struct{}
	receipt string
	text    string

	stopped chan struct{} // closed by stop
	renewal *time.Timer
	renewed chan struct{} // closed when the renewing goroutine has ended; nil before it has begun
}

// hold starts the lease on a message with this text. since is a time before the request that hid the message
// was sent, and visibility is for how long that request hid it.
func hold(ctx context.Context, queue *azqueue.QueueClient, id, receipt, text string, since time.Time, visibility time.Duration) *holding {
	h := &holding{queue: queue, id: id, receipt: receipt, text: text, visibility: visibility, since: since,
		lease: lease.New(ctx, since, visibility), lock: make(chan struct{}, 1), stopped: make(chan struct{})}
	h.work = h.lease.Context(ctx)
	h.own = h.lease.Context(context.WithoutCancel(ctx))
	h.lock <- struct{}{}
	return h
}

// keep renews the message's invisibility whenever half of the visibility timeout has passed, until stop or until the
// lease is lost.
func (h *holding) keep() {
	h.renewed = make(chan struct{})
	// Count the half from before the request that hid the message was sent, since that request may have been
	// slow.
	h.renewal = time.AfterFunc(max(0, h.visibility/2-time.Since(h.since)), func() {
		defer close(h.renewed)
		h.renewAlways()
	})
}

func (h *holding) renewAlways() {
	for failures := 0; ; {
		err := h.update(h.own, "")
		wait := h.visibility / 2
		if err != nil {
			if h.lease.Check() != nil {
				return
			}
			// The current lease is still valid; it is lost unless a renewal succeeds before it expires.
			wait = backoff.Delay(failures)
			failures++
		} else {
			failures = 0
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-h.stopped:
			timer.Stop()
			return
		case <-h.own.Done():
			timer.Stop()
			return
		}
	}
}

// update renews the message's invisibility. If text is not empty, it also replaces the message's text. The
// lease is lost if another process holds the message, or if the message no longer exists. It is also lost if
// the response to an earlier renewal was lost, since only that response had the new pop receipt.
func (h *holding) update(ctx context.Context, text string) error {
	select {
	case <-h.lock:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { h.lock <- struct{}{} }()
	if err := h.lease.Check(); err != nil {
		return err
	}
	text = cmp.Or(text, h.text)
	since, seconds := time.Now(), int32(h.visibility/time.Second)
	answer, err := h.queue.UpdateMessage(h.own, h.id, h.receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
	switch {
	case refusal.IsNotHeld(err):
		h.lease.End(ErrLeaseLost)
		return ErrLeaseLost
	case err != nil:
		return err
	case answer.PopReceipt == nil:
		h.lease.End(ErrLeaseLost)
		return ErrLeaseLost
	}
	h.receipt, h.text = *answer.PopReceipt, text
	h.lease.Extend(since, h.visibility)
	return nil
}

// finish deletes the message, since the work on it is done. No request can be sent for the message afterwards.
// If another process holds the message by now, that process deletes it, and finish returns nil.
func (h *holding) finish() error {
	<-h.lock
	defer h.stopAndUnlock()
	if h.lease.Check() != nil {
		return nil
	}
	_, err := h.queue.DeleteMessage(h.own, h.id, h.receipt, nil)
	if refusal.IsNotHeld(err) || h.lease.Check() != nil {
		return nil
	}
	return err
}

// release makes the message visible to others after delay, in whole seconds. If text is not empty, it also
// replaces the message's text. No request can be sent for the message afterwards. If a request for the message
// may still be on its way, release changes nothing: the message stays hidden until its visibility timeout is
// over. With a text, it then hides the message for at least one visibility timeout from now.
func (h *holding) release(delay time.Duration, text string) error {
	<-h.lock
	defer h.stopAndUnlock()
	unsure := h.lease.Unsure()
	if unsure && text == "" || h.lease.Check() != nil {
		return nil
	}
	if unsure {
		delay = max(delay, h.visibility)
	}
	text = cmp.Or(text, h.text)
	seconds := int32(delay / time.Second)
	_, err := h.queue.UpdateMessage(h.own, h.id, h.receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
	if refusal.IsNotHeld(err) || h.lease.Check() != nil {
		return nil
	}
	return err
}

// stopAndUnlock ends the lease before it gives the lock back. Otherwise a renewal that waits for the lock would
// be sent after the message was deleted or released, and the service's refusal would look like a lost lease.
func (h *holding) stopAndUnlock() {
	h.stop()
	h.lock <- struct{}{}
}

// stop ends the lease and its renewal. It may be called several times. The message becomes visible again by itself
// unless it was finished or released.
func (h *holding) stop() {
	select {
	case <-h.stopped:
		return
	default:
		close(h.stopped)
	}
	h.lease.End(context.Canceled)
	if h.renewal != nil && !h.renewal.Stop() {
		<-h.renewed
	}
}
