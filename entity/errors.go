package entity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	resources "github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The kinds of errors, for errors.Is. The set is closed, and an *Error is of one kind at most: errors.Is is true for one of these and
// false for all others, whatever the causes are. An *Error without a kind reports that the caller's context has ended, or contains an error
// of a function or a policy of the caller. Joined errors, such as those of Store.Create, are several errors, each with its own kind.
// Errors that other packages add, such as logtail.ErrOutsideWindow, are causes that refine one of these kinds.
//
// context.Canceled and context.DeadlineExceeded are causes, not kinds, and errors.Is finds them beside the
// kind. A write whose context has ended was not applied, unless the error has the kind ErrUnknownOutcome.
var (
	// ErrUnknownOutcome: the response was lost, and the write may have been applied, or may still be. Read before you repeat it.
	ErrUnknownOutcome = kinds.ErrUnknownOutcome
	// ErrNotFound: the entity does not exist.
	ErrNotFound = kinds.ErrNotFound
	// ErrMissingReference: the entity refers to another entity that does not exist; Error.Pattern names the pattern that requires it.
	ErrMissingReference = kinds.ErrMissingReference
	// ErrExists: an insert found an entity with the same keys, or Create found the table.
	ErrExists = kinds.ErrExists
	// ErrConflict: another writer has changed the entity since it was read, so the write was not applied; read it again and repeat the change.
	ErrConflict = kinds.ErrConflict
	// ErrDuplicate: a unique index key belongs to another entity; Error.Pattern names the index.
	ErrDuplicate = kinds.ErrDuplicate
	// ErrTooLarge: the input is over a limit of the service. If this package found that, nothing was sent.
	ErrTooLarge = kinds.ErrTooLarge
	// ErrInvalid: the input (an entity, a key, a condition, a token) breaks a rule, or the service would not return it as it was
	// written. If this package found that, nothing was sent. Correct the input; a repetition fails in the same way.
	ErrInvalid = kinds.ErrInvalid
	// ErrWiring: the program or its configuration is wrong, whatever its input: a nil handle, a malformed connection string, an option
	// out of range (but a token of Resume is input: ErrInvalid), a pattern attached twice. In most cases nothing was sent. Correct the
	// program; other input cannot avoid the error.
	ErrWiring = kinds.ErrWiring
	// ErrTableScan: the query would read several partitions or the whole table, and Query.AllowTableScan was not called; nothing was sent.
	ErrTableScan = kinds.ErrTableScan
	// ErrMissingResource: the table, queue or container does not exist; Create or CreateIfMissing creates it.
	ErrMissingResource = kinds.ErrMissingResource
	// ErrBeingDeleted: a table, queue or container of this name was dropped; the name cannot be used for 40 s or more.
	ErrBeingDeleted = kinds.ErrBeingDeleted
	// ErrRefused: the account, container, blob, queue or table is in a state in which the service does not carry out the request: a blob is
	// in the archive tier, has a lease or snapshots, or is held by an immutability policy, or an account is disabled. Nothing was applied.
	// Error.Code is the reason, and the text says what to do; a repetition fails until somebody has changed that state.
	ErrRefused = kinds.ErrRefused
	// ErrDenied: the credential does not allow the operation, has expired, or gave no token.
	ErrDenied = kinds.ErrDenied
	// ErrUnavailable: the service was busy, down or unreachable in all attempts (a gateway may have answered in its place), or has not finished other work, such as the creation of the
	// account or the rehydration of a blob; nothing was applied. Repeat the operation later.
	ErrUnavailable = kinds.ErrUnavailable
	// ErrGarbled: a response, or a stored row, cannot be understood, or the response has a status that the service does not send.
	ErrGarbled = kinds.ErrGarbled
)

// KindOf returns the one kind of err: one of the Err values of this package, or nil. For joined errors it returns ErrUnknownOutcome
// if one of them has that kind, otherwise the kind of any one of them.
func KindOf(err error) error { return kinds.Of(err) }

// Error is the error of every operation of this library. errors.Is finds its one kind (one of the Err values) and its
// cause; errors.As finds the SDK's *azcore.ResponseError where the service answered.
type Error struct {
	Op      string // the operation, such as "Insert"
	Table   string
	Key     Key    // the row that failed; zero if the error does not concern one row
	Change  int    // number, from 1, of the operation of a transaction or entity of a bulk write that failed; 0 if unknown, and for other calls
	Pattern string // the pattern whose row or rule failed, "" for the entity's own row
	Code    string // the service's error code, such as "EntityAlreadyExists"
	Kind    error  // one of the Err values, or nil for the kind of Err
	Err     error  // the cause; may be nil
	// OfRow reports that a stored row does not fit its type, and that reading continues with the next row; Kind is ErrGarbled.
	OfRow bool
}

// prefix begins the text of every Error.
const prefix = "tablepatterns: "

// Error names operation, table, key and reason, and never a property's value or a secret.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(prefix)
	b.WriteString(e.Op)
	switch {
	case e.Table == "":
	case rows.CheckTableName(e.Table) == nil || resources.CheckName(e.Table) == nil:
		fmt.Fprintf(&b, " in %s", e.Table)
	default: // a blob, whose name can contain a key
		fmt.Fprintf(&b, " in %q", e.Table)
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
	if text := strings.ReplaceAll(kinds.Brief(e.Err), prefix, ""); text != "" { // the cause may be an Error itself
		fmt.Fprintf(&b, ": %s", text)
	}
	switch {
	case e.Code == "TableNotFound" && e.Table != "":
		fmt.Fprintf(&b, "; create table %s with Store.Create or Table.CreateIfMissing", e.Table)
	case e.Code == "QueueNotFound": // Table may be the table of the change whose intent was to be put on the queue
		b.WriteString("; create the queue with Store.Create or Queue.CreateIfMissing")
	case e.Code == "InvalidHeaderValue":
		b.WriteString("; if the endpoint is an Azurite, start it with --skipApiVersionCheck")
	case errors.Is(e.Err, kinds.ErrCutOff):
		b.WriteString("; repeat the operation, and if it fails again, check the endpoint and any proxy before it")
	default:
		if advice := refusal.Advice(e.Kind, e.Code); advice != "" {
			fmt.Fprintf(&b, "; %s", advice)
		}
	}
	return b.String()
}

// Unwrap returns the kind and the cause, so that errors.Is and errors.As find both. It hides the kinds that the cause
// contains.
func (e *Error) Unwrap() []error {
	kind := e.Kind
	if kind == nil {
		cause, inner := e.Err, false
		for next := cause; next != nil && !inner; next = errors.Unwrap(cause) {
			cause = next
			_, inner = cause.(*Error)
		}
		if _, several := cause.(interface{ Unwrap() []error }); several && !inner {
			kind = KindOf(e.Err)
		} // otherwise the cause has at most one kind, and errors.Is finds it in the cause
	}
	switch {
	case e.Err == nil && kind == nil:
		return nil
	case e.Err == nil:
		return []error{kind}
	case kind == nil:
		return []error{e.Err}
	}
	return []error{kind, kinds.Hide(e.Err)}
}
