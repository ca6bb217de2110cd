package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// pass opens the raw surface of package tables.
const pass = rows.Open

// StoredRow is one stored row, with the library's own properties as fields.
type StoredRow struct {
	*tables.RawRow
	Incarnation string
	Copies      string
	Primary     string // row key of the entity's own row, on a copy or further row
	Shared      bool   // belongs to several entities
	Layout      string // if an entity has several rows: the layout's directory on the first row, FurtherRow on the others
	Outside     outsideFacts
	carried     tables.Properties // properties that only a later version of the library knows
	IsCopy      bool
}

// RowOf parses the library's own properties of a row.
func RowOf(raw *tables.RawRow) *StoredRow {
	r := &StoredRow{RawRow: raw}
	for _, p := range raw.System {
		text, _ := p.Value.Text()
		switch p.Name {
		case rows.Incarnation:
			r.Incarnation = text
		case rows.Copies:
			r.Copies = text
		case rows.Shared:
			r.IsCopy, r.Shared = true, true
		case rows.Primary:
			r.IsCopy, r.Primary = true, text
		case rows.Layout:
			r.Layout = text
		case rows.Partition:
			r.Outside.Is, r.Outside.Partition = true, text
		case rows.Version:
			r.Outside.Version = text
		case rows.Reserved:
			r.Outside.Reserved = text
		case rows.Term:
			seconds, _ := p.Value.Int()
			r.Outside.Term = time.Duration(seconds) * time.Second
		case rows.Claim:
			r.Outside.IsClaim, r.Outside.Claim = true, text
		default:
			r.carried = append(r.carried, p)
		}
	}
	return r
}

// With returns the row with other properties.
func (r *StoredRow) With(p tables.Properties) *StoredRow {
	c, raw := *r, *r.RawRow
	raw.Properties = p
	c.RawRow = &raw
	return &c
}

// isNearCopy reports whether the row belongs to an entity of its own partition but is not the entity's own row: it is
// a copy, or a further row.
func (r *StoredRow) isNearCopy() bool { return r.IsCopy && !r.Shared && !r.Outside.Is }

// Expired reports whether a row is a reservation whose term and grace period are over. Then every request of
// its change has arrived, so a later read of the entity shows the outcome of the change.
func (r *StoredRow) Expired() bool { return lease.Expired(r.Timestamp, r.Answered, r.Outside.Term) }

// Raw opens the raw surface of a table.
func Raw(t *tables.Table) tables.Raw { return tables.RawOf(pass, t) }

// Fetch reads one row with the properties that known names, nil for all. Requests: 1.
func Fetch(ctx context.Context, t *tables.Table, op string, key tables.Key, known map[string]int) (*StoredRow, error) {
	row, err := Raw(t).Get(ctx, op, key, known)
	if err != nil {
		return nil, err
	}
	return RowOf(row), nil
}

// readSystem reads one row for the library's own properties only. Requests: 1.
func readSystem(ctx context.Context, t *tables.Table, key tables.Key) (*StoredRow, error) {
	return Fetch(ctx, t, "Get", key, map[string]int{})
}

// StoredRows converts the rows of a sequence to StoredRow.
func StoredRows(all iter.Seq2[*tables.RawRow, error]) iter.Seq2[*StoredRow, error] {
	return func(yield func(*StoredRow, error) bool) {
		for row, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(RowOf(row), nil) {
				return
			}
		}
	}
}

// AsError returns the first error of the library in err's chain, nil for none.
func AsError(err error) *tables.Error {
	e, _ := errors.AsType[*tables.Error](err)
	return e
}
