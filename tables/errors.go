package tables

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// What can go wrong, for errors.Is. The set is closed: every error of this package is one of these or comes from the caller
// (a cancelled context) or the transport, and the text says the rest. Other packages name the few kinds of their own beside
// them, most of which are one of these, too.
var (
	// ErrNotFound: the entity is not there.
	ErrNotFound = errors.New("not found")
	// ErrMissingReference: another entity that the entity refers to, and that must be there, is not; Error.Pattern names the
	// pattern that looked for it.
	ErrMissingReference = errors.New("what the entity refers to is not there")
	// ErrExists: an insert met an entity with the same keys.
	ErrExists = errors.New("already exists")
	// ErrConflict: the entity is no longer the one that was read; read it again and decide anew.
	ErrConflict = errors.New("changed by another writer")
	// ErrDuplicate: a unique index key belongs to another entity; Error.Pattern names the index.
	ErrDuplicate = errors.New("index key is taken")
	// ErrTooLarge: over a limit of the service; nothing was sent.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: the service would refuse it, or it could not be read back equal; nothing was sent.
	ErrInvalid = errors.New("invalid")
	// ErrTableScan: the query would read the whole table and the caller did not allow it; nothing was sent.
	ErrTableScan = errors.New("would scan the table")
	// ErrUnknownOutcome: the write may or may not have been applied, or may still be. It is never a failure that can
	// be repeated blindly: read first. An error can be this and ErrExists or ErrNotFound: the row is there, or gone, and
	// ours may have been applied before a rival changed or removed it; or ErrTableBeingDeleted. Look for this one first.
	ErrUnknownOutcome = errors.New("unknown whether applied")
	// ErrTableNotFound: there is no such table; Table.CreateIfMissing creates it.
	ErrTableNotFound = errors.New("table not found")
	// ErrTableBeingDeleted: a table of this name was dropped; the name is taken for some 40 seconds or more.
	ErrTableBeingDeleted = errors.New("table is being deleted")
	// ErrDenied: the credential does not allow it, or has expired.
	ErrDenied = errors.New("access denied")
	// ErrUnavailable: the service is busy or down, after all retries; nothing was applied.
	ErrUnavailable = errors.New("service unavailable")
	// ErrGarbled: an answer, or a stored entity, that makes no sense.
	ErrGarbled = errors.New("garbled answer")
)

// Error is the error of every operation of this library. errors.Is finds its kind (one of the Err values) and its
// cause; errors.As finds the SDK's *azcore.ResponseError where the service answered.
type Error struct {
	Op      string // the operation, such as "Insert"
	Table   string
	Key     Key    // the row concerned, when one row is
	Change  int    // which operation of a transaction failed, from 1; 0 when that is not known, or there was no transaction
	Pattern string // the pattern whose row or rule failed, "" for the entity's own
	Code    string // the service's error code, such as "EntityAlreadyExists"
	Kind    error  // one of the Err values, or nil
	Err     error  // the cause; may be nil
}

// Error names operation, table, key and reason, and never a property's value or a secret.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("tablepatterns: ")
	b.WriteString(e.Op)
	if e.Table != "" {
		fmt.Fprintf(&b, " in %s", e.Table)
	}
	if e.Key != (Key{}) {
		fmt.Fprintf(&b, " (%q, %q)", e.Key.Partition, e.Key.Row)
	}
	if e.Change > 0 {
		fmt.Fprintf(&b, ", change %d", e.Change)
	}
	if e.Pattern != "" {
		fmt.Fprintf(&b, ", %s", e.Pattern)
	}
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if text := wire.Brief(e.Err); text != "" {
		fmt.Fprintf(&b, ": %s", text)
	}
	if e.Table != "" && errors.Is(e.Kind, ErrTableNotFound) {
		fmt.Fprintf(&b, "; create table %s with Table.CreateIfMissing", e.Table)
	}
	return b.String()
}

// Unwrap gives errors.Is and errors.As the kind and the cause.
func (e *Error) Unwrap() []error {
	switch {
	case e.Kind == nil:
		return []error{e.Err}
	case e.Err == nil:
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// IsAbsent reports whether err says that an entity is not there. What a pattern does not find (Error.Pattern), such as the
// parent that an entity belongs to, is ErrNotFound as well, and says nothing of the entity.
func IsAbsent(err error) bool {
	e := asError(err)
	return e != nil && e.Pattern == "" && errors.Is(e.Kind, ErrNotFound)
}

// LostRace reports whether err says that a write of an entity was surely refused because somebody else's came first: whoever
// reads the entity again and decides anew may write.
func LostRace(err error) bool {
	e := asError(err)
	if e == nil || e.Pattern != "" || errors.Is(err, ErrUnknownOutcome) {
		return false
	}
	return errors.Is(e.Kind, ErrConflict) || errors.Is(e.Kind, ErrExists) || errors.Is(e.Kind, ErrNotFound)
}

// Invalid is the error of bad input, before any request: ErrInvalid, or ErrTooLarge if err is over a limit of the service. Patterns
// use it, so that their errors have the form of all others.
func Invalid(op string, err error) *Error {
	kind := ErrInvalid
	var size *edm.SizeError
	if errors.As(err, &size) {
		kind = ErrTooLarge
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

// Invalidf is Invalid with a text of its own.
func Invalidf(op, format string, args ...any) *Error {
	return Invalid(op, fmt.Errorf(format, args...))
}

// refusals says which kind the status and the code of a response stand for.
var refusals = refusal.Kinds{
	NotFound: ErrNotFound, Exists: ErrExists, Conflict: ErrConflict, TooLarge: ErrTooLarge, Invalid: ErrInvalid,
	TableNotFound: ErrTableNotFound, TableBeingDeleted: ErrTableBeingDeleted, Denied: ErrDenied, Unavailable: ErrUnavailable,
	Garbled: ErrGarbled,
}

// failure turns the error of an SDK call that cannot have left anything behind (a read, or a write that was
// answered) into an Error.
func failure(op, table string, key Key, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Table: table, Key: key, Err: wire.Redact(err)}
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		e.Code, e.Kind = response.ErrorCode, refusals.OfTable(response.StatusCode, response.ErrorCode)
	}
	if errors.Is(err, wire.ErrGarbled) {
		e.Kind = ErrGarbled
	}
	return e
}
