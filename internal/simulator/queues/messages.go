package simulator

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	queueMaxText       = 64 << 10         // bytes of a message's text in UTF-8
	queueMaxVisibility = 7 * 24 * 60 * 60 // seconds
	queueStandardTTL   = 7 * 24 * 60 * 60
	queueStandardGet   = 30
	queueMaxGet        = 32 // messages in one get or peek
)

// messages serves the requests on a queue's messages as a whole.
func (s *queueService) messages(c *xmlCall, q *queue) (*answer, *Fault) {
	switch c.Req.Method {
	case http.MethodPost:
		return s.put(c, q)
	case http.MethodGet:
		if c.query.Get("peekonly") == "true" {
			return s.peek(c, q)
		}
		return s.get(c, q)
	case http.MethodDelete:
		q.byID, q.byTime = map[string]*queueMessage{}, nil
		return newAnswer(http.StatusNoContent), nil
	}
	return nil, xmlUnsupportedVerb(c.Req.Method)
}

// parseMessage reads a message's text out of a request's body.
func parseMessage(body []byte) (string, *Fault) {
	var sent struct {
		XMLName xml.Name `xml:"QueueMessage"`
		Text    *string  `xml:"MessageText"`
	}
	if err := parseXML(body, &sent); err != nil {
		return "", err
	}
	if sent.Text == nil {
		return "", xmlInvalidDocument("no MessageText")
	}
	if len(*sent.Text) > queueMaxText {
		return "", xmlBodyTooLarge(queueMaxText)
	}
	return *sent.Text, nil
}

func (s *queueService) put(c *xmlCall, q *queue) (*answer, *Fault) {
	text, err := parseMessage(c.Body)
	if err != nil {
		return nil, err
	}
	hidden, err := c.number("visibilitytimeout", 0, 0, queueMaxVisibility)
	if err != nil {
		return nil, err
	}
	ttl, err := c.number("messagettl", queueStandardTTL, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if ttl == 0 || ttl < -1 {
		return nil, xmlInvalidQuery("messagettl", strconv.FormatInt(ttl, 10), "Value must be at least 1, or -1 for no expiry.")
	}
	if ttl > 0 && hidden >= ttl {
		return nil, xmlInvalidQuery("visibilitytimeout", strconv.FormatInt(hidden, 10), "The value must be smaller than messagettl.")
	}
	m := &queueMessage{text: text, inserted: c.Now, visible: c.Now.Add(seconds(hidden)), expires: queueNever()}
	s.name(q, m)
	// A Duration ends at 292 years; what is to live longer lives for ever.
	if left := int64(queueNever().Sub(c.Now) / time.Second); ttl > 0 && ttl < left {
		m.expires = c.Now.Add(seconds(ttl))
	}
	m.newReceipt()
	q.add(m)
	w := newXMLWriter("QueueMessagesList")
	m.write(w, messagePut)
	return w.answer(newAnswer(http.StatusCreated)), nil
}

// name gives a message its id and its number. Under a still clock both follow from its text, and so do not tell in which
// order messages came.
func (s *queueService) name(q *queue, m *queueMessage) {
	s.count()
	m.id, m.number = xmlID("message", s.serial), s.serial
	if !s.clock.Still() {
		return
	}
	if q.puts == nil {
		q.puts = map[string]uint64{}
	}
	q.puts[m.text]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", q.puts[m.text], m.text))
	m.number = binary.LittleEndian.Uint64(sum[:8])
	m.id = xmlID("message", m.number)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (s *queueService) get(c *xmlCall, q *queue) (*answer, *Fault) {
	count, err := c.number("numofmessages", 1, 1, queueMaxGet)
	if err != nil {
		return nil, err
	}
	hidden, err := c.number("visibilitytimeout", queueStandardGet, 1, queueMaxVisibility)
	if err != nil {
		return nil, err
	}
	w := newXMLWriter("QueueMessagesList")
	for _, m := range s.choose(q, int(count), c.Now, true) {
		m.visible = c.Now.Add(seconds(hidden))
		m.handed++
		m.newReceipt()
		heap.Push(&q.byTime, m)
		m.write(w, messageGot)
	}
	return w.answer(newAnswer(http.StatusOK)), nil
}

func (s *queueService) peek(c *xmlCall, q *queue) (*answer, *Fault) {
	count, err := c.number("numofmessages", 1, 1, queueMaxGet)
	if err != nil {
		return nil, err
	}
	w := newXMLWriter("QueueMessagesList")
	for _, m := range s.choose(q, int(count), c.Now, false) {
		heap.Push(&q.byTime, m)
		m.write(w, messagePeeked)
	}
	return w.answer(newAnswer(http.StatusOK)), nil
}

// choose takes up to count messages out of the heap: the visible ones, longest visible first, but where chaos says
// otherwise.
func (s *queueService) choose(q *queue, count int, now time.Time, get bool) []*queueMessage {
	held := func(m *queueMessage) bool { return m.handed > 0 && now.Before(m.visible) }
	visible := func(m *queueMessage) bool { return !now.Before(m.visible) }
	var chosen []*queueMessage
	for len(chosen) < count {
		var m *queueMessage
		if get && s.dice.chance(s.chaos.QueueTwice) {
			// Another receiver holds the message; its receipt becomes stale.
			m = s.any(q, now, held)
		}
		if m == nil && s.dice.chance(s.chaos.QueueOutOfOrder) {
			m = s.any(q, now, visible)
		}
		if m == nil && get && s.first > 0 && len(chosen) == 0 {
			m = s.turn(q, now, visible)
		}
		if m == nil {
			m = q.next(now)
		}
		if m == nil {
			break
		}
		chosen = append(chosen, m)
	}
	return chosen
}

// turn takes the message out of the heap of which a test has said that it comes first, or returns nil.
func (s *queueService) turn(q *queue, now time.Time, is func(*queueMessage) bool) *queueMessage {
	found := q.those(now, is)
	if s.first >= len(found) {
		return nil
	}
	slices.SortFunc(found, compareTurns)
	heap.Remove(&q.byTime, found[s.first].at)
	return found[s.first]
}

// compareTurns orders messages as they become visible.
func compareTurns(a, b *queueMessage) int {
	return cmp.Or(a.visible.Compare(b.visible), cmp.Compare(a.number, b.number))
}

// any takes a message out of the heap for which is holds, whichever chance picks, or returns nil.
func (s *queueService) any(q *queue, now time.Time, is func(*queueMessage) bool) *queueMessage {
	found := q.those(now, is)
	if len(found) == 0 {
		return nil
	}
	// Sorted, so that the same draw picks the same message.
	slices.SortFunc(found, func(a, b *queueMessage) int { return cmp.Compare(a.number, b.number) })
	m := found[s.dice.below(len(found))]
	heap.Remove(&q.byTime, m.at)
	return m
}

// staleAsMismatch says which of the service's two answers to a stale receipt this one gets. Calm, it is the documented one.
func (s *queueService) staleAsMismatch() bool {
	return (s.chaos.QueueTwice > 0 || s.chaos.QueueOutOfOrder > 0) && s.dice.chance(0.5)
}

// message serves the requests on one message.
func (s *queueService) message(c *xmlCall, q *queue, id string) (*answer, *Fault) {
	if c.Req.Method != http.MethodPut && c.Req.Method != http.MethodDelete {
		return nil, xmlUnsupportedVerb(c.Req.Method)
	}
	receipt := c.query.Get("popreceipt")
	if receipt == "" {
		return nil, xmlMissingQuery("popreceipt")
	}
	m := q.find(id, c.Now)
	if m == nil {
		return nil, messageNotFound()
	}
	switch m.state(receipt) {
	case receiptMalformed:
		return nil, xmlInvalidQuery("popreceipt", receipt, "Invalid pop receipt format.")
	case receiptForeign:
		return nil, receiptMismatch()
	case receiptStale:
		if s.staleAsMismatch() {
			return nil, receiptMismatch()
		}
		return nil, messageNotFound()
	}
	if c.Req.Method == http.MethodDelete {
		q.remove(m)
		return newAnswer(http.StatusNoContent), nil
	}
	return q.update(c, m)
}

func messageNotFound() *Fault {
	return refuse(http.StatusNotFound, "MessageNotFound", "The specified message does not exist.")
}

func receiptMismatch() *Fault {
	return refuse(http.StatusBadRequest, "PopReceiptMismatch",
		"The specified pop receipt did not match the pop receipt for a dequeued message.")
}

// update hides a message anew and, if the request has a body, replaces its text.
func (q *queue) update(c *xmlCall, m *queueMessage) (*answer, *Fault) {
	if !c.query.Has("visibilitytimeout") {
		return nil, xmlMissingQuery("visibilitytimeout")
	}
	hidden, err := c.number("visibilitytimeout", 0, 0, queueMaxVisibility)
	if err != nil {
		return nil, err
	}
	until := c.Now.Add(seconds(hidden))
	if until.After(m.expires) {
		return nil, xmlInvalidQuery("visibilitytimeout", strconv.FormatInt(hidden, 10), "The message expires before it would be visible.")
	}
	if len(c.Body) > 0 {
		text, err := parseMessage(c.Body)
		if err != nil {
			return nil, err
		}
		m.text = text
	}
	q.hide(m, until)
	a := newAnswer(http.StatusNoContent)
	a.header.Set("x-ms-popreceipt", m.newReceipt())
	a.header.Set("x-ms-time-next-visible", xmlTime(m.visible))
	return a, nil
}

// messageView says which answer a message is written into.
type messageView int

const (
	messagePut messageView = iota
	messageGot
	messagePeeked
)

func (m *queueMessage) write(w *xmlWriter, view messageView) {
	w.begin("QueueMessage")
	w.element("MessageId", m.id)
	w.element("InsertionTime", xmlTime(m.inserted))
	w.element("ExpirationTime", xmlTime(m.expires))
	if view != messagePeeked {
		w.element("PopReceipt", m.receipt())
		w.element("TimeNextVisible", xmlTime(m.visible))
	}
	if view != messagePut {
		w.element("DequeueCount", strconv.FormatInt(m.handed, 10))
		w.element("MessageText", m.text)
	}
	w.end()
}
