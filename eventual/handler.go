package eventual

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/verdict"
)

// Handler handles a message. If it returns nil, the worker deletes the message. If it returns an error or panics, the message is
// delivered again later; after WorkerOptions.MaxDequeues deliveries it goes to the poison queue.
//
// Deliveries can be duplicated, reordered and delayed. The handler's context ends when another process may have the message
// (context.Cause is ErrLeaseLost), or when the worker stops and its StopTimeout is over. Send all requests under that context: then
// none of them can arrive after the next delivery has begun.
type Handler func(ctx context.Context, m *Message) error

// internalHandler handles one of the library's own messages. An error counts as a failure, as with a Handler.
type internalHandler func(ctx context.Context, m *Message) (verdict.Verdict, error)

// handlerOf returns the handler of a type, nil if the type is unknown. It looks it up for each message, since types
// may be registered at any time.
func (w *Worker) handlerOf(messageType string) internalHandler {
	if h := w.handlers[messageType]; h != nil {
		return func(ctx context.Context, m *Message) (verdict.Verdict, error) { return verdict.Verdict{}, h(ctx, m) }
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

// errGoexit reports that a handler called runtime.Goexit, as testing.T.FailNow does.
var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit; return an error instead")

// Error shows the panic's value only if it is an error or a string: other values may hold the handler's data.
func (p *panicError) Error() string {
	switch v := p.value.(type) {
	case error:
		return "panic: " + v.Error()
	case string:
		return "panic: " + v
	}
	return fmt.Sprintf("panic with a %T", p.value)
}
