package eventual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
)

// Message is one delivery of a message to its handler.
type Message struct {
	// ID is the same in every delivery, and in a duplicate that exists because a request of Send was repeated after a lost response. A second call
	// of Send makes another ID.
	ID   string
	Type string
	// Body is JSON.
	Body []byte
	// Sent is the time of the Send, by the sender's clock.
	Sent time.Time
	// Dequeues counts the deliveries so far, from 1, including this one and those that were cut short.
	Dequeues int

	queue    *queue
	envelope *envelope
	holding  *holding
	text     string // as stored

	allowUnfilled bool // see WorkerOptions
}

func (m *Message) queueName() string {
	if m.queue == nil {
		return ""
	}
	return m.queue.name
}

// Step is one part of a handler. Do must tolerate a second call after a crash.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
}

// Steps runs the steps in order. It stores the names of finished steps in the message, so that a redelivery continues with the first unfinished
// one. While messages of a type are on the queue, only append to its steps. Do not call Steps concurrently.
//
// If the queue has SigningKeys and the message is not signed, no names are stored and a redelivery runs all steps again: workers refuse an unsigned
// message with finished steps, and sign only what was signed before.
//
// Requests: 1 for each step, beside the step's own.
func (m *Message) Steps(ctx context.Context, steps ...Step) error {
	if m.queue == nil || m.envelope == nil || m.holding == nil {
		return errs.Wiringf("Steps", m.queueName(), "the message did not come from a queue, so finished steps cannot be stored; call Steps on the Message that a Worker gives to its handler")
	}
	seen := map[string]bool{}
	for i, step := range steps {
		switch {
		case step.Name == "" || step.Do == nil:
			return errs.Wiringf("Steps", m.queueName(), "step %d has no Name or no Do; set both", i)
		case seen[step.Name]:
			return errs.Wiringf("Steps", m.queueName(), "two steps have the name %q; give each step its own name", step.Name)
		}
		seen[step.Name] = true
	}
	for _, step := range steps {
		if slices.Contains(m.envelope.Steps, step.Name) {
			continue
		}
		if err := step.Do(ctx); err != nil {
			return fmt.Errorf("step %q: %w", step.Name, err)
		}
		if m.queue.signing != nil && !m.envelope.trusted {
			continue
		}
		if err := m.note(ctx, step.Name); err != nil {
			return err
		}
	}
	return nil
}

// note records a finished step. After an error the record may be missing; then the step runs again in the next delivery.
func (m *Message) note(ctx context.Context, step string) error {
	next := *m.envelope
	next.Steps = append(slices.Clone(next.Steps), step)
	text, _, err := m.queue.seal(ctx, "Steps", m.queue.nameOf(m.holding.queue), &next)
	if err != nil {
		return err
	}
	// Keep the new text even if the update failed: an entry of the poison queue must show the finished step and name the blob that may have been
	// stored.
	*m.envelope, m.text = next, text
	err = m.holding.update(ctx, text)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return failure("Steps", m.queueName(), err)
	}
	return err
}

// Handler handles a message. After nil, the worker deletes the message. After an error or a panic it is delivered again; after
// WorkerOptions.MaxDequeues deliveries it goes to the poison queue.
//
// Deliveries can be duplicated, reordered and delayed. The handler's context ends before another process can get the message (context.Cause is
// ErrLeaseLost), or when the worker stops and its StopTimeout is over. Send all requests under that context, with clients of the account: then none
// can arrive after the next delivery has begun.
type Handler func(ctx context.Context, m *Message) error

// internalHandler handles one of the library's own messages.
type internalHandler func(ctx context.Context, m *Message) (verdict.Verdict, error)

// handlerOf returns the handler of a type, or nil. The worker asks for each message, since HandleOwn can add types at any time.
func (w *Worker) handlerOf(messageType string) internalHandler {
	if h := w.handlers[messageType]; h != nil {
		return func(ctx context.Context, m *Message) (verdict.Verdict, error) { return verdict.Verdict{}, h(ctx, m) }
	}
	w.queue.mu.RLock()
	defer w.queue.mu.RUnlock()
	return w.queue.internal[messageType]
}

type panicError struct {
	value any
	stack string
}

// errGoexit is for handlers that call runtime.Goexit, as testing.T.FailNow does.
var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit; return an error instead")

// Error shows a value only if it is an error or a string: others may hold the handler's data.
func (p *panicError) Error() string {
	switch v := p.value.(type) {
	case error:
		return "panic: " + v.Error()
	case string:
		return "panic: " + v
	}
	return fmt.Sprintf("panic with a %T", p.value)
}

// Decode reads the body into the value that v points to. It matches JSON names to fields as encoding/json does, and ignores members without a
// field.
//
// It returns tables.ErrInvalid for a body that sets no field of a struct: that message was probably meant for another handler, and would be deleted
// after a handler that continues with the zero value. WorkerOptions.AllowUnfilled accepts such bodies; what Send writes for the zero value is
// always accepted. Errors name the type and the position, never a value.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.Body, v, namesMatch); err != nil {
		return errs.InvalidIn("Decode", m.queueName(), "the body of a message of type %q does not decode into a %T%s; decode it into the type that its sender wrote", m.Type, v, whereJSON(err))
	}
	if !m.allowUnfilled && !fills(m.Body, reflect.TypeOf(v).Elem()) {
		return errs.InvalidIn("Decode", m.queueName(), "the body of a message of type %q sets no field of a %T; decode it into the type that its sender wrote, or set WorkerOptions.AllowUnfilled", m.Type, v)
	}
	return nil
}

// namesMatch matches names as encoding/json does: without it, {"department":"Sales"} would leave a field Department empty.
var namesMatch = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))

// fills reports whether a body that was decoded into a t sets any field. Only structs and pointers to them refuse a body; one without members
// passes if t's zero value encodes to it.
func fills(body []byte, t reflect.Type) bool {
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if base.Kind() != reflect.Struct {
		return true
	}
	if kind := jsontext.Value(body).Kind(); kind != '{' && kind != 'n' {
		return true // a string or number, which the struct decodes itself
	}
	names := memberNames(body)
	if len(names) == 0 {
		zero, err := json.Marshal(reflect.New(t).Elem().Interface())
		return err == nil && bytes.Equal(zero, bytes.Join(bytes.Fields(body), nil))
	}
	for _, name := range names {
		probe, err := json.Marshal(map[string]any{name: nil})
		if err != nil {
			return true
		}
		err = json.Unmarshal(probe, reflect.New(base).Interface(), namesMatch, json.RejectUnknownMembers(true))
		if !errors.Is(err, json.ErrUnknownName) {
			return true
		}
	}
	return false
}

func memberNames(body []byte) (names []string) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return names
		}
		names = append(names, name.String())
		if err := d.SkipValue(); err != nil {
			return names
		}
	}
	return names
}
