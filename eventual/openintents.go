package eventual

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/tables"
)

// openIntents are intents that are closed in the background: their changes have returned, and their effects
// are applied. It remains to read the entities again and to delete the message.
//
// A crash in between leaves the message, and a worker closes the intent. Until the intent is closed, this
// process may find that the entity has changed, and write its rows in other partitions once more. So the next
// change of the same entity in this process waits for the intent. Otherwise its caller could read an earlier
// version through an index after the change has returned. A change by another process does not wait, since no
// caller of this process knows of it.
type openIntents struct {
	mu     sync.Mutex
	most   int
	closed bool
	open   []*openIntent
}

// openIntent is an intent that is being closed in the background.
type openIntent struct {
	members []intents.Member
	done    chan struct{} // closed when the intent is closed
}

// limit sets how many intents may be open.
func (o *openIntents) limit(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = most
}

// start closes an intent in the background. It returns false if too many intents are open: then the caller closes the intent.
func (o *openIntents) start(intent *intents.Intent, closeIntent func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.open) >= o.most {
		return false
	}
	x := &openIntent{members: intent.Members, done: make(chan struct{})}
	o.open = append(o.open, x)
	go func() {
		defer o.end(x)
		closeIntent()
	}()
	return true
}

func (o *openIntents) end(x *openIntent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.DeleteFunc(o.open, func(other *openIntent) bool { return other == x })
	close(x.done)
}

// wait waits until no open intent shares an entity with the given one.
func (o *openIntents) wait(ctx context.Context, intent *intents.Intent) error {
	for {
		x := o.about(intent)
		if x == nil {
			return nil
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return &tables.Error{Op: "PutIntent", Err: fmt.Errorf("the context ended while the intent of an earlier change of the entity was closed, so the change was not begun: %w", context.Cause(ctx))}
		}
	}
}

// about returns an open intent that shares an entity with the given one, or nil.
func (o *openIntents) about(intent *intents.Intent) *openIntent {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.open {
		for i := range x.members {
			for j := range intent.Members {
				if x.members[i].Key == intent.Members[j].Key && x.members[i].Repository == intent.Members[j].Repository {
					return x
				}
			}
		}
	}
	return nil
}

// drain waits until the intents that are open when it is called are closed, or ctx ends, and returns how many of them are still open. With
// last, start refuses further intents.
func (o *openIntents) drain(ctx context.Context, last bool) (left int) {
	o.mu.Lock()
	o.closed = o.closed || last
	open := slices.Clone(o.open)
	o.mu.Unlock()
	for i, x := range open {
		select {
		case <-x.done:
		case <-ctx.Done():
			return len(open) - i
		}
	}
	return 0
}
