package logdata

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// batch holds the records that one append sends.
type batch struct {
	entries []*entry // in the order of their times
	data    []byte
	period  time.Time
	segment *segment // nil until a blob is chosen
	unknown bool     // an attempt to append the batch at the segment's position may have been applied
}

func (b *batch) first() time.Time { return b.entries[0].time }
func (b *batch) last() time.Time  { return b.entries[len(b.entries)-1].time }

// form takes the next batch from the queue: the record that has waited longest, and the records that belong
// in the same blob. All others stay in the queue. During the pause after a failure, form takes only records
// for which a Write waits, so that other records do not delay these.
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
	size := 0
	full := false
	rest := w.queue[:0:0]
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
		e.frame = b.data[at:] // the frame now refers to the batch, so that its own buffer can be freed
	}
	return b
}

// fit returns the open segment for a record: of the segments of its period that accept it, the one with the latest
// last record. So late records from a slow source go to a blob of their own.
func (w *Writer) fit(period, t time.Time) *segment {
	var best *segment
	for _, s := range w.open {
		if s.period.Equal(period) && s.takes(t) && (best == nil || s.last.After(best.last)) {
			best = s
		}
	}
	return best
}

// maxMoves limits how often a batch changes to another blob because another program has deleted or written its blob.
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
		// The batch is not in the blob and can no longer be appended to it, for example because the blob no
		// longer exists.
		w.abandon(b.segment)
		b.segment, b.unknown = nil, false
		if moves == maxMoves {
			return err
		}
	}
}

// maxOpen is the number of blobs that a writer appends to at a time: the blobs of the current and of the
// previous period, and blobs for late records.
const maxOpen = 4

// addSegment adds an open segment. It retires the segments of periods before the previous one and, if there
// are too many, the least recently used segment.
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

// retire closes a segment for appends; tidy makes it final.
func (w *Writer) retire(s *segment) {
	w.abandon(s)
	w.retired = append(w.retired, s)
	if len(w.retired) > maxRetired {
		w.retired = w.retired[1:] // the segment never becomes final, so readers may read it unnecessarily
	}
}

// maxRetired limits the segments that wait to be made final while the service refuses the request.
const maxRetired = 64

// abandon removes a segment from the open ones.
func (w *Writer) abandon(s *segment) {
	w.open = slices.DeleteFunc(w.open, func(o *segment) bool { return o == s })
}

// tidy makes one retired segment final; it makes only one final, so that new records do not wait longer.
// After a failure, a later call tries again when the pause is over. Requests: 1, or none.
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
