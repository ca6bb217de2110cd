package relationships

import (
	"context"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Count stores the number of entities of each partition in a row of the partition, which is written in the entities'
// own transactions. It is a pattern: give it to NewRepository of the entities to count.
type Count[C any] struct{ tally tally[C] }

// NewCount returns a count. name is the row key of the row that stores the number: letters, digits, '-' and
// '.'. counts reports whether an entity is counted, nil for all; it must be pure, and use stored properties
// only.
func NewCount[C any](name string, counts func(*C) bool) *Count[C] {
	return &Count[C]{tally[C]{name: name, get: countIn, set: setCount, value: func(v *C) (int64, bool) { return 0, counts == nil || counts(v) }}}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Count[C]) Attach(host driver.Host[C]) (driver.Implementation[C], error) {
	return x.tally.implementation(host), checkRowKeys("the count", x.tally.name, host.Rows())
}

// Get returns the number of entities in a partition. Requests: 1, and 1 for each page of entities if the partition has
// no stored number yet.
func (x *Count[C]) Get(ctx context.Context, partition string) (int64, error) {
	k, err := x.tally.in("Get")
	if err != nil {
		return 0, err
	}
	a, err := k.read(ctx, partition, "")
	return a.Count, err
}

// Recount counts the entities of a partition again, and returns the number and the previously stored one (-1
// for none). Use it for partitions that programs without the count have written. The number is exact: if an
// entity is inserted or deleted meanwhile, Recount counts again, and returns tables.ErrConflict after ten
// attempts. Requests: 2, and 1 for each page of entities.
func (x *Count[C]) Recount(ctx context.Context, partition string) (n, was int64, err error) {
	k, err := x.tally.in("Recount")
	if err != nil {
		return 0, 0, err
	}
	a, before, err := k.recount(ctx, partition, "")
	return a.Count, countOrNone(before), err
}

// countOrNone returns the stored number, or -1 if there is none.
func countOrNone(a *Aggregate) int64 {
	if a == nil {
		return -1
	}
	return a.Count
}
