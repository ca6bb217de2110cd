package logdata

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// batch is what is sent in one append.
type batch struct {
	entries []*entry // in the order of time
	data    []byte
	period  time.Time
	segment *segment // nil until it has a blob
	unknown bool     // an attempt at it, at the segment's position, may have been applied
}

func (b *batch) first() time.Time { return b.entries[0].time }
func (b *batch) last() time.Time  { return b.entries[len(b.entries)-1].time }

// form takes the next batch out of the queue: of the record that waits longest and those that belong into the same blob.
// What is too late for that one, or of another period, stays for the next. During the pause after a failure, records that
// nobody waits for stay too: they must not hold up the others.
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
		e.frame = b.data[at:] // and its own can go
	}
	return b
}

// fit is the open segment for a record: of those of its period that take it, the one whose last record is the latest. So
// records that come late, from a slow source, go to a blob of their own and leave the others to the quick ones.
func (w *Writer) fit(period, t time.Time) *segment {
	var best *segment
	for _, s := range w.open {
		if s.period.Equal(period) && s.takes(t) && (best == nil || s.last.After(best.last)) {
			best = s
		}
	}
	return best
}

// maxMoves is how often a batch looks for another blob, when somebody else has deleted or written its own.
const maxMoves = 4

// store sends a batch. It is in one blob, once, or an error says why not; b.unknown, that nobody knows.
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
		// It is not in that blob, or not any more, and cannot come into it.
		w.abandon(b.segment)
		b.segment, b.unknown = nil, false
		if moves == maxMoves {
			return err
		}
	}
}

// maxOpen is how many blobs a writer appends to, in turn: those of the period that begins and of the one that ends, and of
// records that come late.
const maxOpen = 4

// adopt adds a segment to the open ones. Those of a period before the last one end, and the one that was not used for the
// longest time makes room.
func (w *Writer) adopt(s *segment) {
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

// retire ends a segment; tidy makes it final.
func (w *Writer) retire(s *segment) {
	w.abandon(s)
	w.retired = append(w.retired, s)
	if len(w.retired) > maxRetired {
		w.retired = w.retired[1:] // its readers will look into it where they need not
	}
}

// maxRetired is how many segments wait to be made final while the service refuses that.
const maxRetired = 64

// abandon forgets a segment.
func (w *Writer) abandon(s *segment) {
	w.open = slices.DeleteFunc(w.open, func(o *segment) bool { return o == s })
}

// tidy makes one retired segment final: records that come meanwhile wait for no more than that. After a failure it is tried again
// behind a later batch, not before the pause is over. Requests: 1, or none.
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
