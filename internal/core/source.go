package core

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Source describes where values are read from: a table's rows as they are, a repository's entities, or an index's
// copies. Every read of every pattern uses a Source, so all decode in the same way.
type Source struct {
	Table    *Table
	Codec    *Codec
	Known    map[string]int // properties to keep while reading, nil for all
	Span     compoundkey.Span
	Where    []entity.Condition // conditions of the rows; Load checks them again, since a point read sends none
	System   []string           // properties that Load needs beyond the caller's selection
	Guards   []string           // further properties to read: they mark a row that the caller must not write; continuation tokens ignore them
	Skips    bool               // Load skips some of the rows in Span
	Problems bool               // Load also gets the rows with a value that could not be read
	Kept     []string           // the properties that the rows hold, nil for all
	Plain    bool               // rows are read as they are: the library's own properties are among Properties

	// Marked names a property, one of System, of rows whose other properties are not to be believed; "" for none. A query with conditions
	// asks for these rows, too, whatever else they hold, and Load returns a Later for them.
	Marked string

	// Added reports whether rows can have a property for which the Codec's type has no field; nil means that they have none.
	Added func(property string) bool

	// Filterable returns an error if a query cannot compare the property, because the rows do not store it
	// unchanged. Nil means that every property can be compared.
	Filterable func(property string) error

	// Accept refuses rows that another reader of a parallel scan reads; nil accepts all.
	Accept func(entity.Key) bool

	// Err is the reason why the source cannot be read, nil if it can. Every method that would send a query of the
	// source returns it.
	Err error

	// Load makes the value of a row, a pointer to the Codec's type, or nil for a row that is not of this source. It returns a Later if
	// a further read has to tell the value. selected are the properties that the caller asked for, nil for all.
	Load func(ctx context.Context, row *tablerow.Row, selected []string) (any, error)
}

// stores returns an error for a property that no row of the source has.
func (s *Source) stores(property string) error {
	if s.Kept != nil && !slices.Contains(s.Kept, property) {
		return errors.New("the index does not store this property; store it by the index's projection, or query the entities")
	}
	if s.Added != nil && s.Added(property) {
		return nil
	}
	return s.Codec.Stores(property)
}

// filterable returns an error for a property that no condition can compare.
func (s *Source) filterable(property string) error {
	if err := s.stores(property); err != nil || s.Filterable == nil {
		return err
	}
	return s.Filterable(property)
}

// begin begins an operation on the source's table, unless ctx already belongs to an operation.
func (s *Source) begin(ctx context.Context, verb string) (context.Context, *telemetry.Operation) {
	if s == nil || s.Table == nil || s.Table.account == nil || s.Table.nameErr != nil {
		return ctx, nil // no request is sent; an illegal name may be input and must not become an attribute
	}
	return s.Table.account.telemetry.Begin(ctx, telemetry.Tables, verb, s.Table.name)
}

// Get makes the point read of one row. It returns ErrNotFound for a row that does not belong to the source.
func (s *Source) Get(ctx context.Context, op string, key entity.Key) (_ any, err error) {
	ctx, span := s.begin(ctx, op)
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	row, failed := s.Table.Get(ctx, op, key, s.Known)
	if failed != nil {
		return nil, failed
	}
	if row.Problem != nil && !s.Problems {
		return nil, s.DecodeError(op, key, &entity.Error{Kind: entity.ErrGarbled, Err: row.Problem})
	}
	v, failed := s.Load(ctx, row, nil)
	if later, is := v.(Later); is && failed == nil {
		v, failed = later(ctx, always)
	}
	if failed != nil {
		return nil, s.DecodeError(op, row.Key, failed)
	}
	if v == nil {
		return nil, &entity.Error{Op: op, Table: s.Table.name, Key: key, Kind: entity.ErrNotFound}
	}
	return v, nil
}

// GetMany reads values by key, and leaves out keys without a row.
func (s *Source) GetMany(ctx context.Context, keys []entity.Key, concurrency int) iter.Seq2[any, error] {
	if s.Err != nil {
		return func(yield func(any, error) bool) { yield(nil, s.Err) }
	}
	get := func(ctx context.Context, i int) (any, error) { return s.Get(ctx, "GetMany", keys[i]) }
	absent := func(err error) bool { return errors.Is(err, entity.ErrNotFound) }
	return func(yield func(any, error) bool) {
		ctx, op := s.begin(ctx, "GetMany")
		telemetry.Loop(op, streams.Window(ctx, len(keys), streams.Concurrency(concurrency, defaultConcurrency), get, absent, ofRow), yield)
	}
}

// entity makes a property bag of a value.
func (s *Source) entity(v any) (*entity.Entity, error) {
	w, err := s.Codec.write(wire.VerbInsert, v, "", nil)
	if err != nil {
		return nil, err
	}
	e := &entity.Entity{Key: w.Key, Properties: w.Properties}
	if facts := s.Codec.facts(v); facts != nil {
		if facts.partial {
			return nil, errs.Invalid("", ErrPartial)
		}
		keep(e, facts)
	}
	if meta := s.Codec.Meta(v); meta != nil {
		e.ETag = meta.ETag
	}
	return e, nil
}

// rawRows is the source of a table's rows as they are stored.
func (t *Table) rawRows() *Source {
	return &Source{Table: t, Codec: &Codec{}, Load: func(_ context.Context, row *tablerow.Row, _ []string) (any, error) {
		return row.Clone(), nil
	}}
}

// DecodeError adds to an error of Load the key of the row that Load could not decode.
func (s *Source) DecodeError(op string, key entity.Key, err error) error {
	e := errs.Of(err)
	if e == nil || e.Table != "" && e.Kind != entity.ErrGarbled {
		return err
	}
	located := *e
	if e.Table == "" {
		located.Op, located.Table, located.Key = op, s.Table.name, key
	}
	located.OfRow = e.Kind == entity.ErrGarbled && !errors.Is(err, kinds.ErrCutOff) // a response that was cut off is no problem of the row
	return &located
}

// Get makes the point read of one row, which may have a Problem. Requests: 1.
func (t *Table) Get(ctx context.Context, op string, key entity.Key, known map[string]int) (*tablerow.Row, error) {
	if err := t.Usable(); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if err := rows.CheckKeys(key.Partition, key.Row); err != nil {
		return nil, errs.Invalid(op, err)
	}
	if err := pace.Rows(ctx, 1); err != nil {
		return nil, failure(op, t.name, key, err)
	}
	ex := wire.Exchange{Lent: true, Entity: &wire.Address{Table: t.name, PartitionKey: key.Partition, RowKey: key.Row}}
	defer ex.Release() // the reader copies what it returns
	if _, err := t.client.GetEntity(wire.With(ctx, &ex), wire.StubKey, wire.StubKey, nil); err != nil {
		err = failure(op, t.name, key, err)
		t.failed(ctx, err)
		return nil, err
	}
	t.account.telemetry.Rows(ctx, t.name, 1, 1)
	row, err := rowreader.New(ex.Answer, known).One()
	if err != nil {
		return nil, failure(op, t.name, key, err)
	}
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
func (t *Table) readRow(ctx context.Context, key entity.Key) (*tablerow.Row, error) {
	return t.Get(ctx, "Get", key, map[string]int{})
}
