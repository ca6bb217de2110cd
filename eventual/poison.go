package eventual

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	poisonSuffix = "-poison"
	poisonType   = ownTypes + "poison"

	// maxReason limits a reason, in bytes, to leave room in the entry for the original message.
	maxReason = 2 << 10
	maxStack  = 8 << 10
)

// poisonEntry is the body of an entry, which is itself a message: a stored format, like the envelope.
type poisonEntry struct {
	Queue      string    `json:"queue"`
	Shard      int       `json:"shard"`
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Reason     string    `json:"reason"`
	Stack      string    `json:"stack,omitempty"`
	Dequeues   int       `json:"dequeues"`
	Sent       time.Time `json:"sent,omitzero"`
	PoisonedAt time.Time `json:"poisonedAt"`
	Original   string    `json:"original"` // the message's text, with the steps that the last delivery finished
}

func (d *delivery) poisonEntry(reason, stack string) *poisonEntry {
	p := &poisonEntry{Queue: d.queue.name, Shard: d.shard, ID: d.raw.id, Reason: cut(reason, maxReason), Stack: cut(stack, maxStack),
		Dequeues: d.raw.dequeues, Sent: d.raw.inserted, PoisonedAt: time.Now().UTC(), Original: d.raw.text}
	if m := d.message; m != nil {
		// Unlike the received text, m.text includes the steps that this delivery has finished.
		p.ID, p.Type, p.Sent, p.Original = m.ID, m.Type, m.Sent, m.text
	}
	return p
}

// cut shortens a text to at most this many bytes, and appends "...".
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// putPoison puts an entry on the poison queue, with its body in a blob if it is too large. Without a container, the original message is put
// unchanged, and only the log has the reason. hidden keeps the entry hidden until a request of the handler, which may still be on its way, has
// arrived.
func (q *queue) putPoison(ctx context.Context, p *poisonEntry, hidden time.Duration) error {
	const op = "Poison"
	body, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return errs.InvalidIn(op, q.name, "the entry of a message of type %q cannot be written as JSON", p.Type)
	}
	e := &envelope{Version: envelopeVersion, ID: rand.Text(), Type: poisonType, Sent: p.PoisonedAt, Body: body, trusted: true}
	name := q.name + poisonSuffix
	text, claimed, err := q.seal(ctx, op, name, e)
	if q.claims == nil && errors.Is(err, tables.ErrTooLarge) || q.claims != nil && errors.Is(err, tables.ErrMissingResource) {
		_, err = putText(ctx, op, name, q.poison, p.Original, hidden)
		return err
	}
	if err != nil {
		return err
	}
	_, err = putText(ctx, op, name, q.poison, text, hidden)
	if err != nil && claimed && !errors.Is(err, tables.ErrUnknownOutcome) {
		_ = q.removeClaim(ctx, e) // no entry names the blob; if this fails, SweepClaims removes it
	}
	return err
}

// PoisonMessage is one entry of the poison queue.
type PoisonMessage struct {
	EntryID    string // id of the entry
	ID         string // id of the message; two entries have the same if a worker died before it deleted the message
	Type       string // "" if the message could not be read
	Queue      string
	Shard      int
	Reason     string
	Stack      string // the stack if the handler panicked
	Dequeues   int
	Sent       time.Time
	PoisonedAt time.Time
	Original   string // the message's text, with the steps that the last delivery finished

	unreadable error
}

// Body returns the JSON body of the message; nil if it is in a blob or the message cannot be read.
func (p *PoisonMessage) Body() []byte {
	e, err := decodeEnvelope(p.Original, p.ID, p.Sent)
	if err != nil {
		return nil
	}
	return e.Body
}

// readPoison reads an entry. Its error is a failed request; an entry that cannot be read has PoisonMessage.unreadable.
func (q *queue) readPoison(ctx context.Context, raw dequeued) (*PoisonMessage, *envelope, error) {
	e, err := decodeEnvelope(raw.text, raw.id, raw.inserted)
	if err != nil || e.Type != poisonType {
		p := &PoisonMessage{EntryID: raw.id, ID: raw.id, Queue: q.name, Shard: -1, Sent: raw.inserted, PoisonedAt: raw.inserted,
			Reason: "not known: the message was put here as it is", Original: raw.text}
		if e != nil {
			p.ID, p.Type, p.Sent = e.ID, e.Type, e.Sent
		}
		return p, nil, nil
	}
	unreadable := func(err error) (*PoisonMessage, *envelope, error) {
		return &PoisonMessage{EntryID: e.ID, Queue: q.name, Shard: -1, PoisonedAt: e.Sent, Reason: "the entry cannot be read: " + err.Error(), unreadable: err}, e, nil
	}
	body, err := q.open(ctx, e)
	if serviceError := (*tables.Error)(nil); errors.As(err, &serviceError) {
		return nil, nil, err
	}
	if err != nil {
		return unreadable(err)
	}
	var p poisonEntry
	if json.Unmarshal(body, &p, jsontext.AllowInvalidUTF8(true)) != nil {
		return unreadable(errors.New("the message is not an entry that a worker has put on the poison queue; Purge can delete it"))
	}
	return &PoisonMessage{EntryID: e.ID, ID: p.ID, Type: p.Type, Queue: p.Queue, Shard: p.Shard, Reason: p.Reason, Stack: p.Stack,
		Dequeues: p.Dequeues, Sent: p.Sent, PoisonedAt: p.PoisonedAt, Original: p.Original}, e, nil
}

// PoisonQueue holds the messages that failed too often, in the storage queue with the queue's name and "-poison".
type PoisonQueue struct {
	queue *queue
}

func (q *queue) poisonQueue() *PoisonQueue { return &PoisonQueue{queue: q} }

// Name returns the name of the storage queue.
func (p *PoisonQueue) Name() string { return p.queue.name + poisonSuffix }

// Length returns the service's approximate count of the entries. Requests: 1.
func (p *PoisonQueue) Length(ctx context.Context) (int, error) {
	return queueLength(ctx, p.Name(), p.queue.poison)
}

// Peek returns up to n entries, of the first 32 that are visible. To see all, call Purge with a match function that returns false. Requests: 1, and
// 1 for each entry that is stored in a blob.
func (p *PoisonQueue) Peek(ctx context.Context, n int) ([]PoisonMessage, error) {
	const op = "Peek"
	if n < 1 {
		return nil, errs.InvalidIn(op, p.Name(), "n is %d; it must be 1 or more", n)
	}
	count := int32(min(n, batch))
	answer, err := p.queue.poison.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
	if err != nil {
		return nil, failure(op, p.Name(), err)
	}
	var entries []PoisonMessage
	for _, m := range answer.Messages {
		receipt := "" // a peek returns no receipt
		raw, ok := readDequeued(&azqueue.DequeuedMessage{MessageID: m.MessageID, MessageText: m.MessageText, InsertionTime: m.InsertionTime,
			DequeueCount: m.DequeueCount, PopReceipt: &receipt})
		if !ok {
			continue
		}
		entry, _, err := p.queue.readPoison(ctx, raw)
		if err != nil {
			return entries, err
		}
		entries = append(entries, *entry)
	}
	return entries, nil
}

// Requeue puts the messages of the matching entries back on the queue, as new messages that were never delivered, and returns their number. A nil
// match matches all.
//
// It reads each visible entry once, and keeps those that do not match hidden until it returns. It does not see entries that another or a failed
// call has hidden, until the visibility timeout; Length counts them, too. After a crash or an error, an entry can remain although its message is on
// the queue, so a message can be requeued more than once. An entry that cannot be read stays; Requeue returns an error for it after all others.
//
// A message goes back to its shard. If the number of shards has changed since, that may differ from the one that SendOptions.Partition now selects:
// any worker may handle the message.
//
// Requests: 1 for 32 entries, 2 for each requeued entry, or 4 if its message's body is in a blob; 1 for each entry that does not match; more for
// entries that are stored in blobs themselves.
func (p *PoisonQueue) Requeue(ctx context.Context, match func(PoisonMessage) bool) (n int, err error) {
	defer func() {
		if n > 0 {
			p.queue.wake.all()
		}
	}()
	return p.each(ctx, "Requeue", match, func(h *holding, entry *PoisonMessage) error {
		shard := entry.Shard
		if shard < 0 || shard >= len(p.queue.shards) || entry.Queue != p.queue.name {
			shard = p.queue.shardOf(entry.ID)
		}
		return p.queue.putAgain(h.work, shard, entry)
	})
}

// putAgain puts the message of an entry on a shard. It first renews the term of its blob, so that no sweep deletes the blob meanwhile.
func (q *queue) putAgain(ctx context.Context, shard int, entry *PoisonMessage) error {
	const op = "Requeue"
	put := func(ctx context.Context) error {
		_, err := q.put(ctx, op, shard, entry.Original, 0)
		return err
	}
	e, err := decodeEnvelope(entry.Original, entry.ID, entry.Sent)
	if err != nil || e.Claim == nil {
		return put(ctx)
	}
	since := time.Now()
	if err := q.renewClaim(ctx, op, q.shardNames[shard], e); err != nil {
		return err
	}
	return putInTime(ctx, since, put)
}

// Purge deletes the matching entries, found as by Requeue, and returns their number. A nil match matches all. The blob of a large body stays, since
// another entry of the message may have been requeued; SweepClaims deletes it.
func (p *PoisonQueue) Purge(ctx context.Context, match func(PoisonMessage) bool) (n int, err error) {
	return p.each(ctx, "Purge", match, func(*holding, *PoisonMessage) error { return nil })
}

type round struct {
	*PoisonQueue
	op    string
	match func(PoisonMessage) bool
	act   func(h *holding, entry *PoisonMessage) error

	seen       map[string]bool
	began      time.Time // by the service's clock
	kept       []*holding
	n          int
	unreadable []error
}

// each calls act for every entry that matches, and then deletes the entry.
func (p *PoisonQueue) each(ctx context.Context, op string, match func(PoisonMessage) bool, act func(*holding, *PoisonMessage) error) (n int, err error) {
	r := &round{PoisonQueue: p, op: op, match: match, act: act, seen: map[string]bool{}}
	defer func() {
		for _, h := range r.kept {
			err = errors.Join(err, failure(op, p.Name(), h.release(0, "")))
		}
	}()
	for repeated := 0; repeated <= len(r.seen); {
		got, fresh, err := r.batch(ctx)
		switch {
		case err != nil:
			return r.n, err
		case got == 0:
			return r.n, errors.Join(r.unreadable...)
		case fresh:
			repeated = 0
		default:
			repeated += got // entries that have become visible again, because the round takes longer than the visibility timeout
		}
	}
	return r.n, errors.Join(r.unreadable...)
}

// batch gets up to 32 entries and handles those that are new to this round.
func (r *round) batch(ctx context.Context) (got int, fresh bool, err error) {
	q := r.queue
	since, count, hidden := time.Now(), int32(batch), int32(q.visibility/time.Second)
	answer, err := q.poison.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &hidden})
	if err != nil {
		return 0, false, failure(r.op, r.Name(), err)
	}
	if r.began.IsZero() && answer.Date != nil {
		r.began = *answer.Date
	}
	var raws []dequeued
	var holdings []*holding
	for _, m := range answer.Messages {
		if raw, ok := readDequeued(m); ok {
			h := hold(ctx, q.poison, raw.id, raw.receipt, raw.text, since, q.visibility)
			h.keep()
			raws, holdings = append(raws, raw), append(holdings, h)
		}
	}
	next := 0
	defer func() { // also if match panics
		for _, h := range holdings[next:] {
			h.stop()
		}
	}()
	for i, raw := range raws {
		// A message that this round has requeued may have failed again.
		late := !r.began.IsZero() && raw.inserted.After(r.began)
		if r.seen[raw.id] || late {
			r.kept = append(r.kept, holdings[i])
			r.seen[raw.id] = true
			next = i + 1
			continue
		}
		fresh = true
		r.seen[raw.id] = true
		if err := r.one(holdings[i], raw); err != nil {
			r.kept = append(r.kept, holdings[i:]...)
			next = len(holdings)
			return len(raws), fresh, err
		}
		next = i + 1
	}
	return len(raws), fresh, nil
}

// one handles an entry: it finishes the holding or, without an error, may add it to kept.
func (r *round) one(h *holding, raw dequeued) error {
	entry, own, err := r.queue.readPoison(h.work, raw)
	if err != nil {
		return err
	}
	if errors.Is(entry.unreadable, errClaimGone) && raw.dequeues > 1 {
		return failure(r.op, r.Name(), h.finish()) // an earlier call has handled the entry, and failed to delete it
	}
	if r.match != nil && !r.match(*entry) {
		r.kept = append(r.kept, h)
		return nil
	}
	if entry.unreadable != nil && r.op == "Requeue" {
		r.unreadable = append(r.unreadable, fmt.Errorf("entry %s: %w", entry.EntryID, entry.unreadable))
		r.kept = append(r.kept, h)
		return nil
	}
	if err := r.act(h, entry); err != nil {
		return err
	}
	if own != nil && entry.unreadable == nil {
		// Remove the blob first: in the other order a crash would leave a blob without an entry. The blob of an unreadable entry may belong to
		// another message, and is left to SweepClaims.
		if err := r.queue.removeClaim(h.work, own); err != nil {
			return err
		}
	}
	if err := h.finish(); err != nil {
		return failure(r.op, r.Name(), err)
	}
	r.n++
	return nil
}
