package queues

import (
	"container/heap"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
)

// never is the expiry time of messages that do not expire.
func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// queued is one message. A receipt contains the message's number and the receipt's own, so that the service
// can distinguish an outdated receipt from an invalid one.
type queued struct {
	id       string
	number   uint64 // the order of arrival, for messages that become visible at the same time
	text     string
	inserted time.Time
	expires  time.Time
	visible  time.Time
	handed   int64  // the number of times that a get has returned it
	receipts uint64 // the number of receipts issued; only the last one is valid
	at       int    // its index in the heap
}

// newReceipt issues a receipt, which makes the previous one outdated.
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

// receiptState is the validity of a receipt for a message.
type receiptState int

const (
	receiptMalformed receiptState = iota
	receiptForeign                // not a receipt of this message
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

// messageHeap is a heap whose first message becomes visible next.
type messageHeap []*queued

// Len implements heap.Interface.
func (h messageHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h messageHeap) Less(i, j int) bool {
	if !h[i].visible.Equal(h[j].visible) {
		return h[i].visible.Before(h[j].visible)
	}
	return h[i].number < h[j].number
}

// Swap implements heap.Interface.
func (h messageHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *messageHeap) Push(x any) {
	m := x.(*queued)
	m.at = len(*h)
	*h = append(*h, m)
}

// Pop implements heap.Interface.
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

// hide sets the time at which a message becomes visible.
func (q *queue) hide(m *queued, until time.Time) {
	m.visible = until
	heap.Fix(&q.byTime, m.at)
}

// find returns the message with an id, or nil if there is none or it has expired.
func (q *queue) find(id string, now time.Time) *queued {
	m := q.byID[id]
	if m != nil && !now.Before(m.expires) {
		q.remove(m)
		return nil
	}
	return m
}

// next removes the message that has been visible longest from the heap and returns it, or nil.
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

// those returns the unexpired messages that the function is accepts, in no particular order.
func (q *queue) those(now time.Time, is func(*queued) bool) []*queued {
	var found []*queued
	for _, m := range q.byTime {
		if now.Before(m.expires) && is(m) {
			found = append(found, m)
		}
	}
	return found
}

// count returns the number of unexpired messages, visible or not, like the service's approximate count.
func (q *queue) count(now time.Time) string {
	return strconv.Itoa(len(q.those(now, func(*queued) bool { return true })))
}
