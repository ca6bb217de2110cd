package dataseries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Options are the options of a series; nil is the same as the zero value. All but MaxAttempts determine how the
// series is stored, and must not change once values are stored, except as SlotsPerRow says.
type Options struct {
	// Digits is the width of a slot's number in its property name (default: as many as the last slot needs). Set it
	// if the series may get more slots later.
	Digits int
	// SlotsPerRow distributes the slots over rows: slots 0 to SlotsPerRow-1 are in the first, and so on. 0
	// means one row, with at most MaxSlotsPerRow slots. If a series in one row later gets more slots, set
	// SlotsPerRow to at least the old number of slots; the first row then stays as it is.
	SlotsPerRow int
	// Container stores all slots of a series in a blob of this container. If you make the client with
	// blobstorage.Open, Store.Create creates the container. You can also use blobstorage.Container of any account,
	// and create the container yourself. The name of a blob contains the name of the table but not of its
	// account, so tables of one name in different accounts need different containers.
	Container *container.Client
	// MaxAttempts limits the attempts of a change that reads before it writes; a conflict repeats it (default 20).
	MaxAttempts int
}

const defaultAttempts = 20

// Series are the series of one kind in a table: a fixed number of slots, each of which holds a V or nothing. A series
// is identified by a tables.Key, and exists if one of its slots does. A Series is immutable and safe for concurrent
// use.
type Series[V any] struct {
	table  *tables.Table
	layout layout
	codec  *tables.Codec[cell[V]]
	shelf  shelf
}

// New declares series of the table whose slots are the properties prefix00, prefix01 and so on, with as many
// digits as the last slot needs. There are 1 to MaxSlots slots, and without SlotsPerRow and Container at most
// MaxSlotsPerRow. V is a type that is stored as one property (see tables.Codec). It returns tables.ErrWiring
// for inconsistent arguments. Requests: 0.
//
// Guide: "Data series pattern".
func New[V any](table *tables.Table, prefix string, slots int, options *Options) (*Series[V], error) {
	if options == nil {
		options = &Options{}
	}
	refuse := func(err error) (*Series[V], error) {
		return nil, &tables.Error{Op: "New", Kind: tables.ErrWiring, Err: err}
	}
	if table == nil {
		return refuse(errors.New("the table is nil; make it with Account.Table"))
	}
	l, err := newLayout(prefix, slots, options)
	if err != nil {
		return refuse(err)
	}
	if options.MaxAttempts < 0 {
		return refuse(fmt.Errorf("Options.MaxAttempts is %d; it must be 0 (meaning 20) or more", options.MaxAttempts))
	}
	codec, err := tables.NewCodec[cell[V]]()
	if err != nil {
		return refuse(err)
	}
	s := &Series[V]{table: table, layout: l, codec: codec}
	attempts := cmp.Or(options.MaxAttempts, defaultAttempts)
	if options.Container == nil {
		s.shelf = &rowShelf{layout: l, table: table, rows: table.Entities(), attempts: attempts}
	} else {
		s.shelf = &blobShelf{layout: l, blobs: blobs{options.Container}, table: table.Name(), attempts: attempts}
	}
	return s, nil
}

// shelf stores series in rows or blobs. Its callers check keys, slots and values.
type shelf interface {
	set(ctx context.Context, key tables.Key, values []slotValue) error
	read(ctx context.Context, key tables.Key) ([]tables.Value, error)
	readMany(ctx context.Context, partition string, of compoundkey.Span) iter.Seq2[record, error]
	remove(ctx context.Context, key tables.Key) error
	add(ctx context.Context, key tables.Key, slot int, sum sum) error
	addOnce(ctx context.Context, m *mark, sum sum) (counted bool, err error)
	sweep(ctx context.Context, s *sweeping) error
}

// slotValue is a value to store in a slot.
type slotValue struct {
	slot  int
	value tables.Value
}

// record is the key of a series and its stored values, which are null for gaps.
type record struct {
	key    tables.Key
	values []tables.Value
}

// Table returns the table of the series.
func (s *Series[V]) Table() *tables.Table { return s.table }

// Slots returns the number of slots.
func (s *Series[V]) Slots() int { return s.layout.slots }

// Set stores a value in one slot, without a check of its old value: of two concurrent writers the later wins, and
// neither gets an error. It creates a missing series. tables.ErrUnknownOutcome means that the slot may have the value
// now or later; you can repeat the Set. A request whose response was lost may arrive late, and overwrite a value that
// was set since. A slot below 0, or of Slots() or more, causes tables.ErrInvalid. Requests: 1; in a blob 2, and 2 for
// each conflict; for a Counter 1 more for each row.
func (s *Series[V]) Set(ctx context.Context, key tables.Key, slot int, v V) error {
	return s.set(ctx, "Set", key, map[int]V{slot: v})
}

// SetMany sets several slots of one series like Set: all of them or none. Requests: those of Set.
func (s *Series[V]) SetMany(ctx context.Context, key tables.Key, values map[int]V) error {
	return s.set(ctx, "SetMany", key, values)
}

func (s *Series[V]) set(ctx context.Context, op string, key tables.Key, values map[int]V) error {
	if len(values) == 0 {
		return s.failed(op, key, errs.Invalidf("", "the map of values is empty; give at least one"))
	}
	encoded := make([]slotValue, 0, len(values))
	for _, slot := range slices.Sorted(maps.Keys(values)) {
		if err := s.check(key, slot); err != nil {
			return s.failed(op, key, err)
		}
		v, err := s.encode(values[slot])
		if err != nil {
			return s.failed(op, key, err)
		}
		encoded = append(encoded, slotValue{slot, v})
	}
	return s.failed(op, key, s.shelf.set(ctx, key, encoded))
}

// Delete removes a series with all its slots. In rows, its markers stay until SweepMarkers removes them; in a blob, they
// are removed with it. Delete returns tables.ErrNotFound if the series does not exist. In one row or a blob it does
// not check whether a concurrent writer has changed the series. Values that a concurrent writer sets may remain.
// Requests: 1; with several rows 2, and 2 for each conflict.
func (s *Series[V]) Delete(ctx context.Context, key tables.Key) error {
	if err := s.checkKey(key); err != nil {
		return s.failed("Delete", key, err)
	}
	return s.failed("Delete", key, s.shelf.remove(ctx, key))
}

func (s *Series[V]) check(key tables.Key, slot int) error {
	if slot < 0 || slot >= s.layout.slots {
		return errs.Invalidf("", "slot %d does not exist: the series has %d slots, counted from 0", slot, s.layout.slots)
	}
	return s.checkKey(key)
}

func (s *Series[V]) checkKey(key tables.Key) error {
	if err := checkKeys(key); err != nil {
		return err
	}
	if err := s.layout.check(key); err != nil {
		return errs.Invalid("", err)
	}
	return nil
}

// failed sets operation, table and key of the library's own errors, but not an illegal key, which may be a whole document.
func (s *Series[V]) failed(op string, key tables.Key, err error) error {
	return errs.Amend(err, func(e *tables.Error) {
		e.Op, e.Table = op, cmp.Or(e.Table, s.table.Name())
		if e.Key == (tables.Key{}) && checkKeys(key) == nil {
			e.Key = key
		}
	})
}

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

// cell has one field, since a codec encodes structs only.
type cell[V any] struct{ Value V }

const cellName = "Value"

// encode returns v as a property's value. It refuses what a table cannot store, also for series in blobs.
func (s *Series[V]) encode(v V) (tables.Value, error) {
	p, err := s.codec.Encode(&cell[V]{v})
	if err != nil {
		return tables.Value{}, err
	}
	value := p.Get(cellName)
	if value.IsNull() {
		return value, errs.Invalidf("", "the value is nil or null, which the service does not store; give a value, since a slot cannot be emptied")
	}
	if err := edm.Value(value).Check(); err != nil {
		return value, errs.Invalid("", err)
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

// Read returns all slots of a series. For a series that does not exist, all slots are gaps. A series of
// several rows is read row by row, so its rows may have been read at different times. Requests: 1.
func (s *Series[V]) Read(ctx context.Context, key tables.Key) (*Values[V], error) {
	const op = "Read"
	if err := s.checkKey(key); err != nil {
		return nil, s.failed(op, key, err)
	}
	stored, err := s.shelf.read(ctx, key)
	if err != nil {
		return nil, s.failed(op, key, err)
	}
	v, err := s.values(record{key, stored})
	return v, s.failed(op, key, err)
}

// ReadMany yields the series of a partition whose row keys are in the span, in the order of their keys
// (series in blobs: in the order of the blob names). It skips other rows of the partition. Requests: 1 for
// each page of at most 1,000 rows; in blobs, 1 for each 5,000, and 1 for each series.
func (s *Series[V]) ReadMany(ctx context.Context, partition string, of compoundkey.Span) iter.Seq2[*Values[V], error] {
	const op = "ReadMany"
	return func(yield func(*Values[V], error) bool) {
		key := tables.Key{Partition: partition}
		err := of.Err()
		if err != nil {
			err = errs.Invalid("", err)
		} else {
			err = checkKeys(key)
		}
		if err != nil {
			yield(nil, s.failed(op, key, err))
			return
		}
		for r, err := range s.shelf.readMany(ctx, partition, of) {
			var v *Values[V]
			if err == nil {
				v, err = s.values(r)
			}
			if err != nil {
				yield(nil, s.failed(op, r.key, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
