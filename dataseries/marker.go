package dataseries

import (
	"crypto/rand"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// markerPrefix begins the row keys of markers. compoundkey writes U+FFFC only after a '.', so markers
	// sort after all keys that compoundkey makes, and never between the rows of a series.
	markerPrefix = "\uFFFConce_"
	behindPrefix = "\uFFFConce`" // the character after '_'

	markerSeries    = "Series"    // row key of the series
	markerSlot      = "Slot"      // the property to which the operation was added
	markerOperation = "Operation" // the operation's ID
	markerDelta     = "Delta"
	markerCall      = "Call" // ID of the call that counted

	longestOperation = 512 // UTF-16 units
)

// mark records that an operation was counted.
type mark struct {
	key       tables.Key
	slot      int
	property  string
	operation string
	delta     tables.Value
	call      string
	hash      string
}

func newMark(l *layout, key tables.Key, slot int, delta tables.Value, operation string) (*mark, error) {
	if operation == "" {
		return nil, tables.Invalidf("", "the operation's ID is empty; give each operation its own ID")
	}
	if n := edm.Units(operation); n > longestOperation {
		return nil, tables.Invalid("", &edm.SizeError{What: "the name of an operation", Size: n, Limit: longestOperation, Unit: "UTF-16 units"})
	}
	if err := edm.String(operation).Check(); err != nil {
		return nil, tables.Invalid("", err)
	}
	return &mark{key: key, slot: slot, property: l.property(slot), operation: operation, delta: delta, call: rand.Text(),
		hash: rows.Hash(l.prefix, key.Row, operation)}, nil
}

// row returns the key of the marker.
func (m *mark) row() tables.Key {
	return tables.Key{Partition: m.key.Partition, Row: markerPrefix + m.hash}
}

// stage adds the marker and the slot's row to a transaction. The marker comes first: if the operation was
// counted before, the error of the transaction then names the marker.
func (m *mark) stage(x *tables.Transaction, row *tables.Entity) {
	x.Insert(&tables.Entity{Key: m.row(), Properties: tables.Properties{
		{Name: markerSeries, Value: tables.String(m.key.Row)},
		{Name: markerSlot, Value: tables.String(m.property)},
		{Name: markerOperation, Value: tables.String(m.operation)},
		{Name: markerDelta, Value: m.delta},
		{Name: markerCall, Value: tables.String(m.call)},
	}})
	if row.ETag == "" {
		x.Insert(row)
	} else {
		x.Merge(row)
	}
}

// same returns an error if the stored mark belongs to another addition with the same operation ID.
func (m *mark) same(p tables.Properties) error {
	if p.Get(markerSlot) != tables.String(m.property) || p.Get(markerDelta) != m.delta {
		return &tables.Error{Key: m.key, Kind: tables.ErrExists, Err: ErrOtherAddition}
	}
	return nil
}
