package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// MaxFurtherRows is the maximum number of an entity's rows beside the first: one transaction writes all of
// them.
const MaxFurtherRows = entity.MaxTransactionOperations - 1

// A further row has the first row's key, this mark, and its number in two digits from 01. compoundkey writes the
// mark's character only before a digit, and never twice, so no entity has such a key; keys with the mark are rejected.
const furtherMark = "\uFFFB\uFFFB"

// FurtherRow is the value of _tpLayout on a further row; on a first row it is the layout's directory.
const FurtherRow = "further"

func furtherRowKey(rowKey string, index int) string {
	return fmt.Sprintf("%s%s%02d", rowKey, furtherMark, index+1)
}

// spreading converts an entity's logical rows, its own and its copies, into physical rows.
type spreading struct {
	layout *driver.Implementation // nil for none
	stored entity.Properties
	read   bool            // whether the properties were read from stored rows
	whole  *driver.LaidOut // layout of all stored properties; the entity and the copies with all properties share it
}

// Spreading returns the spreading of an entity with these stored properties.
func (r *Engine) Spreading(stored entity.Properties) *spreading {
	return &spreading{layout: r.Layout, stored: stored}
}

// spreadAsRead returns the spreading of a row that was read: it produces the stored rows, with keys and
// versions, but without the properties of further rows. For an outside copy it returns a spreading without
// rows, since the copy does not describe the entity's rows.
func (r *Engine) spreadAsRead(row *tablerow.Row) (*spreading, error) {
	s := r.Spreading(row.Properties)
	s.read = true
	if r.Layout == nil || row.Own.Outside.Is {
		return s, nil
	}
	s.whole = &driver.LaidOut{First: row.Properties, Directory: row.Own.Layout}
	if row.Own.Layout == "" {
		return s, nil
	}
	versions, err := r.Layout.Layout.Versions(row.Own.Layout)
	if err != nil {
		return nil, PatternError(r.Layout, err, entity.ErrGarbled)
	}
	for _, version := range versions {
		s.whole.Further = append(s.whole.Further, driver.FurtherRow{Version: version})
	}
	return s, nil
}

// Spread appends the physical rows of one logical row. keep names the properties that the logical row stores;
// nil means all.
func (s *spreading) Spread(planned []tablerow.Row, pattern string, key entity.Key, keep []string) ([]tablerow.Row, error) {
	if err := rows.CheckKeys(key.Partition, key.Row); err != nil {
		e := errs.Invalid("", err)
		e.Pattern = pattern
		return nil, e
	}
	if s.layout == nil {
		return append(planned, tablerow.Row{Pattern: pattern, Key: key, Properties: s.stored.Only(keep)}), nil
	}
	laid, err := s.layOut(keep)
	if err == nil {
		planned, err = s.appendRows(planned, pattern, key, laid)
	}
	if err != nil {
		return nil, PatternError(s.layout, err, entity.ErrInvalid)
	}
	return planned, nil
}

func (s *spreading) layOut(keep []string) (*driver.LaidOut, error) {
	if keep != nil {
		laid, err := s.layout.Layout.Split(s.stored.Only(keep))
		for i := 0; err == nil && s.read && i < len(laid.Further); i++ {
			laid.Further[i].Version = "" // unknown, since the row that was read does not describe the rows of the copy
		}
		return laid, err
	}
	var err error
	if s.whole == nil {
		s.whole, err = s.layout.Layout.Split(s.stored)
	}
	return s.whole, err
}

// appendRows assigns keys to the rows of a layout.
func (s *spreading) appendRows(rows []tablerow.Row, pattern string, key entity.Key, laid *driver.LaidOut) ([]tablerow.Row, error) {
	if !s.read && strings.Contains(key.Row, furtherMark) {
		return nil, errors.New("the row key contains U+FFFB twice, which is reserved for further rows; build keys with compoundkey")
	}
	switch n := len(laid.Further); {
	case n > MaxFurtherRows:
		return nil, errs.Invalid("", &edm.SizeError{What: "an entity", Size: n + 1, Limit: entity.MaxTransactionOperations, Unit: "rows"})
	case (n > 0) != (laid.Directory != "") || laid.Directory == FurtherRow:
		return nil, errors.New("the layout's directory does not list the rows that are stored")
	}
	rows = append(rows, tablerow.Row{Pattern: pattern, Key: key, Properties: laid.First, Own: tablerow.Own{Layout: laid.Directory}})
	for i, further := range laid.Further {
		rows = append(rows, tablerow.Row{Pattern: pattern, Key: entity.Key{Partition: key.Partition, Row: furtherRowKey(key.Row, i)},
			Properties: further.Properties, Own: tablerow.Own{Layout: FurtherRow}, Version: further.Version})
	}
	return rows, nil
}

// unchanged reports whether old, the entity's stored rows, has a further row with the same key and version.
// Such a row need not be written: the entity's own row is always written under its ETag, so a concurrent change
// of the entity makes the transaction fail.
func unchanged(row *tablerow.Row, old []noted) bool {
	return row.Version != "" && slices.ContainsFunc(old, func(o noted) bool { return o.key == row.Key.Row && o.version == row.Version })
}

// joinRows adds the properties of an entity's further rows to row. If selected is not nil, it reads only the
// further rows that hold the selected properties.
func (r *Engine) joinRows(ctx context.Context, table *core.Table, row *tablerow.Row, selected []string) error {
	if row.Own.Layout == "" || row.Own.Outside.Is {
		return nil
	}
	if r.Layout == nil || row.Own.Layout == FurtherRow {
		return &entity.Error{Kind: entity.ErrWiring, Err: ErrNoLayout}
	}
	if selected != nil {
		selected = slices.DeleteFunc(slices.Clone(selected), func(name string) bool {
			return name == "PartitionKey" || name == "RowKey" || name == "Timestamp"
		})
	}
	wanted, err := r.Layout.Layout.Rows(row.Own.Layout, selected)
	if err != nil {
		return PatternError(r.Layout, err, entity.ErrGarbled)
	}
	further, err := furtherRows(ctx, table, row.Key, wanted)
	if err != nil {
		return err
	}
	if len(further) < len(wanted) {
		return PatternError(r.Layout, fmt.Errorf("%w: only %d of the entity's %d further rows exist; restore them from a backup", driver.ErrOutdated, len(further), len(wanted)), entity.ErrGarbled)
	}
	joined, err := r.Layout.Layout.Join(row.Own.Layout, slices.Clone(row.Properties), further)
	if err != nil {
		return PatternError(r.Layout, err, entity.ErrGarbled)
	}
	*row = *row.With(joined)
	return nil
}

// furtherRows reads some of an entity's further rows by index: consecutive rows by one query, others by point
// reads. It omits missing rows. Requests: 1 for each page of the query, or 1 for each row.
func furtherRows(ctx context.Context, t *core.Table, key entity.Key, wanted []int) (map[int]entity.Properties, error) {
	rows := make(map[int]entity.Properties, len(wanted))
	keys, byKey := make([]entity.Key, len(wanted)), make(map[string]int, len(wanted))
	for i, index := range wanted {
		keys[i] = entity.Key{Partition: key.Partition, Row: furtherRowKey(key.Row, index)}
		byKey[keys[i].Row] = index
	}
	found := t.GetMany(ctx, keys)
	if n := len(keys); n > 1 && wanted[n-1]-wanted[0] == n-1 {
		found = core.All[tablerow.Row](ctx, t.Query().Partition(key.Partition).Rows(compoundkey.Range(keys[0].Row, keys[n-1].Row+furtherMark)))
	}
	for row, err := range found {
		if err != nil {
			return nil, err
		}
		if index, ok := byKey[row.Key.Row]; ok {
			rows[index] = row.Properties
		}
	}
	return rows, nil
}
