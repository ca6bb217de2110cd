package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// moverOwner is the value of _tpShared in the rows of movers.
const moverOwner = "mover"

// The row keys of the mover's rows are U+FFFC, one of these words, and the name of the move.
const (
	markRow   = "movemark_"
	traceRow  = "movetrace_"
	recordRow = "moverecord_"
)

// moverRowVersion is the version of the layout of moverRow.
const moverRowVersion = 1

// moverRow is a row that a mover keeps during a move: a mark, a trace or a record (see the package comment). It is a stored
// format that must stay compatible.
type moverRow struct {
	tables.Meta
	PartitionKey string
	RowKey       string

	Version int32

	// These fields tell people who look at the row which mover moves which entity. The library itself does not
	// use them.
	Mover       string
	Table       string // of the source
	Partition   string // partition key of the entity; Row and Incarnation are also the entity's
	Row         string
	Incarnation string

	Source string `table:",omitempty"` // mark, record: the version of the entity from which the copy was made: its ETag or, with children, a hash
	Write  string `table:",omitempty"` // trace: the write ID of copy and mark; record: the write ID of the blob's content
	Base   string `table:",omitempty"` // record: the ETag of the blob that the content replaces
	Along  int32  `table:",omitempty"` // mark: the number of children whose copies were written with it
	Round  int32  `table:",omitempty"` // record: 1, and 1 more each time the record is replaced
}

// moveName names a move. All workers that move one incarnation of an entity for movers of one name compute the same name, so
// they use the same rows and recognize the same blob.
func moveName(mover, table string, key tables.Key, incarnation string, to []string) string {
	return rows.Hash(append([]string{mover, strings.ToLower(table), key.Partition, key.Row, incarnation}, to...)...)
}

// row makes one of the move's rows.
func (w *moving[T]) row(word, partition string) *moverRow {
	return &moverRow{PartitionKey: partition, RowKey: w.rowKey(word), Version: moverRowVersion, Mover: w.name,
		Table: w.source.Table().Name(), Partition: w.key.Partition, Row: w.key.Row, Incarnation: w.incarnation}
}

func (w *moving[T]) rowKey(word string) string { return "\uFFFC" + word + w.id }

// readRow reads one of the move's rows; nil if it does not exist.
func (w *moving[T]) readRow(ctx context.Context, table *tables.Table, partition, word string) (*moverRow, error) {
	typed, err := tables.RowsOf[moverRow](table)
	if err != nil {
		return nil, err
	}
	row, err := typed.Get(ctx, tables.Key{Partition: partition, Row: w.rowKey(word)})
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case row.Version != moverRowVersion:
		return nil, w.failure(tables.ErrGarbled, fmt.Errorf("the %s row of the move has version %d, and this build reads version %d; use a newer build", strings.TrimSuffix(word, "_"), row.Version, moverRowVersion))
	}
	return row, nil
}

// besideRow returns the Beside that writes or deletes one of the move's rows, in the transaction of an entity
// or alone.
func besideRow(verb driver.RowVerb, table *tables.Table, row *moverRow) (driver.Beside, error) {
	b := driver.Beside{Owner: moverOwner, Rows: []driver.RowOperation{{Verb: verb}}}
	if verb == driver.DeleteRow {
		b.Rows[0].Row = &tables.Entity{Key: tables.Key{Partition: row.PartitionKey, Row: row.RowKey}, ETag: row.ETag}
		return b, nil
	}
	typed, err := tables.RowsOf[moverRow](table)
	if err != nil {
		return b, err
	}
	fresh := *row
	fresh.Meta = tables.Meta{}
	if b.Rows[0].Row, err = typed.Entity(&fresh); err == nil {
		b.Rows[0].Row.ETag = row.ETag
	}
	return b, err
}

// writeRow writes or deletes one of the move's rows alone. done is false if another writer came first.
func writeRow(ctx context.Context, verb driver.RowVerb, table *tables.Table, row *moverRow) (done bool, err error) {
	b, err := besideRow(verb, table, row)
	if err != nil {
		return false, err
	}
	if done, err = unlessRefused(b.Write(ctx, table)); done {
		row.ETag = b.Rows[0].Row.ETag
	}
	return done, err
}

// unlessRefused returns false without an error if another writer came first, and otherwise err.
func unlessRefused(err error) (done bool, _ error) {
	switch tables.KindOf(err) {
	case tables.ErrConflict, tables.ErrExists, tables.ErrNotFound:
		return false, nil
	}
	return err == nil, err
}

// dropTrace deletes the trace of a move without a check of its ETag: the trace of a move is written only once.
func (w *moving[T]) dropTrace(ctx context.Context) error {
	trace := w.row(traceRow, w.key.Partition)
	trace.ETag = azcore.ETagAny
	_, err := writeRow(ctx, driver.DeleteRow, w.source.Table(), trace)
	return err
}
