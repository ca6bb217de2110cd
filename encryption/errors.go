package encryption

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"
)

// ErrNotAuthentic means that stored data differs from the data that was written under its key. It
// deliberately does not tell which check failed. errors.Is also matches tables.ErrGarbled.
const ErrNotAuthentic = constantError("the stored data is not what was encrypted under this key; restore the row or blob from a backup")

// constantError is an immutable error.
type constantError string

// Error implements error.
func (e constantError) Error() string { return string(e) }

// Is makes errors.Is match the error's kind.
func (e constantError) Is(kind error) bool { return kind == tables.ErrGarbled }

// errMerge gives the same reason as the guide for refusing a merge.
var errMerge = errors.New("an encrypted entity cannot be merged, because its old and new properties would be encrypted under different keys; use Replace")

// unreadable reports whether err means that the stored rows yield no data key, as opposed to a temporary failure. A
// read must report it like any other sign of tampering.
func unreadable(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid) || errors.Is(err, tables.ErrWiring)
}
