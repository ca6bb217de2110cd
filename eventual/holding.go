package eventual

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
)

// ErrLeaseLost is the cause of a handler's context that has ended because the visibility timeout of its message ran out, or because
// another process has the message.
var ErrLeaseLost = lease.ErrLost

// holding is a message that this process acts for, put or got, and the one owner of its pop receipt, which changes with
// every renewal.
type holding struct {
	queue      *azqueue.QueueClient
	id         string
	visibility time.Duration
	since      time.Time // before the request that hid the message was sent
	lease      *lease.Lease
	work       context.Context // of whoever acts for the message
	envelope   *envelope       // of a message that this process has sent, for the blob of its body
	own        context.Context // of the requests about the message itself: outlives the caller's context, not the lease

	// turn holds one token: whoever has it may use receipt and text. It is a channel, since its holder makes requests.
	turn    chan struct{}
	receipt string
	text    string

	stopped chan struct{} // closed by stop
	renewal *time.Timer
	renewed chan struct{} // closed when the renewing goroutine has ended, nil before it began
}

// hold begins to act for a message with this text that a request sent after since has hidden for visibility.
func hold(ctx context.Context, queue *azqueue.QueueClient, id, receipt, text string, since time.Time, visibility time.Duration) *holding {
	h := &holding{queue: queue, id: id, receipt: receipt, text: text, visibility: visibility, since: since,
		lease: lease.New(ctx, since, visibility), turn: make(chan struct{}, 1), stopped: make(chan struct{})}
	h.work = h.lease.Context(ctx)
	h.own = h.lease.Context(context.WithoutCancel(ctx))
	h.turn <- struct{}{}
	return h
}

// context is for everything that is sent for the message. It ends with the lease, and with the context that hold got.
func (h *holding) context() context.Context { return h.work }

// unsure reports whether something that was sent for the message may still be on its way.
func (h *holding) unsure() bool { return h.lease.Unsure() }

// keep renews the message's invisibility at half of it, again and again until stop or the loss of the lease.
func (h *holding) keep() {
	h.renewed = make(chan struct{})
	// Half of the time since before the request that hid the message, which may have been slow.
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
			// The old term still lasts; what is not renewed before it ends, ends.
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

// update renews the message's invisibility, and gives it another text unless text is empty. A message that is another
// holder's now, or gone, ends the lease: so it does when only the answer to an earlier renewal was lost, and the service
// knows a receipt that nobody has.
func (h *holding) update(ctx context.Context, text string) error {
	select {
	case <-h.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { h.turn <- struct{}{} }()
	if err := h.lease.Check(); err != nil {
		return err
	}
	if text == "" {
		text = h.text
	}
	since, seconds := time.Now(), int32(h.visibility/time.Second)
	answer, err := h.queue.UpdateMessage(h.own, h.id, h.receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
	switch {
	case isNotHeld(err):
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

// isNotHeld reports whether the service says that a receipt is not, or no longer, the message's.
func isNotHeld(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	return answer.StatusCode == http.StatusNotFound || answer.ErrorCode == "PopReceiptMismatch"
}

// finish deletes the message: all is done for it. Nothing can be sent for it afterwards. A message that is another holder's
// by now is that one's to delete, and no error.
func (h *holding) finish() error {
	defer h.stop()
	<-h.turn
	defer func() { h.turn <- struct{}{} }()
	if h.lease.Check() != nil {
		return nil
	}
	_, err := h.queue.DeleteMessage(h.own, h.id, h.receipt, nil)
	if isNotHeld(err) || h.lease.Check() != nil {
		return nil
	}
	return err
}

// release shows the message to others after delay, whole seconds. Nothing can be sent for it afterwards, so nothing may
// be under way: where something is, the message is left until its time is out.
func (h *holding) release(delay time.Duration) error { return h.releaseWith(delay, "") }

// releaseWith is release that also gives the message another text unless text is empty.
func (h *holding) releaseWith(delay time.Duration, text string) error {
	defer h.stop()
	<-h.turn
	defer func() { h.turn <- struct{}{} }()
	if h.unsure() || h.lease.Check() != nil {
		return nil
	}
	if text == "" {
		text = h.text
	}
	seconds := int32(delay / time.Second)
	_, err := h.queue.UpdateMessage(h.own, h.id, h.receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
	if isNotHeld(err) || h.lease.Check() != nil {
		return nil
	}
	return err
}

// stop ends the lease and all that goes on for it, and is called more than once without harm. The message is left to
// appear again unless it was finished or released.
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
