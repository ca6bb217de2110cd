// Package stores has what a patterns.Store is for the packages of this module that open queues and containers with it, so that a program
// links the clients of queues and blobs only if it uses such a package.
package stores

import (
	"context"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/resource"
)

// Store is the contents of a patterns.Store.
type Store interface {
	Account() *core.Account
	// Lower returns the full name of a queue or container.
	Lower(name string) string
	// Know makes Create create what the entry names.
	Know(e Entry)
	// Intents returns the queue of intents. It opens the queue with open unless the queue is open; a zero Opener opens none. The result
	// is nil for an account without a queue endpoint, and if no queue is open.
	Intents(open Opener) (Queue, error)
	// Needed reports whether something of the program uses the queue of intents.
	Needed() bool
	// Drain waits until the rest of all changes that have returned is done. Later changes do their rest before they return.
	Drain(ctx context.Context) error
}

// Queue is a store's queue of intents.
type Queue interface {
	intents.RunnerCloser
	// Entry is what Create creates.
	Entry() Entry
	// Work handles messages until ctx ends.
	Work(ctx context.Context) error
}

// Opener opens a store's queue of intents. The zero value opens none.
type Opener struct {
	open func(account *core.Account, name string, options Options) (Queue, error)
}

// Options are those of a patterns.Store for its queue.
type Options struct {
	OpenRepository func(name string) error
	MaxOpen        int
}

// NewOpener returns an Opener that calls open.
func NewOpener(open func(account *core.Account, name string, options Options) (Queue, error)) Opener {
	return Opener{open}
}

// IsZero reports whether the Opener opens nothing.
func (o Opener) IsZero() bool { return o.open == nil }

// Open opens the queue.
func (o Opener) Open(account *core.Account, name string, options Options) (Queue, error) {
	return o.open(account, name, options)
}

// ID identifies a resource. Account distinguishes resources of one name in several accounts; it is nil if the
// name is a URL.
type ID struct {
	Account *core.Account
	Name    string // the kind and the name of the resource
}

// Entry is something that a store creates. The zero Entry is nothing.
type Entry struct {
	ID
	Create func(context.Context) error
	Late   bool                // create the entry after all entries that are not Late
	Parts  []resource.Resource // the resources that exist after the creation
}

// Register holds the resources that a store uses, each once. The zero value is empty. It is safe for concurrent use.
type Register struct {
	mu      sync.Mutex
	entries []Entry
	known   map[ID]bool
}

// Add adds an entry unless it exists.
func (r *Register) Add(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mark(e.ID) {
		r.entries = append(r.entries, e)
	}
}

// Mark notes an ID without an entry, and reports whether it is new.
func (r *Register) Mark(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark(id)
}

func (r *Register) mark(id ID) bool {
	if r.known[id] {
		return false
	}
	if r.known == nil {
		r.known = map[ID]bool{}
	}
	r.known[id] = true
	return true
}

// Has reports whether the register has an entry with this ID.
func (r *Register) Has(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// Entries returns all entries in the order in which they were added.
func (r *Register) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.entries)
}
