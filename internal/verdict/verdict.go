// Package verdict defines what happens to one of the library's own messages after its handler has returned: the handlers of package
// eventual and of the packages above it return a Verdict, and package eventual acts on it.
package verdict

import (
	"context"
	"time"
)

// Verdict is what a handler of one of the library's own messages returns beside its error. The zero Verdict deletes the message if there is
// no error, and counts a failure if there is one.
type Verdict struct {
	Action Action        // without an error
	Delay  time.Duration // delay of Release; with an error, the minimum delay until the next delivery
	// Poisoned is set with an error that a later delivery would return again. The worker puts the message on the poison queue at once and
	// then calls Poisoned. If that fails, the message is delivered again.
	Poisoned func(context.Context) error
	// Postpone is set together with an error that does not count as a failure: the message is delivered again later, and this delivery does
	// not count toward MaxDequeues.
	Postpone bool
}

// Action is the action of a worker on a message whose handler returned no error.
type Action uint8

// The actions.
const (
	Finish  Action = iota // delete it
	Leave                 // neither delete nor show it: its visibility timeout runs out
	Release               // show it to other workers after the delay
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
