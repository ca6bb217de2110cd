package driver

import "errors"

// Errors that patterns, repositories and queues exchange internally.
var (
	// ErrOutdated: what was read has been replaced meanwhile. A Transform or a Layout returns it, and the entity is
	// read again. A caller never sees it.
	ErrOutdated = errors.New("replaced meanwhile")
	// ErrSkipped: Transform.Load returns it for a row that is no entity to yield; the query skips the row. A caller
	// never sees it.
	ErrSkipped = errors.New("skipped")
	// ErrUnknownPattern: an intent names a pattern that this program's repository does not have. The queue of intents keeps
	// the intent for a newer build. The caller of a change never sees it.
	ErrUnknownPattern = errors.New("unknown pattern")
)
