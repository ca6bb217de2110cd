// Package verdict defines what happens to one of the library's own messages after its handler has returned: the handlers of package
// eventual and of the packages above it return a Verdict, and package eventual acts on it.
package verdict

import (
	"context"
	"time"
)

// Verdict is the result of a handler of one of the library's own messages, in addition to its error. With the
// zero Verdict, the worker deletes the message if the error is nil, and otherwise counts a failure.
type Verdict struct {
	Action Action        // used if the handler returned no error
	Delay  time.Duration // delay of Release; with an error, the minimum delay until the next delivery
	// Poisoned is set if a later delivery would return the same error. The worker puts the message on the
	// poison queue at once and then calls Poisoned. If that fails, the message is delivered again.
	Poisoned func(context.Context) error
}

// Action is the action of a worker on a message whose handler returned no error.
type Action uint8

// The actions.
const (
	Finish  Action = iota // delete the message
	Leave                 // neither delete the message nor make it visible: its visibility timeout runs out
	Release               // make it visible to other workers after the delay
)

// String is the action's name in metrics and spans.
func (a Action) String() string {
	switch a {
	case Finish:
		return "handled"
	case Leave:
		return "left"
	}
	return "released"
}
