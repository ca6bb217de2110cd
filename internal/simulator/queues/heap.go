package queues

import (
	"container/heap"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
)

// never is when messages without an end expire.
func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// queued is one message. Its receipt says which message it is for and its how-manieth, so that a stale receipt can be
// told from one that never was.
type queued struct {
	id       string
	number   uint64 // the messages' order of arrival, where they become visible at one time
	text     string
	inserted time.Time
	expires  time.Time
	visible  time.Time
	handed   int64  // how often a get has handed it out
	receipts uint64 // receipts given out; the last one counts
	at       int    // its place in the heap
}

// newReceipt gives out a receipt; the one before is stale.
func (m *queued) newReceipt() string {
	m.receipts++
	return m.receipt()
}

func (m *queued) receipt() string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], m.number)
	binary.LittleEndian.PutUint64(b[8:], m.receipts)
	return base64.StdEncoding.EncodeToString(b[:])
}

// receiptState says what a receipt is worth for the message now.
type receiptState int

const (
	receiptMalformed receiptState = iota
	receiptForeign                // none of this message's
	receiptStale
	receiptValid
)

func (m *queued) state(receipt string) receiptState {
	b, err := base64.StdEncoding.DecodeString(receipt)
	if err != nil || len(b) != 16 {
		return receiptMalformed
	}
	count := binary.LittleEndian.Uint64(b[8:])
	switch {
	case binary.LittleEndian.Uint64(b[:8]) != m.number || count == 0 || count > m.receipts:
		return receiptForeign
	case count < m.receipts:
		return receiptStale
	}
	return receiptValid
}

// messageHeap has the message that is visible soonest on top.
type messageHeap []*queued

// Len is for package heap.
func (h messageHeap) Len() int { return len(h) }

// Less is for package heap.
func (h messageHeap) Less(i, j int) bool {
	if !h[i].visible.Equal(h[j].visible) {
		return h[i].visible.Before(h[j].visible)
	}
	return h[i].number < h[j].number
}

// Swap is for package heap.
func (h messageHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for package heap.
func (h *messageHeap) Push(x any) {
	m := x.(*queued)
	m.at = len(*h)
	*h = append(*h, m)
}

// Pop is for package heap.
func (h *messageHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return m
}

func (q *queue) add(m *queued) {
	q.byID[m.id] = m
	heap.Push(&q.byTime, m)
}

func (q *queue) remove(m *queued) {
	delete(q.byID, m.id)
	heap.Remove(&q.byTime, m.at)
}

// hide makes the message visible at another time.
func (q *queue) hide(m *queued, until time.Time) {
	m.visible = until
	heap.Fix(&q.byTime, m.at)
}

// find returns a message that has not expired, or nil.
func (q *queue) find(id string, now time.Time) *queued {
	m := q.byID[id]
	if m != nil && !now.Before(m.expires) {
		q.remove(m)
		return nil
	}
	return m
}

// next takes the message out of the heap that has been visible longest, or returns nil.
func (q *queue) next(now time.Time) *queued {
	for len(q.byTime) > 0 && !now.Before(q.byTime[0].visible) {
		m := heap.Pop(&q.byTime).(*queued)
		if now.Before(m.expires) {
			return m
		}
		delete(q.byID, m.id)
	}
	return nil
}

// those returns the messages for which is holds and that have not expired, in no order worth relying on.
func (q *queue) those(now time.Time, is func(*queued) bool) []*queued {
	var found []*queued
	for _, m := range q.byTime {
		if now.Before(m.expires) && is(m) {
			found = append(found, m)
		}
	}
	return found
}

// count counts the messages, visible or not, as the service's approximate count does.
func (q *queue) count(now time.Time) string {
	return strconv.Itoa(len(q.those(now, func(*queued) bool { return true })))
}
