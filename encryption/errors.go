package encryption

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"
)

// ErrNotAuthentic is the one error of everything that is read and is not what was written under its key: it does not tell
// which check failed. It is a tables.ErrGarbled.
const ErrNotAuthentic = constantError("not what was encrypted under this key")

// constantError is an error that nobody can change.
type constantError string

// Error implements error.
func (e constantError) Error() string { return string(e) }

// Is makes errors.Is see the kind.
func (e constantError) Is(kind error) bool { return kind == tables.ErrGarbled }

// errMerge is the guide's reason.
var errMerge = errors.New("a merge is refused: the encrypted properties that stay were written under another key than those that it sends, and could not be read together any more; use Replace")

// unreadable reports whether err says that a data key is not to be had from what is stored, in contrast to one that cannot
// be had just now. On reading it must not be told from any other mark of tampering.
func unreadable(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid)
}
