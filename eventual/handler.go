package eventual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Handler acts for a message. Nil means done: the message is deleted. An error, or a panic, means that it failed: the
// message comes again later, and after the last time goes to the poison queue.
//
// A handler is called at least once for each message, so now and then twice for one, and messages come in any order. Its
// context ends when another process may have the message (context.Cause is ErrLeaseLost), or when the worker stops and its
// StopTimeout is over. Whatever the handler sends, it sends under that context: then nothing of it can arrive after the
// message's next handler has begun.
type Handler func(ctx context.Context, m *Message) error

// internalHandler acts for one of the library's own messages. An error is a failure, as a Handler's.
type internalHandler func(ctx context.Context, m *Message) (verdict, error)

// verdict is what becomes of a message for which no error was returned.
type verdict struct {
	fate  fate
	delay time.Duration // of releaseMessage; with an error, the least until the message comes again
	// poisoned is set with an error that no later delivery can do better about: the message is poisoned at once, and poisoned is
	// called once the entry is on the poison queue. If it fails, the message comes again.
	poisoned func(context.Context) error
}

type fate uint8

const (
	finishMessage  fate = iota // delete it
	leaveMessage               // neither delete it nor show it: let its visibility timeout run out
	releaseMessage             // show it to others after the delay
)

func (f fate) String() string {
	switch f {
	case finishMessage:
		return "handled"
	case leaveMessage:
		return "left"
	}
	return "released"
}

// register gives the library's own messages of a type their handler, in every Worker of this Queue.
func (q *Queue) register(messageType string, h internalHandler) error {
	if !strings.HasPrefix(messageType, ownTypes) {
		return invalidf("register", q.name, "message type %q: the library's own begin with %q", messageType, ownTypes)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.internal[messageType] != nil {
		return invalidf("register", q.name, "message type %q has a handler already", messageType)
	}
	q.internal[messageType] = h
	return nil
}

// handlerOf finds who acts for a type: when a message comes, not before, since types are registered at any time. It is nil
// for a type that nobody knows.
func (w *Worker) handlerOf(messageType string) internalHandler {
	if h := w.handlers[messageType]; h != nil {
		return func(ctx context.Context, m *Message) (verdict, error) { return verdict{}, h(ctx, m) }
	}
	w.queue.mu.RLock()
	defer w.queue.mu.RUnlock()
	return w.queue.internal[messageType]
}

// panicError is a handler's panic as an error.
type panicError struct {
	value any
	stack string
}

// errGoexit: a handler ended its goroutine, as testing.T.FailNow does.
var errGoexit = errors.New("the handler ended its goroutine")

// Error shows the value of an error or a string only: another one may be anything that the handler had at hand.
func (p *panicError) Error() string {
	switch v := p.value.(type) {
	case error:
		return "panic: " + v.Error()
	case string:
		return "panic: " + v
	}
	return fmt.Sprintf("panic with a %T", p.value)
}
