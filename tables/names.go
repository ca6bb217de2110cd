package tables

import (
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
)

// The words of package entity, whose documentation has their methods.
type (
	// Key addresses one entity of a table.
	Key = entity.Key
	// Property is one named value.
	Property = entity.Property
	// Properties are the custom properties of an entity in the order they were set or stored.
	Properties = entity.Properties
	// Entity is an entity as a property bag, for data without a Go type.
	Entity = entity.Entity
	// Meta records from which row an entity was read. Embed it in every type that a Repository stores.
	Meta = entity.Meta
	// Value is the value of one property: one of the eight EDM types, or null, which is the zero Value.
	Value = entity.Value
	// Type is the EDM type of a Value.
	Type = entity.Type
	// Condition is a typed condition on the properties of an entity, for Query.Where.
	Condition = entity.Condition
	// BulkOptions are the options of BulkNonAtomic of Rows and of Repository.
	BulkOptions = entity.BulkOptions
	// BulkVerb is what a bulk write does with each entity.
	BulkVerb = entity.BulkVerb
	// Run is what the reports of all long jobs have.
	Run = entity.Run
	// Progress says how far a long job is.
	Progress = entity.Progress
	// BulkReport says what a BulkNonAtomic has done.
	BulkReport = entity.BulkReport
	// Error is the error of every operation of this library.
	Error = entity.Error
)

// The types of property values.
const (
	TypeNull     = entity.TypeNull
	TypeString   = entity.TypeString
	TypeBinary   = entity.TypeBinary
	TypeBoolean  = entity.TypeBoolean
	TypeInt32    = entity.TypeInt32
	TypeInt64    = entity.TypeInt64
	TypeDouble   = entity.TypeDouble
	TypeDateTime = entity.TypeDateTime
	TypeGUID     = entity.TypeGUID
)

// The verbs of BulkNonAtomic.
const (
	BulkInsert      = entity.BulkInsert
	BulkReplace     = entity.BulkReplace
	BulkMerge       = entity.BulkMerge
	BulkUpsert      = entity.BulkUpsert
	BulkUpsertMerge = entity.BulkUpsertMerge
	BulkDelete      = entity.BulkDelete
)

// The limits of the service. Input over one of them causes ErrTooLarge before any request; a page size over MaxPageSize
// causes ErrInvalid.
const (
	MaxProperties            = entity.MaxProperties            // 252 properties of an entity, including the library's own
	MaxEntitySize            = entity.MaxEntitySize            // 1 MiB: the bytes of an entity, by the service's formula
	MaxStringUnits           = entity.MaxStringUnits           // 32,768 UTF-16 code units of a string property (64 KiB)
	MaxBinarySize            = entity.MaxBinarySize            // 65,536 bytes of a binary property (64 KiB)
	MaxTransactionOperations = entity.MaxTransactionOperations // 100 operations of an entity group transaction
	MaxTransactionSize       = entity.MaxTransactionSize       // 4 MiB: the bytes of an entity group transaction, as sent
	MaxPageSize              = entity.MaxPageSize              // 1,000 entities of a page
	MaxFilterComparisons     = entity.MaxFilterComparisons     // 15 comparisons of a filter
)

// The kinds of errors, for errors.Is; package entity says what each means. An *Error is of one kind at most.
var (
	ErrUnknownOutcome   = entity.ErrUnknownOutcome
	ErrNotFound         = entity.ErrNotFound
	ErrMissingReference = entity.ErrMissingReference
	ErrExists           = entity.ErrExists
	ErrConflict         = entity.ErrConflict
	ErrDuplicate        = entity.ErrDuplicate
	ErrTooLarge         = entity.ErrTooLarge
	ErrInvalid          = entity.ErrInvalid
	ErrWiring           = entity.ErrWiring
	ErrTableScan        = entity.ErrTableScan
	ErrMissingResource  = entity.ErrMissingResource
	ErrBeingDeleted     = entity.ErrBeingDeleted
	ErrRefused          = entity.ErrRefused
	ErrDenied           = entity.ErrDenied
	ErrUnavailable      = entity.ErrUnavailable
	ErrGarbled          = entity.ErrGarbled
)

// KindOf returns the one kind of err: one of the Err values of this package, or nil. For joined errors it returns ErrUnknownOutcome
// if one of them has that kind, otherwise the kind of any one of them.
func KindOf(err error) error { return entity.KindOf(err) }

// String makes an Edm.String value.
func String(s string) Value { return entity.String(s) }

// Binary makes an Edm.Binary value of a copy of b.
func Binary(b []byte) Value { return entity.Binary(b) }

// Boolean makes an Edm.Boolean value.
func Boolean(b bool) Value { return entity.Boolean(b) }

// Int32 makes an Edm.Int32 value.
func Int32(i int32) Value { return entity.Int32(i) }

// Int64 makes an Edm.Int64 value.
func Int64(i int64) Value { return entity.Int64(i) }

// Double makes an Edm.Double value. NaN and the infinities can be stored; every NaN becomes the same one.
func Double(f float64) Value { return entity.Double(f) }

// GUID makes an Edm.Guid value.
func GUID(u uuid.UUID) Value { return entity.GUID(u) }

// DateTime makes an Edm.DateTime value in UTC. A time finer than 100 ns, before 1601 or after 9999 is an error: nothing is rounded.
func DateTime(t time.Time) (Value, error) { return entity.DateTime(t) }

// Eq holds where the property equals value.
func Eq(property string, value any) Condition { return entity.Eq(property, value) }

// Ne holds where the property differs from value. An entity without the property does not match.
func Ne(property string, value any) Condition { return entity.Ne(property, value) }

// Gt holds where the property is greater than value.
func Gt(property string, value any) Condition { return entity.Gt(property, value) }

// Ge holds where the property is greater than value or equal.
func Ge(property string, value any) Condition { return entity.Ge(property, value) }

// Lt holds where the property is less than value.
func Lt(property string, value any) Condition { return entity.Lt(property, value) }

// Le holds where the property is less than value or equal.
func Le(property string, value any) Condition { return entity.Le(property, value) }

// And holds where all of the conditions hold. It needs at least one.
func And(conditions ...Condition) Condition { return entity.And(conditions...) }

// Or holds where at least one of the conditions holds. It needs at least one.
func Or(conditions ...Condition) Condition { return entity.Or(conditions...) }

// Not holds where the condition does not hold. No comparison holds for an entity that lacks the property, so Not of a
// comparison holds for it.
func Not(condition Condition) Condition { return entity.Not(condition) }

// ValueOf makes the value that a struct field of v's type would be stored as (see Codec). nil, and a Go type without an EDM
// type, are errors.
func ValueOf(v any) (Value, error) { return core.ValueOf(v) }
