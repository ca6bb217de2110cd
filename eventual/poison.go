package eventual

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	poisonSuffix = "-poison"
	poisonType   = ownTypes + "poison"

	// maxReason limits the reason; a longer one is cut, since the original message must fit into the entry,
	// too.
	maxReason = 2 << 10
	maxStack  = 8 << 10
)

// poisonEntry is the body of an entry of the poison queue, which is itself a message. It is a stored format that must
// stay compatible, like the envelope.
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
		// Unlike the text as it was received, m.text includes the steps that this delivery has finished.
		p.ID, p.Type, p.Sent, p.Original = m.ID, m.Type, m.Sent, m.text
	}
	return p
}

// cut shortens a text to at most most bytes, between characters.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// putPoison puts an entry on the poison queue. If an entry is too large for a message, its body goes into a blob.
// Without a blob container, the original message goes to the poison queue unchanged, without the reason, which is in
// the log.
//
// hidden is how long the entry stays hidden: a request that the handler sent may still be on its way, and
// must arrive before the message can be requeued.
func (q *Queue) putPoison(ctx context.Context, p *poisonEntry, hidden time.Duration) error {
	const op = "Poison"
	body, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return tables.InvalidIn(op, q.name, "the entry of a message of type %q cannot be written as JSON", p.Type)
	}
	e := &envelope{Version: envelopeVersion, ID: rand.Text(), Type: poisonType, Sent: p.PoisonedAt, Body: body}
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
	ID         string // id of the message; two entries can have the same ID, if a worker died between putting the entry and deleting the message
	Type       string // "" if the message could not be read
	Queue      string
	Shard      int
	Reason     string
	Stack      string // the stack if the handler panicked
	Dequeues   int
	Sent       time.Time
	PoisonedAt time.Time
	Original   string // the message's text, with the steps that the last delivery finished

	unreadable error // why the entry itself cannot be read
}

// Body returns the JSON body of the message, or nil if the message cannot be read or its body is in a blob.
func (p *PoisonMessage) Body() []byte {
	e, err := decodeEnvelope(p.Original, p.ID, p.Sent)
	if err != nil {
		return nil
	}
	return e.Body
}

// readPoison reads an entry. It returns an error only for a failed request; the entry itself says if it cannot be
// read.
func (q *Queue) readPoison(ctx context.Context, raw dequeued) (*PoisonMessage, *envelope, error) {
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
