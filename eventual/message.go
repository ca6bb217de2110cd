package eventual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Message is one delivery of a message to its handler.
type Message struct {
	// ID is the same at every delivery, and in duplicates made by the service or by a repeated Send.
	ID string
	// Type is the type under which the message was sent.
	Type string
	// Body is the body as JSON.
	Body []byte
	// Sent is the time of the Send, by the sender's clock.
	Sent time.Time
	// Dequeues counts the deliveries, including this one (1 at the first) and those that were cut short.
	Dequeues int

	queue    *Queue
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

// Step is one part of a handler. Do must tolerate a second call, since a crash can repeat it.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
}

// Steps runs the steps one after the other. It stores the names of finished steps in the message, so that a redelivery continues with
// the first unfinished one. Keep the steps of a message type the same while messages of it are on the queue; append new ones at the
// end. Do not call Steps concurrently. Requests: 1 for each step, beside the step's own.
func (m *Message) Steps(ctx context.Context, steps ...Step) error {
	if m.queue == nil || m.envelope == nil || m.holding == nil {
		return tables.Wiringf("Steps", m.queueName(), "the message did not come from a queue, so finished steps cannot be stored; call Steps on the Message that a Worker gives to its handler")
	}
	seen := map[string]bool{}
	for i, step := range steps {
		switch {
		case step.Name == "" || step.Do == nil:
			return tables.Wiringf("Steps", m.queueName(), "step %d has no Name or no Do; set both", i)
		case seen[step.Name]:
			return tables.Wiringf("Steps", m.queueName(), "two steps have the name %q; give each step its own name", step.Name)
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

// note records in the message that a step is done. After a failure it is unknown whether that is stored, so the step
// may run again.
func (m *Message) note(ctx context.Context, step string) error {
	next := *m.envelope
	next.Steps = append(slices.Clone(next.Steps), step)
	text, _, err := m.queue.seal(ctx, "Steps", m.queue.nameOf(m.holding.queue), &next)
	if err != nil {
		return err
	}
	// Keep the new text even if the update failed: if the message is poisoned, the entry must show the
	// finished step and name the blob that the update may have stored.
	*m.envelope, m.text = next, text
	err = m.holding.update(ctx, text)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return failure("Steps", m.queueName(), err)
	}
	return err
}
