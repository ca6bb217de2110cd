package logdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// forever is longer than a writer ever waits without being woken.
const forever = time.Hour

// run is the writer's goroutine. It alone makes requests, one at a time, so that each append's position is known.
// Close ends it.
func (w *Writer) run(ctx context.Context) {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		now := time.Now()
		w.mu.Lock()
		closing := len(w.closers) > 0
		due, wait := w.due(now)
		w.mu.Unlock()
		switch {
		case closing:
			w.end(w.finish(ctx))
			return
		case due:
			if w.step(ctx) == nil && !now.Before(w.tidyAfter) {
				w.tidy(ctx) // makes one blob final between batches; if this keeps failing, Close returns the error
			}
			continue
		case len(w.retired) > 0 && w.tidyAfter.IsZero():
			w.tidy(ctx)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.wake:
		}
	}
}

// due reports whether a batch must be sent now; if not, it returns how long the writer can wait.
func (w *Writer) due(now time.Time) (bool, time.Duration) {
	durable := !w.options.Buffered
	switch {
	case w.flying == nil && len(w.queue) == 0:
		return false, forever
	case len(w.flushes) > 0, durable && slices.ContainsFunc(w.queue, (*entry).waited):
		return true, 0
	case now.Before(w.pause):
		return false, w.pause.Sub(now)
	case w.flying != nil, durable, w.starving > 0, w.records >= (w.options.BufferRecords+1)/2,
		w.bytes >= min(w.options.BlockBytes, (w.options.BufferBytes+1)/2):
		return true, 0
	}
	wait := w.queue[0].accepted.Add(w.options.Interval).Sub(now)
	return wait <= 0, wait
}

// waited reports whether a Write waits for the record.
func (e *entry) waited() bool { return !e.kept }

// step sends one batch; a batch with unknown outcome is sent before all others.
func (w *Writer) step(ctx context.Context) error {
	w.mu.Lock()
	if w.flying == nil {
		w.flying = w.form(time.Now())
	}
	b := w.flying
	w.mu.Unlock()
	if b == nil {
		return nil
	}
	err := w.store(ctx, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.stored(b)
	} else {
		w.failed(b, err)
	}
	return err
}

// stored finishes a stored batch.
func (w *Writer) stored(b *batch) {
	w.flying = nil
	if w.options.Buffered {
		w.err = nil // the records of the failed flush are stored now
	}
	if !slices.ContainsFunc(w.queue, (*entry).keeps) {
		w.pause = time.Time{} // the pause applies only after a failure
	}
	w.forget(b.entries...)
	answer(b.entries, nil)
	w.reached()
}

// reached ends the flushes whose records are all stored.
func (w *Writer) reached() {
	w.flushes = slices.DeleteFunc(w.flushes, func(f flush) bool {
		if w.flying != nil || len(w.queue) > 0 && w.queue[0].seq <= f.upTo {
			return false
		}
		f.done <- nil
		return true
	})
}

// failed handles a batch that could not be sent, or whose outcome is unknown.
func (w *Writer) failed(b *batch, err error) {
	w.failures++
	w.lastErr, w.pause = err, w.pauseFrom(time.Now())
	told := len(w.flushes) > 0
	for _, f := range w.flushes {
		f.done <- err
	}
	w.flushes = nil
	switch {
	case b.unknown:
		answer(b.entries, err)
		for _, e := range b.entries {
			e.kept = e.done != nil
		}
		// The records queued after the batch are certainly not stored, so their Writes need not wait for its
		// outcome.
		w.refuse(notAccepted(err))
	case w.options.Buffered:
		w.flying = nil
		w.putBack(b.entries)
	default:
		w.flying = nil
		kept, refused := parted(b.entries)
		w.putBack(kept)
		w.forget(refused...)
		answer(refused, err)
	}
	if w.options.Buffered && !told {
		w.err = err
	}
	w.forget() // wakes the Writes that wait for room, which then return the error
}

// putBack returns records to their previous positions in the queue.
func (w *Writer) putBack(entries []*entry) {
	w.queue = append(slices.Clip(entries), w.queue...)
	slices.SortFunc(w.queue, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
}

// keeps reports whether the writer must still send the record after its Write has returned.
func (e *entry) keeps() bool { return e.kept }

// parted separates the records that the writer must send by itself from those with a waiting Write.
func parted(entries []*entry) (kept, waited []*entry) {
	for _, e := range entries {
		if e.kept {
			kept = append(kept, e)
		} else {
			waited = append(waited, e)
		}
	}
	return kept, waited
}

// refuse ends the Writes whose records are not in flight. Records whose Write has already returned
// ErrUnknownOutcome stay in memory.
func (w *Writer) refuse(err error) {
	if w.options.Buffered {
		return
	}
	var refused []*entry
	w.queue, refused = parted(w.queue)
	w.forget(refused...)
	answer(refused, err)
}

func answer(entries []*entry, err error) {
	for _, e := range entries {
		if e.done != nil {
			select {
			case e.done <- err:
			default: // the Write of this record has already returned ErrUnknownOutcome
			}
		}
	}
}

// finish does the work of Close: it stores all records and makes all segments final.
func (w *Writer) finish(ctx context.Context) error {
	for {
		w.mu.Lock()
		empty := w.flying == nil && len(w.queue) == 0
		w.mu.Unlock()
		if empty {
			break
		}
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	w.retired, w.open = append(w.retired, w.open...), nil
	for len(w.retired) > 0 {
		if err := w.tidy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end returns err to all waiting Closes. Records still in memory stay there for the next Close.
func (w *Writer) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.refuse(notAccepted(err))
	}
	for _, c := range w.closers { // flushes have already ended, since they wait only for records
		c <- err
	}
	w.closers, w.running = nil, false
	w.cancel()
	w.forget()
}

// notAccepted returns the error of a Write whose record was refused because of an earlier batch. The unknown outcome
// of that batch does not apply to this record.
func notAccepted(err error) error {
	var e *tables.Error
	if !errors.Is(err, tables.ErrUnknownOutcome) || !errors.As(err, &e) {
		return err
	}
	return &tables.Error{Op: "Write", Table: e.Table, Kind: tables.ErrUnavailable, Code: e.Code,
		Err: fmt.Errorf("the record was not sent, since the outcome of an earlier append is unknown; write it again later: %w", e.Err)}
}
