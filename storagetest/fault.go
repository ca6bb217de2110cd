package storagetest

import (
	"errors"
	"fmt"
	"net/http"
)

// Call is one request that a client is about to send, as an [Injector] sees it. A repetition by the SDK is a call of its
// own.
type Call struct {
	// Index is the call's number among those of its [Faults], from 0.
	Index int
	// Service is the service that the call is for; empty where neither address nor headers tell.
	Service StorageService
	// Kind is what the call asks for.
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

// Writes reports whether the call can change anything on the service. To get a message is to hide it, and so to write.
func (c Call) Writes() bool {
	return c.Kind == GetMessages || c.Method != http.MethodGet && c.Method != http.MethodHead
}

// Injector decides what becomes of the calls of a client. Inject returns nil to leave the call alone. It is asked for one
// call at a time, in the order of their indexes, and must not make a call itself.
//
// [Mode] and [Cut] are injectors that strike every call; [OnIndex], [On], [If], [Once], [Times], [Randomly], [First] and
// [Toggle] narrow them down:
//
//	storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.LostAnswer))
type Injector interface {
	fmt.Stringer
	Inject(call Call) Fault
}

// Fault is what becomes of one call. Meet stands in for the network: send passes the request on and returns the service's
// answer, and a fault may call it once, or not at all. A fault that returns [ErrDied] ends the client for good.
//
// [Mode], [Cut], [Before] and [After] are all that most tests need.
type Fault interface {
	fmt.Stringer
	Meet(call Call, req *http.Request, send Send) (*http.Response, error)
}

// Send passes a request on to the service.
type Send func() (*http.Response, error)

// ErrDied is the error of every call of a client whose process is taken for dead, from [DiesBefore] or [DiesAfter] on.
var ErrDied = errors.New("storagetest: this client has died")

// diedError keeps the SDK from repeating the calls of the dead.
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
