package driver

import "errors"

// What patterns, repositories and queues tell each other. No program sees them.
var (
	// ErrOutdated: what was read was replaced meanwhile; a Transform or a Layout says it, and the entity is read
	// again. A caller never sees it.
	ErrOutdated = errors.New("replaced meanwhile")
	// ErrSkipped: Transform.Load says it of a row which it has seen, and of which no entity is to be made: the
	// query yields nothing for it. No caller sees it.
	ErrSkipped = errors.New("skipped")
	// ErrUnknownPattern: an intent names a pattern that this program's repository does not have; an IntentRunner leaves the
	// intent to a newer build. No caller of a change sees it.
	ErrUnknownPattern = errors.New("unknown pattern")
)
