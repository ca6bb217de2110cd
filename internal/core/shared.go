package core

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// SharedVerb is what happens to a row that belongs to no single entity.
type SharedVerb uint8

// The verbs. ReplaceShared and DeleteShared need the row's ETag.
const (
	InsertShared SharedVerb = iota
	ReplaceShared
	DeleteShared
)

// SharedWrite returns the write of a row that belongs to a pattern. It rejects a replacement or delete without an ETag, since that would
// be unconditional.
func SharedWrite(verb SharedVerb, row *entity.Entity, owner string) (tablerow.Row, error) {
	if row == nil {
		return tablerow.Row{}, errors.New("a RowOperation has no Row; the pattern must set it")
	}
	w := tablerow.Row{Key: row.Key, Properties: row.Properties, IfMatch: row.ETag}
	if verb != DeleteShared {
		w.Own.IsCopy, w.Own.IsShared, w.Own.Shared = true, true, owner
	}
	switch verb {
	case InsertShared:
		w.Verb, w.IfMatch = wire.VerbInsert, ""
		return w, nil
	case ReplaceShared:
		w.Verb = wire.VerbReplace
	case DeleteShared:
		w.Verb = wire.VerbDelete
	default:
		return w, fmt.Errorf("a RowOperation has verb %d; it must be InsertRow, ReplaceRow or DeleteRow", verb)
	}
	if w.IfMatch == "" {
		return w, fmt.Errorf("a RowOperation on row %q has no ETag; ReplaceRow and DeleteRow need the one with which the row was read", errs.Loggable(w.Key).Row)
	}
	return w, nil
}

// Beside returns the writes of rows of one owner; of returns what to do with one of them. It rejects rows without an owner, which would be
// read as entities.
func Beside[R any](owner string, all []R, of func(R) (SharedVerb, *entity.Entity)) ([]tablerow.Row, error) {
	if owner == "" && len(all) > 0 {
		return nil, errors.New("Beside.Owner is empty; set it to the name of the pattern that owns the rows")
	}
	writes := make([]tablerow.Row, len(all))
	for i := range all {
		verb, row := of(all[i])
		var err error
		if writes[i], err = SharedWrite(verb, row, owner); err != nil {
			return nil, err
		}
	}
	return writes, nil
}
