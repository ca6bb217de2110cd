package queues

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

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

const (
	maxText       = 64 << 10         // bytes of a message's text in UTF-8
	maxVisibility = 7 * 24 * 60 * 60 // seconds
	standardTTL   = 7 * 24 * 60 * 60
	standardHide  = 30
	maxGet        = 32 // messages in one get or peek
)

// messages serves requests on a queue's messages that name no message.
func (s *Service) messages(c *exchange.Call, q *queue) (*protocol.Answer, *protocol.Fault) {
	switch c.Req.Method {
	case http.MethodPost:
		return s.put(c, q)
	case http.MethodGet:
		if c.Query.Get("peekonly") == "true" {
			return s.peek(c, q)
		}
		return s.get(c, q)
	case http.MethodDelete:
		q.byID, q.byTime = map[string]*queued{}, nil
		return protocol.NewAnswer(http.StatusNoContent), nil
	}
	return nil, exchange.UnsupportedVerb(c.Req.Method)
}

// parseMessage returns the message's text in a request's body.
func parseMessage(body []byte) (string, *protocol.Fault) {
	var sent struct {
		XMLName xml.Name `xml:"QueueMessage"`
		Text    *string  `xml:"MessageText"`
	}
	if err := document.Parse(body, &sent); err != nil {
		return "", err
	}
	if sent.Text == nil {
		return "", document.Invalid("no MessageText")
	}
	if len(*sent.Text) > maxText {
		return "", exchange.BodyTooLarge(maxText)
	}
	return *sent.Text, nil
}

func (s *Service) put(c *exchange.Call, q *queue) (*protocol.Answer, *protocol.Fault) {
	text, err := parseMessage(c.Body)
	if err != nil {
		return nil, err
	}
	hidden, err := c.Number("visibilitytimeout", 0, 0, maxVisibility)
	if err != nil {
		return nil, err
	}
	ttl, err := c.Number("messagettl", standardTTL, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if ttl == 0 || ttl < -1 {
		return nil, exchange.InvalidQuery("messagettl", strconv.FormatInt(ttl, 10), "Value must be at least 1, or -1 for no expiry.")
	}
	if ttl > 0 && hidden >= ttl {
		return nil, exchange.InvalidQuery("visibilitytimeout", strconv.FormatInt(hidden, 10), "The value must be smaller than messagettl.")
	}
	m := &queued{text: text, inserted: c.Now, visible: c.Now.Add(seconds(hidden)), expires: never()}
	s.name(q, m)
	// A time.Duration is at most 292 years. A message with a longer time to live never expires.
	if left := int64(never().Sub(c.Now) / time.Second); ttl > 0 && ttl < left {
		m.expires = c.Now.Add(seconds(ttl))
	}
	m.newReceipt()
	q.add(m)
	w := document.New("QueueMessagesList")
	m.write(w, messagePut)
	return w.Answer(protocol.NewAnswer(http.StatusCreated)), nil
}

// name sets a message's id and number. On a still clock it derives both from the message's text, so that two
// schedules that put the same messages in different orders reach the same state.
func (s *Service) name(q *queue, m *queued) {
	s.Count()
	m.id, m.number = exchange.ID("message", s.Serial), s.Serial
	if !s.Clock.Still() {
		return
	}
	if q.puts == nil {
		q.puts = map[string]uint64{}
	}
	q.puts[m.text]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", q.puts[m.text], m.text))
	m.number = binary.LittleEndian.Uint64(sum[:8])
	m.id = exchange.ID("message", m.number)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (s *Service) get(c *exchange.Call, q *queue) (*protocol.Answer, *protocol.Fault) {
	count, err := c.Number("numofmessages", 1, 1, maxGet)
	if err != nil {
		return nil, err
	}
	hidden, err := c.Number("visibilitytimeout", standardHide, 1, maxVisibility)
	if err != nil {
		return nil, err
	}
	w := document.New("QueueMessagesList")
	for _, m := range s.choose(q, int(count), c.Now, true) {
		m.visible = c.Now.Add(seconds(hidden))
		m.handed++
		m.newReceipt()
		heap.Push(&q.byTime, m)
		m.write(w, messageGot)
	}
	return w.Answer(protocol.NewAnswer(http.StatusOK)), nil
}

func (s *Service) peek(c *exchange.Call, q *queue) (*protocol.Answer, *protocol.Fault) {
	count, err := c.Number("numofmessages", 1, 1, maxGet)
	if err != nil {
		return nil, err
	}
	w := document.New("QueueMessagesList")
	for _, m := range s.choose(q, int(count), c.Now, false) {
		heap.Push(&q.byTime, m)
		m.write(w, messagePeeked)
	}
	return w.Answer(protocol.NewAnswer(http.StatusOK)), nil
}

// choose removes up to count visible messages from the heap, those that have been visible longest first unless the Chaos says
// otherwise.
func (s *Service) choose(q *queue, count int, now time.Time, get bool) []*queued {
	held := func(m *queued) bool { return m.handed > 0 && now.Before(m.visible) }
	visible := func(m *queued) bool { return !now.Before(m.visible) }
	var chosen []*queued
	for len(chosen) < count {
		var m *queued
		if get && s.Dice.Chance(s.Chaos.QueueTwice) {
			// Another receiver already has the message; that receiver's receipt becomes outdated.
			m = s.any(q, now, held)
		}
		if m == nil && s.Dice.Chance(s.Chaos.QueueOutOfOrder) {
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

// turn removes from the heap the message at the position that a test has set by GetFirst, or returns nil.
func (s *Service) turn(q *queue, now time.Time, is func(*queued) bool) *queued {
	found := q.those(now, is)
	if s.first >= len(found) {
		return nil
	}
	slices.SortFunc(found, compareTurns)
	heap.Remove(&q.byTime, found[s.first].at)
	return found[s.first]
}

// compareTurns orders messages by the time at which they become visible.
func compareTurns(a, b *queued) int {
	return cmp.Or(a.visible.Compare(b.visible), cmp.Compare(a.number, b.number))
}

// any removes a random message that the function is accepts from the heap and returns it, or nil.
func (s *Service) any(q *queue, now time.Time, is func(*queued) bool) *queued {
	found := q.those(now, is)
	if len(found) == 0 {
		return nil
	}
	// Sort the messages, so that the same draw selects the same message.
	slices.SortFunc(found, func(a, b *queued) int { return cmp.Compare(a.number, b.number) })
	m := found[s.Dice.Below(len(found))]
	heap.Remove(&q.byTime, m.at)
	return m
}

// staleAsMismatch selects which of the service's two responses an outdated receipt gets. Without Chaos it is
// the documented response.
func (s *Service) staleAsMismatch() bool {
	return (s.Chaos.QueueTwice > 0 || s.Chaos.QueueOutOfOrder > 0) && s.Dice.Chance(0.5)
}

// message serves requests on one message.
func (s *Service) message(c *exchange.Call, q *queue, id string) (*protocol.Answer, *protocol.Fault) {
	if c.Req.Method != http.MethodPut && c.Req.Method != http.MethodDelete {
		return nil, exchange.UnsupportedVerb(c.Req.Method)
	}
	receipt := c.Query.Get("popreceipt")
	if receipt == "" {
		return nil, exchange.MissingQuery("popreceipt")
	}
	m := q.find(id, c.Now)
	if m == nil {
		return nil, messageNotFound()
	}
	switch m.state(receipt) {
	case receiptMalformed:
		return nil, exchange.InvalidQuery("popreceipt", receipt, "Invalid pop receipt format.")
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
		return protocol.NewAnswer(http.StatusNoContent), nil
	}
	return q.update(c, m)
}

func messageNotFound() *protocol.Fault {
	return protocol.Refuse(http.StatusNotFound, "MessageNotFound", "The specified message does not exist.")
}

func receiptMismatch() *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "PopReceiptMismatch",
		"The specified pop receipt did not match the pop receipt for a dequeued message.")
}

// update hides a message again and, if the request has a body, replaces its text.
func (q *queue) update(c *exchange.Call, m *queued) (*protocol.Answer, *protocol.Fault) {
	if !c.Query.Has("visibilitytimeout") {
		return nil, exchange.MissingQuery("visibilitytimeout")
	}
	hidden, err := c.Number("visibilitytimeout", 0, 0, maxVisibility)
	if err != nil {
		return nil, err
	}
	until := c.Now.Add(seconds(hidden))
	if until.After(m.expires) {
		return nil, exchange.InvalidQuery("visibilitytimeout", strconv.FormatInt(hidden, 10), "The message expires before it would be visible.")
	}
	if len(c.Body) > 0 {
		text, err := parseMessage(c.Body)
		if err != nil {
			return nil, err
		}
		m.text = text
	}
	q.hide(m, until)
	a := protocol.NewAnswer(http.StatusNoContent)
	a.Header.Set("x-ms-popreceipt", m.newReceipt())
	a.Header.Set("x-ms-time-next-visible", exchange.Time(m.visible))
	return a, nil
}

// messageView is the kind of response in which a message is written; each kind has other elements.
type messageView int

const (
	messagePut messageView = iota
	messageGot
	messagePeeked
)

func (m *queued) write(w *document.Writer, view messageView) {
	w.Begin("QueueMessage")
	w.Element("MessageId", m.id)
	w.Element("InsertionTime", exchange.Time(m.inserted))
	w.Element("ExpirationTime", exchange.Time(m.expires))
	if view != messagePeeked {
		w.Element("PopReceipt", m.receipt())
		w.Element("TimeNextVisible", exchange.Time(m.visible))
	}
	if view != messagePut {
		w.Element("DequeueCount", strconv.FormatInt(m.handed, 10))
		w.Element("MessageText", m.text)
	}
	w.End()
}
