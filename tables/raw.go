package tables

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Raw reads and writes rows with the library's own properties, which Rows hides and protects. It is for the packages of this
// module that keep several rows of an entity consistent. Programs cannot get a Raw, because RawOf takes an argument of an
// internal type; the same holds for the other functions of this file.
type Raw struct{ table *Table }

// RawOf opens the raw surface of a table.
func RawOf(_ rows.Pass, table *Table) Raw { return Raw{table} }

// OwnerOf returns a pointer to the handle's owner, nil for a handle of Account.Table. From the handle of a Store, a
// repository finds the Store.
func OwnerOf(_ rows.Pass, table *Table) *any { return &table.owner }

// TelemetryOf returns the emitter of an account's telemetry, nil for a nil account.
func TelemetryOf(_ rows.Pass, account *Account) *telemetry.Telemetry {
	if account == nil {
		return nil
	}
	return account.telemetry
}

// Usable returns an error if no request can be made for the table: it has no account, or an illegal name.
func (r Raw) Usable() error { return r.table.usable() }

// Commit is the one write path: one write is a single request, several are one entity group transaction. writeID must not have been
// used by an earlier write. See Transaction.Commit for errors. Requests: 1; after a lost response, 1 more for each row that is read.
func (r Raw) Commit(ctx context.Context, op string, writes []RawWrite, writeID string) ([]azcore.ETag, error) {
	return r.table.commit(ctx, op, writes, writeID)
}

// Measure returns the number of bytes of the request's body that makes the writes, and which rows carry the write ID. It returns
// ErrTooLarge if the body has too many bytes for one transaction. Requests: 0.
func (r Raw) Measure(writes []RawWrite) (body int, marked []bool, e *Error) {
	return r.table.measure(writes)
}

// Get reads one row. It returns only the properties whose names are keys of known, and the library's own; if known is nil, it returns
// all. Requests: 1.
func (r Raw) Get(ctx context.Context, op string, key Key, known map[string]int) (*RawRow, error) {
	return r.table.fetch(ctx, op, key, known)
}

// ErrPartialOf is the cause of ErrInvalid if a program replaces a row by a value that was read through a projection.
func ErrPartialOf(_ rows.Pass) error { return errPartial }

// GetMany reads rows by key, several at once, without those that do not exist. Requests: 1 for each key.
func (r Raw) GetMany(ctx context.Context, keys []Key) iter.Seq2[*RawRow, error] {
	return GetManyOf[RawRow](ctx, rows.Open, r.table.rawRows(), keys, nil)
}

// Query returns a query of the rows as they are stored.
func (r Raw) Query() Query[RawRow] { return QueryOf[RawRow](rows.Open, r.table.rawRows()) }

// Source returns a source of the table's rows in a span of row keys. The caller sets Load, which may skip rows.
func (r Raw) Source(span compoundkey.Span) *Source {
	return &Source{Table: r.table, Codec: &RawCodec{}, Span: span, Skips: true}
}

// Visit returns a query that passes each row to visit as it is read, and that yields no rows.
func (r Raw) Visit(visit func(context.Context, *RawRow) error) Query[RawRow] {
	return QueryOf[RawRow](rows.Open, &Source{Table: r.table, Codec: &RawCodec{}, Skips: true,
		Load: func(ctx context.Context, row *RawRow, _ []string) (any, error) { return nil, visit(ctx, row) }})
}

// QueryOf returns a query of a source, whose values are pointers to T.
func QueryOf[T any](_ rows.Pass, source *Source) Query[T] { return Query[T]{query{src: source}} }

// GetOf makes the point read of one value of a source. It returns ErrNotFound for a row that does not belong to the
// source. Requests: 1.
func GetOf[T any](ctx context.Context, _ rows.Pass, source *Source, op string, key Key) (*T, error) {
	return as[T](source.get(ctx, op, key))
}

// GetAny is GetOf for a type that is not known at compile time: a pointer to the type of the source's codec.
func GetAny(ctx context.Context, _ rows.Pass, source *Source, op string, key Key) (any, error) {
	return source.get(ctx, op, key)
}

// GetManyOf reads values of a source by key. Requests: 1 for each key.
func GetManyOf[T any](ctx context.Context, _ rows.Pass, source *Source, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	concurrency := streams.Concurrency(cmp.Or(options, &ParallelOptions[T]{}).Concurrency, defaultConcurrency)
	get := func(ctx context.Context, i int) (*T, error) { return as[T](source.get(ctx, "GetMany", keys[i])) }
	absent := func(err error) bool { return errors.Is(err, ErrNotFound) }
	garbled := func(err error) bool { return asError(err) != nil && asError(err).OfRow }
	return func(yield func(*T, error) bool) {
		ctx, op := source.begin(ctx, "GetMany")
		telemetry.Loop(op, streams.Window(ctx, len(keys), concurrency, get, absent, garbled), yield)
	}
}

// ConditionOf returns the expression of a condition on rows of a codec's type, nil for the zero Condition.
func ConditionOf(_ rows.Pass, c Condition, codec *RawCodec) (odata.Expr, error) {
	if c.term == nil {
		return nil, nil
	}
	return c.term(codec.types())
}

// CodecOf returns the codec of T.
func CodecOf[T any](_ rows.Pass, codec *Codec[T]) *RawCodec { return codec.raw }

// StateOf returns a pointer to the State that a repository stores in a Meta; the State is nil if there is none.
func StateOf(_ rows.Pass, m *Meta) **State { return &m.state }

// SetOf returns a pointer to the ChangeSet of the entities that repositories have staged; the ChangeSet is nil if
// there is none.
func SetOf(_ rows.Pass, x *Transaction) *ChangeSet { return &x.set }

// NextChange counts a change of an entity, and returns its index.
func NextChange(_ rows.Pass, x *Transaction) int {
	x.count++
	return x.count - 1
}

// WritesOf returns the rows of a transaction that is part of a change set, and for each row the index of its change. It returns an error if
// the transaction cannot be committed.
func WritesOf(_ rows.Pass, x *Transaction) ([]RawWrite, []int, error) {
	if x.err != nil {
		return nil, nil, x.err
	}
	return x.writes, x.changes, nil
}

// BulkUnit is the change of one entity in a bulk write. Its rows stay in one transaction.
type BulkUnit struct {
	Key    Key
	Writes []RawWrite // the first is the entity's own row; only an estimate if Written is nil
	More   int        // rows that the entity may write or remove besides Writes
	// Written updates the entity after a commit of Writes; nil if only Together can write it.
	Written func(etags []azcore.ETag, writeID string)
	// Together writes units as one change set of their repository, which may write more rows than Writes. It writes a single unit
	// as any other change of the repository. It is nil without a repository. Error.Change is the number of the failed unit;
	// ErrTooLarge concerns all of them together.
	Together func(ctx context.Context, units []BulkUnit) error
	Entity   any  // for Together
	Single   bool // no other unit may be in its transaction
	Again    bool // Together reads the entity again after a conflict
}

// Amend returns a copy of err that edit has changed, or err itself if it is no *Error. It does not change an *Error that err wraps.
func Amend(_ rows.Pass, err error, edit func(*Error)) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	amended := *e
	edit(&amended)
	return &amended
}

// FailureOf makes an *Error of err, which must not be the error of a write with unknown outcome.
func FailureOf(_ rows.Pass, err error) *Error { return asError(failure("", "", Key{}, err)) }
