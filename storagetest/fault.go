package storagetest

import (
	"errors"
	"fmt"
	"net/http"
)

// Call describes one request that a client is about to send, for an [Injector]. Each retry by the SDK is
// another call.
type Call struct {
	// Index is the number of the call among the calls of its [Faults], from 0.
	Index int
	// Service is the service that the call is for; empty if neither address nor headers show it.
	Service StorageService
	// Kind is the operation that the call requests.
	Kind Kind
	// Method is the HTTP method.
	Method string
	// Resource is the table, queue, container, or container/blob that the call is about; empty for the account itself.
	Resource string
	// Path is the address without account and query, unescaped; it holds an entity's keys or a message's id.
	Path string
}

// String names the call for people: "call 3: PutMessage intents".
func (c Call) String() string {
	if c.Resource == "" {
		return fmt.Sprintf("call %d: %s", c.Index, c.Kind)
	}
	return fmt.Sprintf("call %d: %s %s", c.Index, c.Kind, c.Resource)
}

// Writes reports whether the call can change anything on the service. To get a queue message is a write,
// since it hides the message.
func (c Call) Writes() bool {
	return c.Kind == GetMessages || c.Method != http.MethodGet && c.Method != http.MethodHead
}

// Injector decides which calls of a client fail, and how. Inject returns nil to inject no fault. It is called for one
// call at a time, in the order of their indexes, and must not make a call itself.
//
// [Mode] and [Cut] are injectors that inject a fault into every call; [OnIndex], [On], [If], [Once], [Times],
// [Randomly], [First] and [Toggle] narrow them down:
//
//	storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.LostAnswer))
type Injector interface {
	fmt.Stringer
	Inject(call Call) Fault
}

// Fault carries out one call with a failure. Meet takes the place of the network: send passes the request on and
// returns the service's response, and Meet may call it once or not at all. A fault that returns [ErrDied] ends the
// client for good.
//
// [Mode], [Cut], [Before] and [After] are enough for most tests.
type Fault interface {
	fmt.Stringer
	Meet(call Call, req *http.Request, send Send) (*http.Response, error)
}

// Send passes a request on to the service.
type Send func() (*http.Response, error)

// ErrDied is the error of every call of a client whose process counts as dead, from [DiesBefore] or [DiesAfter] on.
var ErrDied = errors.New("storagetest: this client has died")

// diedError is the ErrDied that a transport returns. It prevents the SDK from retrying calls of a dead
// client.
type diedError struct{}

func (diedError) Error() string { return ErrDied.Error() }
func (diedError) Unwrap() error { return ErrDied }
func (diedError) NonRetriable() {}

// InjectorFunc is an [Injector] made of a function.
type InjectorFunc func(call Call) Fault

// Inject calls the function.
func (f InjectorFunc) Inject(call Call) Fault { return f(call) }

// String returns a fixed text, since a function has no name.
func (f InjectorFunc) String() string { return "(func)" }
