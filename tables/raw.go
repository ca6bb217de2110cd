package tables

import (
	"context"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Internals holds the functions with which the other packages of this module use accounts, tables and rows, and which
// programs must not call. Programs cannot get an Internals, because InternalsOf takes an argument of an internal type;
// the same holds for the other functions of this file.
type Internals struct {
	// Raw opens a table for rows with the library's own properties, which Rows hides and protects.
	Raw func(table *Table) Raw
	// Owner returns a pointer to the handle's owner, nil for a handle of Account.Table. From the handle of a Store, a repository
	// finds the Store.
	Owner func(table *Table) *any
	// Telemetry returns the emitter of an account's telemetry, nil for a nil account.
	Telemetry func(account *Account) *telemetry.Telemetry

	// Get makes a point read of one value of a source. The value is a pointer to the type of the source's codec. Get
	// returns ErrNotFound for a row that does not belong to the source. Requests: 1.
	Get func(ctx context.Context, source *RawSource, op string, key Key) (any, error)
	// Bulk calls plan for each entity, which is never nil, and writes the rows that plan returns, in the way of
	// Rows.BulkNonAtomic. A transaction has at most maxRows rows.
	Bulk func(ctx context.Context, t *Table, op string, entities iter.Seq2[any, error], options *BulkOptions, maxRows int, plan func(any) (RawUnit, error)) (Report, error)
	// Condition returns the expression of a condition on rows of a codec's type, nil for the zero Condition.
	Condition func(c Condition, codec *RawCodec) (odata.Expr, error)
	// State returns a pointer to the field in which a repository stores the RawState of a Meta; the field is nil until
	// then.
	State func(m *Meta) **RawState

	// ChangeSet returns a pointer to the transaction's field for the change set of staged entities; the field is nil
	// until a repository stages one.
	ChangeSet func(x *Transaction) *RawChangeSet
	// NextChange counts one more change of the transaction, and returns the index of that change.
	NextChange func(x *Transaction) int
	// Writes returns the rows of a transaction that is part of a change set, and for each row the index of its change. It
	// returns an error if the transaction cannot be committed.
	Writes func(x *Transaction) ([]RawWrite, []int, error)
	// CheckWrites returns an error for rows that cannot be one transaction.
	CheckWrites func(writes []RawWrite) *Error
	// CheckReserved returns an error for properties whose names are reserved for the library.
	CheckReserved func(properties Properties) error

	// Amend returns a copy of err that edit has changed, or err itself if it is no *Error. It does not change an *Error that
	// err wraps.
	Amend func(err error, edit func(*Error)) error
	// Failure makes an *Error of err, which must not be the error of a write with unknown outcome.
	Failure func(err error) *Error
	// Loggable returns the key, or the zero Key if the key is illegal, since an illegal key could be a whole document.
	Loggable func(key Key) Key
	// ErrPartial is the cause of ErrInvalid if a program replaces a row by a value that was read through a projection.
	ErrPartial error
}

// InternalsOf returns the Internals.
func InternalsOf(rows.Pass) Internals { return internals }

var internals = Internals{
	Raw:   func(table *Table) Raw { return Raw{table} },
	Owner: func(table *Table) *any { return &table.owner },
	Telemetry: func(account *Account) *telemetry.Telemetry {
		if account == nil {
			return nil
		}
		return account.telemetry
	},
	Get: func(ctx context.Context, source *RawSource, op string, key Key) (any, error) {
		return source.get(ctx, op, key)
	},
	Bulk: runBulk,
	Condition: func(c Condition, codec *RawCodec) (odata.Expr, error) {
		if c.term == nil {
			return nil, nil
		}
		return c.term(codec.types())
	},
	State:     func(m *Meta) **RawState { return &m.state },
	ChangeSet: func(x *Transaction) *RawChangeSet { return &x.set },
	NextChange: func(x *Transaction) int {
		x.count++
		return x.count - 1
	},
	Writes: func(x *Transaction) ([]RawWrite, []int, error) {
		if x.err != nil {
			return nil, nil, x.err
		}
		return x.writes, x.changes, nil
	},
	CheckWrites:   checkWrites,
	CheckReserved: checkReserved,
	Amend:         amend,
	Failure:       func(err error) *Error { return asError(failure("", "", Key{}, err)) },
	Loggable:      loggable,
	ErrPartial:    errPartial,
}

func amend(err error, edit func(*Error)) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	amended := *e
	edit(&amended)
	return &amended
}

// Raw reads and writes the rows of a table with the library's own properties.
type Raw struct{ table *Table }

// Usable returns an error if no request can be made for the table: it has no account, or an illegal name.
func (r Raw) Usable() error { return r.table.usable() }

// Commit is the one write path: it sends one write as a single request, and several as one entity group transaction.
// writeID must not have been used by an earlier write. See Transaction.Commit for errors. Requests: 1; after a lost
// response, 1 more for each row that is read.
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

// GetMany reads rows by their keys, several at once, and omits keys without a row. Requests: 1 for each key.
func (r Raw) GetMany(ctx context.Context, keys []Key) iter.Seq2[*RawRow, error] {
	return GetManyOf[RawRow](ctx, rows.Open, r.table.rawRows(), keys, nil)
}

// Query returns a query of the rows as they are stored.
func (r Raw) Query() Query[RawRow] { return QueryOf[RawRow](rows.Open, r.table.rawRows()) }

// Source returns a source of the table's rows in a span of row keys. The caller sets Load, which may skip rows.
func (r Raw) Source(span compoundkey.Span) *RawSource {
	return &RawSource{Table: r.table, Codec: &RawCodec{}, Span: span, Skips: true}
}

// Visit returns a query that passes each row to visit as it is read, and that yields no rows.
func (r Raw) Visit(visit func(context.Context, *RawRow) error) Query[RawRow] {
	return QueryOf[RawRow](rows.Open, &RawSource{Table: r.table, Codec: &RawCodec{}, Skips: true,
		Load: func(ctx context.Context, row *RawRow, _ []string) (any, error) { return nil, visit(ctx, row) }})
}

// QueryOf returns a query of a source, whose values are pointers to T.
func QueryOf[T any](_ rows.Pass, source *RawSource) Query[T] { return Query[T]{query{src: source}} }

// GetManyOf reads values of a source by key. Requests: 1 for each key.
func GetManyOf[T any](ctx context.Context, _ rows.Pass, source *RawSource, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return streams.Typed[T](source.getMany(ctx, keys, options.untyped().concurrency))
}

// CodecOf returns the codec of T.
func CodecOf[T any](_ rows.Pass, codec *Codec[T]) *RawCodec { return codec.raw }

// RawUnit is the change of one entity in a bulk write. Its rows stay in one transaction.
type RawUnit struct {
	Key    Key
	Writes []RawWrite // the first is the entity's own row; only an estimate if Written is nil
	More   int        // rows that the entity may write or remove besides Writes
	// Written updates the entity after a commit of Writes; nil if only Together can write it.
	Written func(etags []azcore.ETag, writeID string)
	// Together writes units as one change set of their repository, which may write more rows than Writes. If units has
	// one element, Together writes that unit like any other change of the repository. Together is nil without a
	// repository. In its errors, Error.Change is the number of the failed unit; ErrTooLarge concerns all units
	// together.
	Together func(ctx context.Context, units []RawUnit) error
	Entity   any  // for Together
	Single   bool // no other unit may be in its transaction
	Again    bool // Together reads the entity again after a conflict
}
