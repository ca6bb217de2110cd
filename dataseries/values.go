package dataseries

import (
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Slot holds the value of one slot of a series.
type Slot[V any] struct {
	Value   V
	Present bool // false for a gap, a slot that was never set; its Value is zero then
}

// Values holds all declared slots of one series.
type Values[V any] struct {
	Key   tables.Key
	Slots []Slot[V]
}

// Fill returns the values, with gap for each slot that was never set.
func (v *Values[V]) Fill(gap V) []V {
	filled := make([]V, len(v.Slots))
	for i, s := range v.Slots {
		if filled[i] = gap; s.Present {
			filled[i] = s.Value
		}
	}
	return filled
}

// cell wraps one value so that a codec can encode it.
type cell[V any] struct{ Value V }

const cellName = "Value"

// encode returns the property value of v, and refuses values that a table cannot store, even for a series in
// blobs.
func (s *Series[V]) encode(v V) (tables.Value, error) {
	p, err := s.codec.Encode(&cell[V]{v})
	if err != nil {
		return tables.Value{}, err
	}
	value := p.Get(cellName)
	if value.IsNull() {
		return value, tables.Invalidf("", "the value is nil or null, which the service does not store; give a value, since a slot cannot be emptied")
	}
	if err := edm.Value(value).Check(); err != nil {
		return value, tables.Invalid("", err)
	}
	return value, nil
}

func (s *Series[V]) decode(value tables.Value) (V, error) {
	var c cell[V]
	err := s.codec.Decode(tables.Properties{{Name: cellName, Value: value}}, &c)
	return c.Value, err
}

func (s *Series[V]) values(r record) (*Values[V], error) {
	all := &Values[V]{Key: r.key, Slots: make([]Slot[V], len(r.values))}
	for i, value := range r.values {
		if value.IsNull() {
			continue
		}
		v, err := s.decode(value)
		if err != nil {
			return nil, err
		}
		all.Slots[i] = Slot[V]{v, true}
	}
	return all, nil
}
