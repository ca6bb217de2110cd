package patterns

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"reflect"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// pass opens the raw surface of package tables.
const pass = rows.Open

// storedRow is one row as the service holds it, with the library's own properties by their meaning.
type storedRow struct {
	*tables.RawRow
	incarnation string
	copies      string
	primary     string // row key of the entity's own row, on a copy or further row
	shared      bool   // belongs to several entities
	layout      string // of a row that is one of several: the layout's directory on the first, else furtherRow
	outside     outsideFacts
	carried     tables.Properties // properties of a later version of the library
	isCopy      bool
}

// rowOf reads the library's own properties of a row.
func rowOf(raw *tables.RawRow) *storedRow {
	r := &storedRow{RawRow: raw}
	for _, p := range raw.System {
		text, _ := p.Value.Text()
		switch p.Name {
		case rows.Incarnation:
			r.incarnation = text
		case rows.Copies:
			r.copies = text
		case rows.Shared:
			r.isCopy, r.shared = true, true
		case rows.Primary:
			r.isCopy, r.primary = true, text
		case rows.Layout:
			r.layout = text
		case rows.Partition:
			r.outside.is, r.outside.partition = true, text
		case rows.Version:
			r.outside.version = text
		case rows.Reserved:
			r.outside.reserved = text
		case rows.Term:
			seconds, _ := p.Value.Int()
			r.outside.term = time.Duration(seconds) * time.Second
		case rows.Claim:
			r.outside.isClaim, r.outside.claim = true, text
		default:
			r.carried = append(r.carried, p)
		}
	}
	return r
}

// with is the row with other properties.
func (r *storedRow) with(p tables.Properties) *storedRow {
	c, raw := *r, *r.RawRow
	raw.Properties = p
	c.RawRow = &raw
	return &c
}

// isNearCopy reports whether the row is of an entity of its own partition, and not the entity's own: a copy, or a further row.
func (r *storedRow) isNearCopy() bool { return r.isCopy && !r.shared && !r.outside.is }

// expired reports whether a row is a reservation that nobody can fill any more but an intent: what its change still sent has
// arrived. A later reading of the entity shows what became of the change.
func (r *storedRow) expired() bool { return lease.Expired(r.Timestamp, r.Answered, r.outside.term) }

func raw(t *tables.Table) tables.Raw { return tables.RawOf(pass, t) }

// fetch reads one row with the properties that known names, nil for all. Requests: 1.
func fetch(ctx context.Context, t *tables.Table, op string, key tables.Key, known map[string]int) (*storedRow, error) {
	row, err := raw(t).Get(ctx, op, key, known)
	if err != nil {
		return nil, err
	}
	return rowOf(row), nil
}

// readSystem reads one row for the library's own properties only. Requests: 1.
func readSystem(ctx context.Context, t *tables.Table, key tables.Key) (*storedRow, error) {
	row, err := raw(t).GetSystem(ctx, key)
	if err != nil {
		return nil, err
	}
	return rowOf(row), nil
}

// storedRows gives the rows of a sequence their meaning.
func storedRows(all iter.Seq2[*tables.RawRow, error]) iter.Seq2[*storedRow, error] {
	return func(yield func(*storedRow, error) bool) {
		for row, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(rowOf(row), nil) {
				return
			}
		}
	}
}

// newWriteID makes an ID that no other write has; anyWriteID is as long as every one.
func newWriteID() string { return rand.Text() }

const anyWriteID = "00000000000000000000000000"

func asError(err error) *tables.Error {
	e, _ := errors.AsType[*tables.Error](err)
	return e
}

// isNil reports whether v is nil, or a nil pointer, such as that of a field that nobody has set.
func isNil(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}
