package patterns

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// source is where values of T are read from: a table's rows as they are, a repository's entities, an index's copies.
// Every read of every pattern goes through one, so that they decode alike.
type source[T any] struct {
	table  *Table
	codec  *Codec[T]
	known  map[string]int // properties to keep while reading, nil for all
	span   compoundkey.Span
	system []string // properties that load needs beyond the caller's selection
	guards []string // further ones, by which writes of what was read are refused; no part of the continuation token
	skips  bool     // load leaves out some of the rows in span
	kept   []string // the properties that the rows hold, nil for all

	filterable func(property string) error // refuses a condition on what rows do not hold as it is, nil for none such

	// load makes the value of a row, or nil for a row that is none of this source's. selected are the properties that the
	// caller asked for, nil for all.
	load func(ctx context.Context, row *storedRow, selected []string) (*T, error)
}

// get makes the point read of one row. A row that is none of the source's is ErrNotFound.
func (s *source[T]) get(ctx context.Context, op string, key Key) (*T, error) {
	row, err := s.table.fetch(ctx, op, key, s.known)
	if err != nil {
		return nil, err
	}
	v, err := s.load(ctx, row, nil)
	if err != nil {
		return nil, s.decodeError(op, row.key, err)
	}
	if v == nil {
		return nil, &Error{Op: op, Table: s.table.name, Key: key, Kind: ErrNotFound}
	}
	return v, nil
}

// rawRows is the source of a table's rows as they are stored.
func (t *Table) rawRows() *source[storedRow] {
	return &source[storedRow]{table: t, codec: &Codec[storedRow]{}, load: func(_ context.Context, row *storedRow, _ []string) (*storedRow, error) {
		kept := *row
		kept.properties = slices.Clone(row.properties)
		return &kept, nil
	}}
}

// decodeError says which stored row could not be turned into a T.
func (s *source[T]) decodeError(op string, key Key, err error) error {
	if e := asError(err); e != nil && e.Table == "" {
		located := *e
		located.Op, located.Table, located.Key = op, s.table.name, key
		return &located
	}
	return err
}
