package driver

import "errors"

// Errors that patterns, repositories and queues exchange internally.
var (
	// ErrOutdated reports that the data that was read has been replaced meanwhile. A Transform or a Layout
	// returns it; the repository then reads the entity again. A caller never sees it.
	ErrOutdated = errors.New("replaced meanwhile")
	// ErrSkipped is what Transform.Load returns for a row that is not an entity of its type; the query skips
	// the row. A caller never sees it.
	ErrSkipped = errors.New("skipped")
	// ErrUnknownPattern reports that an intent names a pattern that this program's repository does not have.
	// The queue of intents keeps the intent for a newer build. The caller of a change never sees it.
	ErrUnknownPattern = errors.New("unknown pattern")
)
