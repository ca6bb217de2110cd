package tables

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// RawSource describes where values are read from: a table's rows as they are, a repository's entities, or an index's
// copies. Every read of every pattern uses a RawSource, so all decode in the same way.
type RawSource struct {
	Table    *Table
	Codec    *RawCodec
	Known    map[string]int // properties to keep while reading, nil for all
	Span     compoundkey.Span
	Where    []Condition // conditions of the rows; Load checks them again, since a point read sends none
	System   []string    // properties that Load needs beyond the caller's selection
	Guards   []string    // further properties to read: they mark a row that the caller must not write; continuation tokens ignore them
	Skips    bool        // Load skips some of the rows in Span
	Problems bool        // Load also gets the rows with a value that could not be read
	Kept     []string    // the properties that the rows hold, nil for all
	Plain    bool        // rows are read as they are: the library's own properties are among RawRow.Properties

	// Filterable returns an error if a query cannot compare the property, because the rows do not store it
	// unchanged. Nil means that every property can be compared.
	Filterable func(property string) error

	// Accept refuses rows that another reader of a parallel scan reads; nil accepts all.
	Accept func(Key) bool

	// Err is the reason why the source cannot be read, nil if it can. Every method that would send a query of the
	// source returns it.
	Err error

	// Load makes the value of a row, a pointer to the Codec's type, or nil for a row that is not of this source. selected are the
	// properties that the caller asked for, nil for all.
	Load func(ctx context.Context, row *RawRow, selected []string) (any, error)
}

// as converts v to a *T, and passes err on.
func as[T any](v any, err error) (*T, error) {
	if err != nil || v == nil {
		return nil, err
	}
	return v.(*T), nil
}

// begin begins an operation on the source's table, unless ctx already belongs to an operation.
func (s *RawSource) begin(ctx context.Context, verb string) (context.Context, *telemetry.Operation) {
	if s == nil || s.Table == nil || s.Table.account == nil || s.Table.nameErr != nil {
		return ctx, nil // no request is sent; an illegal name may be input and must not become an attribute
	}
	return s.Table.account.telemetry.Begin(ctx, telemetry.Tables, verb, s.Table.name)
}

// get makes the point read of one row. It returns ErrNotFound for a row that does not belong to the source.
func (s *RawSource) get(ctx context.Context, op string, key Key) (_ any, err error) {
	ctx, span := s.begin(ctx, op)
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	row, failed := s.Table.fetch(ctx, op, key, s.Known)
	if failed != nil {
		return nil, failed
	}
	if row.Problem != nil && !s.Problems {
		return nil, s.DecodeError(op, key, &Error{Kind: ErrGarbled, Err: row.Problem})
	}
	v, failed := s.Load(ctx, row, nil)
	if failed != nil {
		return nil, s.DecodeError(op, row.Key, failed)
	}
	if v == nil {
		return nil, &Error{Op: op, Table: s.Table.name, Key: key, Kind: ErrNotFound}
	}
	return v, nil
}

// getMany reads values by key, and leaves out keys without a row.
func (s *RawSource) getMany(ctx context.Context, keys []Key, concurrency int) iter.Seq2[any, error] {
	get := func(ctx context.Context, i int) (any, error) { return s.get(ctx, "GetMany", keys[i]) }
	absent := func(err error) bool { return errors.Is(err, ErrNotFound) }
	garbled := func(err error) bool { return asError(err) != nil && asError(err).OfRow }
	return func(yield func(any, error) bool) {
		ctx, op := s.begin(ctx, "GetMany")
		telemetry.Loop(op, streams.Window(ctx, len(keys), concurrency, get, absent, garbled), yield)
	}
}

// write writes one value as one row.
func (s *RawSource) write(ctx context.Context, op string, verb wire.Verb, v any, ifMatch azcore.ETag, names []string) error {
	w, err := s.Codec.write(verb, v, ifMatch, names)
	if err != nil {
		return relabel(op, s.Table, err)
	}
	etags, err := s.Table.commit(ctx, op, []RawWrite{w}, rowwriter.NewWriteID())
	if err != nil {
		return err
	}
	s.Codec.written(verb, v, etags[0])
	return nil
}

// entity makes a property bag of a value.
func (s *RawSource) entity(v any) (*Entity, error) {
	w, err := s.Codec.write(wire.VerbInsert, v, "", nil)
	if err != nil {
		return nil, err
	}
	e := &Entity{Key: w.Key, Properties: w.Properties}
	if facts := s.Codec.facts(v); facts != nil {
		if facts.partial {
			return nil, Invalid("", errPartial)
		}
		e.read = *facts
	}
	if meta := s.Codec.Meta(v); meta != nil {
		e.ETag = meta.ETag
	}
	return e, nil
}

// rawRows is the source of a table's rows as they are stored.
func (t *Table) rawRows() *RawSource {
	return &RawSource{Table: t, Codec: &RawCodec{}, Load: func(_ context.Context, row *RawRow, _ []string) (any, error) {
		return row.Clone(), nil
	}}
}

// DecodeError adds to an error of Load the key of the row that Load could not decode.
func (s *RawSource) DecodeError(op string, key Key, err error) error {
	e := asError(err)
	if e == nil || e.Table != "" && e.Kind != ErrGarbled {
		return err
	}
	located := *e
	if e.Table == "" {
		located.Op, located.Table, located.Key = op, s.Table.name, key
	}
	located.OfRow = e.Kind == ErrGarbled && !errors.Is(err, wire.ErrGarbled) // a response that was cut off is no problem of the row
	return &located
}

// fetch makes the point read of one row, which may have a Problem. Requests: 1.
func (t *Table) fetch(ctx context.Context, op string, key Key, known map[string]int) (*RawRow, error) {
	if err := t.usable(); err != nil {
		return nil, Wiringf(op, "", "%w", err)
	}
	if err := rows.CheckKeys(key.Partition, key.Row); err != nil {
		return nil, Invalid(op, err)
	}
	if err := pace.Rows(ctx, 1); err != nil {
		return nil, failure(op, t.name, key, err)
	}
	ex := wire.Exchange{Entity: &wire.Address{Table: t.name, PartitionKey: key.Partition, RowKey: key.Row}}
	if _, err := t.client.GetEntity(wire.With(ctx, &ex), wire.StubKey, wire.StubKey, nil); err != nil {
		err = failure(op, t.name, key, err)
		t.failed(ctx, err)
		return nil, err
	}
	t.account.telemetry.Rows(ctx, t.name, 1, 1)
	answer, err := rowreader.New(ex.Answer, known, accessProperty).One()
	if err != nil {
		return nil, failure(op, t.name, key, err)
	}
	row := new(RawRow)
	row.set(answer)
	if row.ETag == "" {
		row.ETag = azcore.ETag(ex.Header.Get("ETag"))
	}
	row.Answered, _ = http.ParseTime(ex.Header.Get("Date")) // without the header Answered stays zero; then the age of a reservation is unknown
	if row.Key != key {
		return nil, failure(op, t.name, key, rowreader.Garbled(errors.New("the response contains another row than the requested one; repeat the read, and check any proxy before the service")))
	}
	if !wire.IsETag(string(row.ETag)) {
		return nil, failure(op, t.name, key, rowreader.Garbled(rowreader.ErrNoETag))
	}
	return row, nil
}

// readRow reads a row for its system properties only.
func (t *Table) readRow(ctx context.Context, key Key) (*RawRow, error) {
	return t.fetch(ctx, "Get", key, map[string]int{})
}

// RawRow is a row as the service holds it. The reader of pages reuses it: Clone what must outlive the call.
type RawRow struct {
	Key       Key
	ETag      azcore.ETag
	Timestamp time.Time
	// Answered is the service's time when it answered a point read, zero for a row of a page.
	Answered time.Time
	// WriteID is the ID of the row's last write, "" if the row does not contain one.
	WriteID string
	// System are the library's other properties, Properties the caller's.
	System, Properties Properties
	// Problem says which value of the row could not be read, and why; Properties lacks that value.
	// Nil means no problem.
	Problem error
	// Lossy is Meta.Lossy.
	Lossy bool
}

// Clone returns a copy that shares nothing with the reader's memory.
func (r *RawRow) Clone() *RawRow {
	c := *r
	c.System, c.Properties = slices.Clone(r.System), slices.Clone(r.Properties)
	return &c
}

// set fills r with a row that was read.
func (r *RawRow) set(row *rowreader.Row[Property]) {
	*r = RawRow{
		Key: Key{row.Partition, row.Row}, ETag: azcore.ETag(row.ETag), Timestamp: row.Timestamp, WriteID: row.WriteID,
		System: row.System, Properties: row.Properties, Problem: row.Problem, Lossy: row.Lossy,
	}
}

// accessProperty gives the internal packages access to a property; they know edm.Value only.
func accessProperty(p *Property) (name *string, value *edm.Value) {
	return &p.Name, (*edm.Value)(&p.Value)
}
