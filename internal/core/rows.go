package core

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Plain returns the source of a table's rows as values of a codec, each value one row without any pattern.
func (t *Table) Plain(codec *Codec) *Source {
	src := &Source{Table: t, Codec: codec, Known: codec.Known()}
	if codec.IsBag() || codec.HasMeta() {
		src.Guards = []string{rows.Primary, rows.Shared, rows.Copies, rows.Layout}
	}
	src.Load = func(_ context.Context, row *tablerow.Row, selected []string) (any, error) {
		return codec.load(row, selected != nil)
	}
	return src
}

// Conditional writes a value, which is not nil, under the ETag with which it was read.
func (s *Source) Conditional(ctx context.Context, op string, verb wire.Verb, v any, properties ...string) error {
	etag, err := s.Codec.etag(v)
	if err != nil {
		return s.relabel(op, errs.Invalid("", err))
	}
	return s.Write(ctx, op, verb, v, etag, properties...)
}

// Write writes a value, which is not nil, as one row. properties are those that a merge sends, all if there are none.
func (s *Source) Write(ctx context.Context, op string, verb wire.Verb, v any, ifMatch azcore.ETag, properties ...string) error {
	w, err := s.Codec.write(verb, v, ifMatch, properties)
	if err != nil {
		return s.relabel(op, err)
	}
	etags, _, err := s.Table.Commit(ctx, op, w)
	if err != nil {
		return err
	}
	s.Codec.written(verb, v, etags[0])
	return nil
}

// Refused returns the error of an operation that got a nil value.
func (s *Source) Refused(op string) error { return s.relabel(op, errs.Invalid("", ErrNil)) }

// DeleteUnconditional deletes a row without a check of its ETag.
func (t *Table) DeleteUnconditional(ctx context.Context, key entity.Key) error {
	_, _, err := t.Commit(ctx, "DeleteUnconditional", tablerow.Row{Verb: wire.VerbDelete, Key: key, IfMatch: azcore.ETagAny})
	return err
}

// Entity returns a value, which is not nil, as a property bag. It returns ErrInvalid for a value that was read through a projection.
func (s *Source) Entity(v any) (*entity.Entity, error) {
	e, err := s.entity(v)
	if err != nil {
		return nil, s.relabel("Entity", err)
	}
	return e, nil
}

// relabel sets the operation of an error from a lower layer to the one that the caller called.
func (s *Source) relabel(op string, err error) error { return relabel(op, s.Table, err) }

func relabel(op string, t *Table, err error) error {
	return errs.Amend(err, func(e *entity.Error) { e.Op, e.Table = op, t.name })
}
