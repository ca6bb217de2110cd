package driver

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// WriteOf returns the write of a row with its owner. It rejects a replacement or delete without an ETag, since that
// would be unconditional.
func WriteOf(_ rows.Pass, row *RowOperation, owner string) (tables.RawWrite, error) {
	if row.Row == nil {
		return tables.RawWrite{}, errors.New("a RowOperation has no Row; the pattern must set it")
	}
	w := tables.RawWrite{Key: row.Row.Key, Properties: row.Row.Properties, IfMatch: row.Row.ETag}
	if row.Verb != DeleteRow {
		w.System = tables.Properties{{Name: rows.Shared, Value: tables.String(owner)}}
	}
	switch row.Verb {
	case InsertRow:
		w.Verb, w.IfMatch = wire.VerbInsert, ""
		return w, nil
	case ReplaceRow:
		w.Verb = wire.VerbReplace
	case DeleteRow:
		w.Verb = wire.VerbDelete
	default:
		return w, fmt.Errorf("a RowOperation has verb %d; it must be InsertRow, ReplaceRow or DeleteRow", row.Verb)
	}
	if w.IfMatch == "" {
		return w, fmt.Errorf("a RowOperation on row %q has no ETag; ReplaceRow and DeleteRow need the one with which the row was read", tables.Loggable(pass, w.Key).Row)
	}
	return w, nil
}
