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

// forever is a sleep that a wake-up ends.
const forever = time.Hour

// run is the writer's goroutine, until Close. It alone makes requests, one at a time, so that it knows the position of each append.
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
				w.tidy(ctx) // one blob between batches; if this keeps failing, Close returns the error
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

// due reports whether a batch must be sent now, or how long the writer can wait.
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

// waited reports that no Write has given up waiting for the record.
func (e *entry) waited() bool { return !e.kept }

// step sends one batch, one with unknown outcome first.
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

func (w *Writer) stored(b *batch) {
	w.flying = nil
	if w.options.Buffered {
		w.err = nil // its records are stored now
	}
	if !slices.ContainsFunc(w.queue, func(e *entry) bool { return e.kept }) {
		w.pause = time.Time{} // only for records that no Write waits for
	}
	w.forget(b.entries...)
	answer(b.entries, nil)
	w.reached()
}

func (w *Writer) reached() {
	w.flushes = slices.DeleteFunc(w.flushes, func(f flush) bool {
		if w.flying != nil || len(w.queue) > 0 && w.queue[0].seq <= f.upTo {
			return false
		}
		f.done <- nil
		return true
	})
}

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
		// The later records were never sent, so their Writes can fail now.
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
	w.forget() // for the Writes that wait for room, which then return the error
}

func (w *Writer) putBack(entries []*entry) {
	w.queue = append(slices.Clip(entries), w.queue...)
	slices.SortFunc(w.queue, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
}

// parted separates records that the writer must still send, since their Write has returned ErrUnknownOutcome.
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

// refuse returns err to the waiting Writes of an unbuffered writer whose records are not in flight, and drops these. It keeps records whose Write
// has returned ErrUnknownOutcome.
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
			default: // its Write has returned ErrUnknownOutcome
			}
		}
	}
}

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

// end returns err to all Closes. The next Close sends what is still in memory.
func (w *Writer) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.refuse(notAccepted(err))
	}
	for _, c := range w.closers { // flushes have ended, since they wait only for records
		c <- err
	}
	w.closers, w.running = nil, false
	w.cancel()
	w.forget()
}

// notAccepted replaces ErrUnknownOutcome of an earlier batch: this Write's record was certainly not sent.
func notAccepted(err error) error {
	var e *tables.Error
	if !errors.Is(err, tables.ErrUnknownOutcome) || !errors.As(err, &e) {
		return err
	}
	return &tables.Error{Op: "Write", Table: e.Table, Kind: tables.ErrUnavailable, Code: e.Code,
		Err: fmt.Errorf("the record was not sent, since the outcome of an earlier append is unknown; write it again later: %w", e.Err)}
}

type batch struct {
	entries []*entry // by time
	data    []byte
	period  time.Time
	segment *segment // nil until a blob is chosen
	unknown bool     // an append at the segment's position may have been applied
}

func (b *batch) first() time.Time { return b.entries[0].time }
func (b *batch) last() time.Time  { return b.entries[len(b.entries)-1].time }

// form takes the record that has waited longest, and the others of its blob. In the pause after a failure it takes only records for which a Write
// waits, so that older ones do not delay them.
func (w *Writer) form(now time.Time) *batch {
	if len(w.queue) == 0 {
		return nil
	}
	lead, withKept := w.queue[0], true
	if i := slices.IndexFunc(w.queue, (*entry).waited); i >= 0 && now.Before(w.pause) {
		lead, withKept = w.queue[i], false
	}
	b := &batch{period: w.log.periodOf(lead.time)}
	b.segment = w.fit(b.period, lead.time)
	size, full := 0, false
	var rest []*entry
	for _, e := range w.queue {
		if e.kept && !withKept {
			rest = append(rest, e)
			continue
		}
		full = full || size+len(e.frame) > w.options.BlockBytes
		if full || !w.log.periodOf(e.time).Equal(b.period) || w.fit(b.period, e.time) != b.segment {
			rest = append(rest, e)
			continue
		}
		size += len(e.frame)
		b.entries = append(b.entries, e)
	}
	w.queue = rest
	slices.SortStableFunc(b.entries, func(a, b *entry) int { return a.time.Compare(b.time) })
	b.data = make([]byte, 0, size)
	for _, e := range b.entries {
		at := len(b.data)
		b.data = append(b.data, e.frame...)
		e.frame = b.data[at:] // frees its own buffer
	}
	return b
}

// fit returns the open segment whose last record is the latest, of those that accept the record, or nil: in a segment of late records, it would
// keep further late ones out.
func (w *Writer) fit(period, t time.Time) *segment {
	var best *segment
	for _, s := range w.open {
		if s.period.Equal(period) && s.takes(t) && (best == nil || s.last.After(best.last)) {
			best = s
		}
	}
	return best
}

// maxMoves limits how often another program may drive a batch out of its blob.
const maxMoves = 4

// store sends a batch. On nil the batch is stored exactly once in one blob; b.unknown means the outcome is unknown.
func (w *Writer) store(ctx context.Context, b *batch) error {
	for moves := 0; ; moves++ {
		if s := b.segment; s != nil && !b.unknown && s.records > 0 && (s.appends >= w.options.BlobAppends || s.size+int64(len(b.data)) > w.options.BlobBytes) {
			w.retire(s)
			b.segment = nil
		}
		if b.segment == nil {
			s, err := w.openSegment(ctx, b.period, b.first())
			if err != nil {
				return err
			}
			b.segment = s
		}
		w.tick++
		b.segment.used = w.tick
		moved, err := w.append(ctx, b)
		if !moved {
			return err
		}
		// Somebody has deleted the blob, for example.
		w.abandon(b.segment)
		b.segment, b.unknown = nil, false
		if moves == maxMoves {
			return err
		}
	}
}

// maxOpen blobs are appended to at a time: of the current and the previous period, and for late records.
const maxOpen = 4

// addSegment retires segments that are more than one period older and, over maxOpen, the least recently used one.
func (w *Writer) addSegment(s *segment) {
	for _, o := range slices.Clone(w.open) {
		if o.period.Before(s.period.Add(-w.log.period)) {
			w.retire(o)
		}
	}
	w.tick++
	s.used = w.tick
	w.open = append(w.open, s)
	if len(w.open) <= maxOpen {
		return
	}
	w.retire(slices.MinFunc(w.open, func(a, b *segment) int { return cmp.Compare(a.used, b.used) }))
}

// retire ends the appends; tidy makes the segment final.
func (w *Writer) retire(s *segment) {
	w.abandon(s)
	w.retired = append(w.retired, s)
	if len(w.retired) > maxRetired {
		w.retired = w.retired[1:] // it never becomes final, so readers may read it unnecessarily
	}
}

// maxRetired limits the segments that wait while the service refuses to make them final.
const maxRetired = 64

func (w *Writer) abandon(s *segment) {
	w.open = slices.DeleteFunc(w.open, func(o *segment) bool { return o == s })
}

// tidy makes one segment final: new records wait meanwhile. run repeats a failure after the pause. Requests: 1, or none.
func (w *Writer) tidy(ctx context.Context) error {
	if len(w.retired) == 0 {
		return nil
	}
	if err := w.finalise(ctx, w.retired[0]); err != nil {
		w.tidyAfter = w.pauseFrom(time.Now())
		return err
	}
	w.retired, w.tidyAfter = w.retired[1:], time.Time{}
	return nil
}
