package eventual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Message is one delivery of a message to its handler.
type Message struct {
	// ID is the same at every delivery, and in duplicates that the service or a sender's repetition makes.
	ID string
	// Type is the name that it was sent under.
	Type string
	// Body is JSON.
	Body []byte
	// Sent is when, by the sender's clock.
	Sent time.Time
	// Dequeues counts the deliveries, this one included: 1 at the first. One that was cut short counts, too.
	Dequeues int

	queue    *Queue
	envelope *envelope
	holding  *holding
	text     string // as it is stored

	allowUnfilled bool // see WorkerOptions
}

func (m *Message) queueName() string {
	if m.queue == nil {
		return ""
	}
	return m.queue.name
}

// Step is a part of what a handler does. Do does no harm when it is called twice: after a crash, it is.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
}

// Steps does the steps one after the other. The names of done ones are kept in the message itself, so that a redelivery
// goes on at the first that is not done. The steps of a type must stay the same while messages of it are under way; new ones
// belong at the end. Requests: 1 for each step, beside its own. It is for one goroutine at a time.
func (m *Message) Steps(ctx context.Context, steps ...Step) error {
	if m.queue == nil || m.envelope == nil || m.holding == nil {
		return invalidf("Steps", m.queueName(), "the message was not got from a queue, so it cannot keep what is done")
	}
	seen := map[string]bool{}
	for i, step := range steps {
		switch {
		case step.Name == "" || step.Do == nil:
			return invalidf("Steps", m.queueName(), "step %d has no name, or nothing to do", i)
		case seen[step.Name]:
			return invalidf("Steps", m.queueName(), "two steps have the name %q", step.Name)
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
		if err := m.note(ctx, step.Name); err != nil {
			return err
		}
	}
	return nil
}

// note writes into the message that a step is done. After a failure nobody knows whether that is stored, and the step may
// be done once more.
func (m *Message) note(ctx context.Context, step string) error {
	next := *m.envelope
	next.Steps = append(slices.Clone(next.Steps), step)
	text, _, err := m.queue.seal(ctx, "Steps", m.queue.nameOf(m.holding.queue), &next)
	if err != nil {
		return err
	}
	// Kept whatever comes of it: should the message go to the poison queue, it goes there with the step done, and with
	// the blob that its text may point to by now.
	*m.envelope, m.text = next, text
	err = m.holding.update(ctx, text)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return failure("Steps", m.queueName(), err)
	}
	return err
}
