package eventual

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

func postponing(visibility time.Duration) *session {
	return &session{Worker: &Worker{queue: &queue{visibility: visibility}, options: WorkerOptions{PostponeTimeout: standardPostponing}}}
}

// TestPostponementsAreBounded: a message that says of itself that it was postponed very often still goes to the poison queue, since no more
// postponements are believed than fit into the time since it was sent.
func TestPostponementsAreBounded(t *testing.T) {
	for _, c := range []struct {
		sent                  time.Duration // ago
		waits, dequeues, want int
	}{
		{time.Hour, 0, 9, 9},
		{time.Hour, -3, 9, 9},
		{time.Hour, 5, 9, 4},
		{time.Hour, 1 << 40, 9, 1},
		{time.Hour, 1 << 40, 1000, 1000 - 81},                      // 80 delays of 45 s in an hour
		{100 * 24 * time.Hour, 1 << 40, 100_000, 100_000 - 26_881}, // those of 14 days
		{0, 1 << 40, 9, 8},
		{-time.Hour, 1 << 40, 9, 8},
	} {
		d := &delivery{session: postponing(time.Minute), raw: dequeued{dequeues: c.dequeues}, message: &Message{Sent: time.Now().Add(-c.sent), envelope: &envelope{Waits: c.waits}}}
		assert.Equal(t, d.attempts(), c.want, "%+v: attempts", c)
	}
}

// TestPostponementGrows: a message is released for longer and longer, with jitter, and for 5 minutes at most.
func TestPostponementGrows(t *testing.T) {
	for _, visibility := range []time.Duration{time.Second, time.Minute, time.Hour} {
		d := &delivery{session: postponing(visibility)}
		for waits := range 1000 {
			limit := longestPostponement
			if waits < 9 {
				limit = min(limit, visibility<<waits)
			}
			if most, least := d.postponement(waits, 0), d.postponement(waits, longestPostponement); most != limit || least > limit || least < limit*3/4 {
				t.Fatalf("visibility %v: postponement %d is for %v to %v, at most %v", visibility, waits, least, most, limit)
			}
		}
	}
}

// TestPostponable: which failures count, by the kind of the message and of its error.
func TestPostponable(t *testing.T) {
	of := func(kind error) error { return &tables.Error{Op: "Reconcile", Kind: kind, Err: errors.New("x")} }
	handler := of(nil)
	handler.(*tables.Error).Err = &callError{text: "the handler of OnCommit failed"}
	for _, c := range []struct {
		err       error
		own, body bool // postponed for one of the library's own messages; for any message whose body cannot be read
	}{
		{of(tables.ErrUnavailable), true, true},
		{of(tables.ErrUnknownOutcome), true, true},
		{of(tables.ErrMissingResource), true, true},
		{of(tables.ErrBeingDeleted), true, true},
		{of(tables.ErrRefused), true, true},
		{of(tables.ErrConflict), true, true},
		{fmt.Errorf("reading: %w", kinds.ErrCutOff), true, true},
		{errors.Join(of(tables.ErrUnavailable), of(tables.ErrConflict)), true, true},
		{errors.Join(of(tables.ErrUnavailable), of(tables.ErrInvalid)), false, false},
		{of(intents.ErrChanging), true, true},
		{fmt.Errorf("%w: held", errTurn), true, true},
		{errUnknownRepository, true, false},
		{driver.ErrUnknownPattern, true, false},
		{of(tables.ErrDenied), false, false},
		{of(tables.ErrInvalid), false, false},
		{of(tables.ErrDuplicate), false, false},
		{errors.New("a bug"), false, false},
		{handler, false, false},
		{&panicError{value: "x"}, false, false},
	} {
		for _, messageType := range []string{intentType, "ship"} {
			for _, sent := range []time.Duration{0, standardPostponing} {
				d := &delivery{session: postponing(time.Minute), message: &Message{Type: messageType, Sent: time.Now().Add(-sent), envelope: &envelope{}}}
				d.err = &handlerError{text: "x", err: c.err}
				if _, got := d.postponable(); got != (c.own && messageType == intentType && sent == 0) {
					t.Errorf("%s, %v old: %v: postponed %v", messageType, sent, c.err, got)
				}
				d.err = unopened{c.err}
				if _, got := d.postponable(); messageType == "ship" && got != (c.body && sent == 0) {
					t.Errorf("the body of %s, %v old: %v: postponed %v", messageType, sent, c.err, got)
				}
			}
		}
	}
}
