package eventual

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SendOptions are the options of Send; nil is the same as the zero value.
type SendOptions struct {
	// Delay hides the message at first: rounded up to whole seconds, at most 7 days.
	Delay time.Duration
	// Partition decides on which shard the message is put, and so which workers get it (see Queue.Shard, WorkerOptions.Shards); for example, the
	// partition key of the rows that the handler writes. "" spreads messages by their IDs: for rows with an empty partition key, choose another
	// text. The message does not contain it.
	Partition string
}

func (q *queue) sendUsers(ctx context.Context, messageType string, body any, options *SendOptions) (id string, err error) {
	if strings.HasPrefix(messageType, ownTypes) {
		return "", errs.InvalidIn("Send", q.name, "message type %q begins with %q, which is reserved for the library; choose another type", messageType, ownTypes)
	}
	e, err := q.newEnvelope("Send", messageType, body)
	if err != nil {
		return "", err
	}
	var o SendOptions
	if options != nil {
		o = *options
	}
	ctx, span := q.signals().Begin(ctx, telemetry.Queues, telemetry.SendVerb, q.name)
	err = telemetry.ErrPanicked // until the client's policies have returned
	defer func() { span.End(err) }()
	_, err = q.send(ctx, "Send", e, q.shardOf(cmp.Or(o.Partition, e.ID)), o.Delay)
	if err != nil {
		return "", err
	}
	if o.Delay == 0 {
		q.wake.all()
	}
	return e.ID, nil
}

func (q *queue) newEnvelope(op, messageType string, body any) (*envelope, error) {
	if err := checkType(messageType); err != nil {
		return nil, errs.InvalidIn(op, q.name, "%w", err)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, errs.InvalidIn(op, q.name, "the body of a message of type %q is a %T, which cannot be encoded as JSON%s", messageType, body, whereJSON(err))
	}
	if len(raw) > maxBody {
		return nil, tooLargef(op, q.name, "the body of a message of type %q has %d bytes of JSON; it must have at most %d", messageType, len(raw), maxBody)
	}
	return &envelope{Version: envelopeVersion, ID: rand.Text(), Type: messageType, Sent: time.Now().UTC(), Body: raw, trusted: true}, nil
}

// whereJSON returns the position at which an encoding failed, without the error's text, which may quote the value.
func whereJSON(err error) string {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return ""
	}
	where := ""
	if semantic.JSONPointer != "" {
		where += " at " + string(semantic.JSONPointer)
	}
	if semantic.GoType != nil {
		where += " (" + semantic.GoType.String() + ")"
	}
	return where
}

type placed struct {
	shard   int
	id      string // the message ID of the service; empty if the response was unreadable
	receipt string
	text    string
	since   time.Time // before the request was sent
	twice   bool      // a repeated request may have put a second message with the same text
}

// send puts an envelope on a shard, after a blob with its body if that is large.
func (q *queue) send(ctx context.Context, op string, e *envelope, shard int, delay time.Duration) (placed, error) {
	e.Trace = q.signals().Traceparent(ctx)
	hidden, ok := wholeSeconds(delay)
	if !ok {
		return placed{}, errs.InvalidIn(op, q.name, "SendOptions.Delay is %v; it must be from 0 to %v", delay, longestHidden)
	}
	since := time.Now()
	text, claimed, err := q.seal(ctx, op, q.shardNames[shard], e)
	if err != nil {
		return placed{}, err
	}
	if !claimed {
		return q.put(ctx, op, shard, text, hidden)
	}
	var p placed
	err = putInTime(ctx, since, func(ctx context.Context) error {
		p, err = q.put(ctx, op, shard, text, hidden)
		return err
	})
	if err != nil && !errors.Is(err, tables.ErrUnknownOutcome) {
		// No message names the blob. SweepClaims removes it if this fails.
		_ = q.removeClaim(context.WithoutCancel(ctx), e)
	}
	return p, err
}

// sendHidden puts a message that this process handles itself, and holds it.
func (q *queue) sendHidden(ctx context.Context, op string, e *envelope) (*holding, error) {
	p, err := q.send(ctx, op, e, q.shardOf(e.ID), q.visibility)
	if err != nil {
		return nil, err
	}
	if p.receipt == "" {
		// Without a receipt this process cannot hold the message; a worker handles it.
		return nil, &tables.Error{Op: op, Table: q.name, Kind: tables.ErrUnknownOutcome, Err: tables.ErrGarbled}
	}
	h := hold(ctx, q.shards[p.shard], p.id, p.receipt, p.text, p.since, q.visibility)
	if !p.twice {
		// A second copy cannot be renewed, and becomes visible while this process still works.
		h.keep()
	}
	return h, nil
}

func (q *queue) put(ctx context.Context, op string, shard int, text string, hidden time.Duration) (placed, error) {
	p := placed{shard: shard, text: text, since: time.Now()}
	answer, err := putText(ctx, op, q.shardNames[shard], q.shards[shard], text, hidden)
	p.id, p.receipt, p.twice = answer.ID, answer.Receipt, answer.twice
	return p, err
}

type putAnswer struct {
	ID      string `xml:"QueueMessage>MessageId"`
	Receipt string `xml:"QueueMessage>PopReceipt"`

	twice bool
}

// putText puts a text on a storage queue. If only the response cannot be read, it succeeds without a receipt.
func putText(ctx context.Context, op, name string, client *azqueue.QueueClient, text string, hidden time.Duration) (putAnswer, error) {
	var ex wire.Exchange
	seconds, forever := int32(hidden/time.Second), int32(-1)
	_, err := client.EnqueueMessage(wire.With(ctx, &ex), text, &azqueue.EnqueueMessageOptions{VisibilityTimeout: &seconds, TimeToLive: &forever})
	if err != nil {
		return putAnswer{}, writeFailure(op, name, err, &ex)
	}
	answer := putAnswer{twice: ex.EarlierUnknown()}
	if xml.Unmarshal(ex.Answer, &answer) != nil {
		return putAnswer{}, nil
	}
	return answer, nil
}

// wholeSeconds rounds up to whole seconds; ok is false if the service would reject d.
func wholeSeconds(d time.Duration) (rounded time.Duration, ok bool) {
	if d < 0 || d > longestHidden {
		return 0, false
	}
	return (d + time.Second - 1).Truncate(time.Second), true
}

const (
	envelopeVersion = 1

	maxText = 64 << 10
	// maxInline is how much JSON fits into maxText, the service's limit, as base64.
	maxInline = maxText / 4 * 3
	// maxBody limits a body in a blob: sender and worker hold it in memory.
	maxBody = 16 << 20
	maxType = 200

	// ownTypes is the prefix of the types of the library's own messages.
	ownTypes = "tablepatterns."
)

// envelope is the stored form of a message, as JSON in base64, since the service's XML allows no control characters. A change needs a new version.
//
// Later has two tags for one meaning: "embed" in the JSON module and from Go 1.27 on, "inline" in the experiment of Go 1.25 and 1.26.
type envelope struct {
	Version int            `json:"v"`
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Sent    time.Time      `json:"sent"`
	Steps   []string       `json:"steps,omitempty"` // names of finished steps
	Waits   int            `json:"waits,omitzero"`  // number of postponed deliveries; see longestPostponement
	Body    jsontext.Value `json:"body,omitzero"`
	Claim   *claim         `json:"claim,omitzero"`
	Trace   string         `json:"traceparent,omitempty"` // W3C trace context of the sender
	Later   jsontext.Value `json:",embed,inline"`         // members that only a later version knows, written back
	MAC     string         `json:"mac,omitempty"`         // see SigningKeys; sign adds it as the last member

	raw     []byte // the JSON from which the envelope was read, including the MAC
	trusted bool   // made by this program, or its MAC has verified: only then is it signed
}

// claim names the blob of a large body, with the body's length and hash.
type claim struct {
	Blob   string `json:"blob"` // the blob claims/<Blob>
	Length int    `json:"length"`
	SHA256 string `json:"sha256"`
}

// encode returns the message's text, signed only if the envelope is trusted: otherwise whoever may add and read messages would get a MAC for a text
// of their own. fits is false if it exceeds the service's limit.
func (e *envelope) encode(queue place, keys *SigningKeys) (text string, fits bool, err error) {
	plain := *e
	plain.MAC = ""
	raw, err := json.Marshal(&plain)
	if err != nil {
		return "", false, err
	}
	if keys != nil && e.trusted {
		raw = keys.sign(queue, raw)
	}
	return base64.StdEncoding.EncodeToString(raw), len(raw) <= maxInline, nil
}

// Reasons why a message cannot be read. None quotes the message.
var (
	errNoEnvelope = errors.New("the message is neither the JSON of an envelope nor base64 of it; send messages with Queue.Send")
	errNoType     = errors.New("the envelope has no member type; name the type of a handler")
)

// decodeEnvelope reads a message's text: base64, with or without padding, or plain JSON, as people and other programs send it. A missing ID and
// time come from the service.
func decodeEnvelope(text, serviceID string, inserted time.Time) (*envelope, error) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '{' {
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(raw), "="))
		if err != nil {
			return nil, errNoEnvelope
		}
		raw = decoded
	}
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || !jsontext.Value(raw).IsValid() {
		return nil, errNoEnvelope
	}
	if head.Version != 0 && head.Version != envelopeVersion {
		return nil, fmt.Errorf("the envelope has version %d, and this build reads version %d; run workers of the newer build", head.Version, envelopeVersion)
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, errNoEnvelope
	}
	if e.Type == "" {
		return nil, errNoType
	}
	e.Version, e.raw = envelopeVersion, raw
	e.ID = cmp.Or(e.ID, serviceID)
	if e.Sent.IsZero() {
		e.Sent = inserted
	}
	if e.Claim == nil && e.Body == nil {
		e.Body = jsontext.Value("null")
	}
	return &e, nil
}

func checkType(messageType string) error {
	switch {
	case messageType == "":
		return errors.New("the message type is empty; give the type of a handler")
	case len(messageType) > maxType:
		return fmt.Errorf("the message type has %d bytes; it must have at most %d", len(messageType), maxType)
	case strings.ToValidUTF8(messageType, "") != messageType:
		return errors.New("the message type is not valid UTF-8")
	case strings.ContainsFunc(messageType, unicode.IsControl):
		return fmt.Errorf("message type %q has a control character; use printable characters", messageType)
	}
	return nil
}
