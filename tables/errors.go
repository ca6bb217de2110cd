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

// The kinds of errors, for errors.Is. The set is closed: an error of this package is one of these, or the error of the caller's context,
// or of the transport. The text of an error has the details. Other packages have a few kinds of their own, most of
// which also match one of these.
var (
	// ErrNotFound: the entity does not exist.
	ErrNotFound = errors.New("not found")
	// ErrMissingReference: the entity refers to another entity that does not exist; Error.Pattern names the pattern that requires it.
	ErrMissingReference = errors.New("an entity that this one refers to does not exist")
	// ErrExists: an insert found an entity with the same keys, or Create found the table.
	ErrExists = errors.New("already exists")
	// ErrConflict: another writer has changed the entity since it was read, so the write was not applied; read it again and repeat the change.
	ErrConflict = errors.New("changed by another writer")
	// ErrDuplicate: a unique index key belongs to another entity; Error.Pattern names the index.
	ErrDuplicate = errors.New("index key is taken")
	// ErrTooLarge: the input is over a limit of the service. If this package found that, nothing was sent.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: the service would refuse the input, or would not return it as it was written. If this package found that, nothing
	// was sent.
	ErrInvalid = errors.New("invalid")
	// ErrTableScan: the query would read the whole table, and Query.AllowTableScan was not called; nothing was sent.
	ErrTableScan = errors.New("would scan the table")
	// ErrUnknownOutcome: the response was lost, and the write may have been applied, or may still be. Read before you repeat it. An
	// error can be this and also ErrExists, ErrNotFound or ErrBeingDeleted, which are then true now: the write may have been applied
	// before another writer changed or removed the row. Test for ErrUnknownOutcome first.
	ErrUnknownOutcome = errors.New("unknown whether applied")
	// ErrMissingResource: the table, queue or container does not exist; Create or CreateIfMissing creates it.
	ErrMissingResource = errors.New("missing table, queue or container")
	// ErrBeingDeleted: a table, queue or container of this name was dropped; the name cannot be used for about 40 seconds, or longer.
	ErrBeingDeleted = errors.New("being deleted")
	// ErrDenied: the credential does not allow the operation, or has expired.
	ErrDenied = errors.New("access denied")
	// ErrUnavailable: the service was busy or down in all attempts; nothing was applied.
	ErrUnavailable = errors.New("service unavailable")
	// ErrGarbled: a response of the service, or a stored row, cannot be understood.
	ErrGarbled = errors.New("unreadable response or stored data")
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
	switch {
	case e.Code == "TableNotFound" && e.Table != "":
		fmt.Fprintf(&b, "; create table %s with Store.Create or Table.CreateIfMissing", e.Table)
	case e.Code == "QueueNotFound": // Table may be the table of the change whose intent was to be put on the queue
		b.WriteString("; create the queue with Store.Create or Queue.CreateIfMissing")
	case errors.Is(e.Err, wire.ErrGarbled):
		b.WriteString("; repeat the operation, and if it fails again, check the endpoint and any proxy before it")
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

// IsAbsent reports whether err says that the entity does not exist. It is false for an ErrNotFound with Error.Pattern: that is about
// another row that a pattern looked for, such as the parent of the entity.
func IsAbsent(err error) bool {
	e := asError(err)
	return e != nil && e.Pattern == "" && errors.Is(e.Kind, ErrNotFound)
}

// LostRace reports whether err says that a write was not applied because another writer came first: ErrConflict, ErrExists or
// ErrNotFound, and not ErrUnknownOutcome. Read the entity again, and repeat.
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
	if _, ok := errors.AsType[*edm.SizeError](err); ok {
		kind = ErrTooLarge
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

// Invalidf is Invalid with a text of its own.
func Invalidf(op, format string, args ...any) *Error {
	return Invalid(op, fmt.Errorf(format, args...))
}

// InvalidIn is Invalidf about a table, queue, container or blob, named in Error.Table; the name may be "".
func InvalidIn(op, resource, format string, args ...any) *Error {
	e := Invalidf(op, format, args...)
	e.Table = resource
	return e
}

// refusals says which kind the status and the code of a response stand for.
var refusals = refusal.Kinds{
	NotFound: ErrNotFound, Exists: ErrExists, Conflict: ErrConflict, TooLarge: ErrTooLarge, Invalid: ErrInvalid,
	MissingResource: ErrMissingResource, BeingDeleted: ErrBeingDeleted, Denied: ErrDenied, Unavailable: ErrUnavailable,
	Garbled: ErrGarbled,
}

// failure turns the error of an SDK call that cannot have left anything behind (a read, or a write that was
// answered) into an Error.
func failure(op, table string, key Key, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Table: table, Key: key, Err: wire.Redact(err)}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		e.Code, e.Kind = response.ErrorCode, refusals.OfTable(response.StatusCode, response.ErrorCode)
	}
	if errors.Is(err, wire.ErrGarbled) {
		e.Kind = ErrGarbled
	}
	return e
}
