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

// ErrLeaseLost is the cause of a handler's context that ended because its message's visibility timeout ran out, or because another process has the
// message.
var ErrLeaseLost = lease.ErrLost

// holding is the lease of this process on a message. Only a holding uses the pop receipt, which changes with every renewal.
type holding struct {
	queue      *azqueue.QueueClient
	id         string
	visibility time.Duration
	since      time.Time // before the request that hid the message was sent
	lease      *lease.Lease
	work       context.Context // for requests of the work: ends with the lease, and with the context given to hold
	envelope   *envelope       // of a message that this process has sent, to delete the blob of its body
	own        context.Context // for requests about the message: outlives the caller's context, but not the lease

	// lock protects receipt and text. It is a channel with one token, since its holder makes requests and waiting must end with a context.
	lock    chan struct{}
	receipt string
	text    string

	stopped chan struct{} // closed by stop
	renewal *time.Timer
	renewed chan struct{} // closed when the renewing goroutine has ended; nil before it has begun
}

// hold starts the lease. since is before the request that hid the message for visibility was sent.
func hold(ctx context.Context, queue *azqueue.QueueClient, id, receipt, text string, since time.Time, visibility time.Duration) *holding {
	h := &holding{queue: queue, id: id, receipt: receipt, text: text, visibility: visibility, since: since,
		lease: lease.New(ctx, since, visibility), lock: make(chan struct{}, 1), stopped: make(chan struct{})}
	h.work = h.lease.Context(ctx)
	h.own = h.lease.Context(context.WithoutCancel(ctx))
	h.lock <- struct{}{}
	return h
}

// keep renews the lease after each half of the visibility timeout, until stop or until the lease is lost.
func (h *holding) keep() {
	h.renewed = make(chan struct{})
	// That request may have been slow: count from before it was sent.
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

// update renews the lease and, unless text is empty, replaces the message's text. The lease is lost if another process holds the message, if it is
// gone, or if the response to an earlier renewal, with the new pop receipt, was lost.
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

// finish deletes the message, and stops the holding. If another process holds the message by now, finish returns nil: that process deletes it.
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

// release makes the message visible after delay, in whole seconds, with another text unless text is empty, and stops the holding. If a request for
// the message may still be on its way, release leaves the message hidden until its visibility timeout is over; with a text, it hides it for at
// least one visibility timeout from now.
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

// stopAndUnlock ends the lease before it gives the lock back: a renewal that waits for the lock would be refused by the service, which looks like a
// lost lease.
func (h *holding) stopAndUnlock() {
	h.stop()
	h.lock <- struct{}{}
}

// stop ends the lease and its renewal; it may be called several times. Unless finished or released, the message becomes visible after its timeout.
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
