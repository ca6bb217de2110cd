package relationships

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Summary stores number, sum, minimum and maximum of a value of the entities of each partition, or of each
// group in a partition, in a row of the partition. The guide calls such a row a summary entity. The row is
// written in the entities' own transactions. It is a pattern: give it to NewRepository of the entities.
type Summary[C any] struct {
	tally tally
}

// SummaryOptions are the options of NewSummary; nil is the same as the zero value.
type SummaryOptions[C any] struct {
	// Group returns an entity's group in its partition, such as the order to which an order line belongs
	// (default: one group, ""). Each group has a row of its own, whose key has at most 512 UTF-16 units. It
	// must be pure, and use stored properties only.
	Group func(*C) string
	// Rows returns the range of the row keys of a group's entities, if there is one, such as
	// compoundkey.Starting("line", compoundkey.String(order)). To add up a group, the library then reads only
	// this range; by default it reads the whole partition.
	Rows func(group string) compoundkey.Span
}

// NewSummary returns a summary. name is the beginning of the row keys of its rows: letters, digits, '-' and
// '.'. value returns the number to add up, such as an amount in cents, or false for an entity that does not
// count. value must be pure, and use stored properties only. Values are integers, since sums of
// floating-point numbers depend on their order. A change that makes a sum exceed 64 bits returns
// tables.ErrTooLarge.
func NewSummary[C any](name string, value func(*C) (int64, bool), options *SummaryOptions[C]) *Summary[C] {
	x := &Summary[C]{tally{name: name, get: aggregateIn, set: setAggregate}}
	if value != nil {
		x.tally.value = func(v any) (int64, bool) { return value(v.(*C)) }
	}
	if options != nil {
		x.tally.span = options.Rows
		if options.Group != nil {
			x.tally.group = func(v any) string { return options.Group(v.(*C)) }
		}
	}
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Summary[C]) Attach(host driver.Host, _ *C) (driver.Implementation, error) {
	implementation := x.tally.implementation(host)
	switch {
	case x.tally.value == nil:
		return implementation, errors.New("the function that returns the value is nil; give one")
	case x.tally.span != nil && x.tally.group == nil:
		return implementation, errors.New("SummaryOptions.Rows is set without Group; set both")
	}
	return implementation, checkRowKeys("the summary", x.tally.name, host.Rows())
}

// Get returns the aggregate of a group of a partition; without SummaryOptions.Group, the group is "". Requests: 1, and 1 for
// each page of entities if the group has no stored row yet.
func (x *Summary[C]) Get(ctx context.Context, partition, group string) (Aggregate, error) {
	k, err := x.in("Get", group)
	if err != nil {
		return Aggregate{}, err
	}
	return k.read(ctx, partition, group)
}

// in returns the tally with its repository, or an error if the summary cannot have the group.
func (x *Summary[C]) in(op, group string) (*keeper, error) {
	k, err := x.tally.in(op)
	if err == nil && group != "" && x.tally.group == nil {
		err = errs.InvalidIn(op, k.host.Table().Name(), "the summary %q has no SummaryOptions.Group, and the group is %q; give \"\"", x.tally.name, group)
	}
	return k, err
}

// GroupAggregate is a group with its aggregate.
type GroupAggregate struct {
	Group string
	Aggregate
}

// All yields the stored groups of a partition in their order. For a group whose last entity has left, it yields
// an aggregate with Count 0. It does not yield a group without a stored row: no entity of such a group has
// changed since the summary was attached. An error is yielded once, as the last element: tables.ErrGarbled for
// a row that other programs have written, which Recount corrects. Requests: 1 for each page of at most 1,000.
func (x *Summary[C]) All(ctx context.Context, partition string) iter.Seq2[GroupAggregate, error] {
	k, err := x.in("All", "")
	if err == nil && x.tally.group == nil {
		err = errs.InvalidIn("All", k.host.Table().Name(), "the summary %q has no SummaryOptions.Group; use Get", x.tally.name)
	}
	return func(yield func(GroupAggregate, error) bool) {
		if err != nil {
			yield(GroupAggregate{}, err)
			return
		}
		for row, err := range k.host.Table().Entities().Query().Partition(partition).Rows(compoundkey.Starting(x.tally.name)).All(ctx) {
			var next GroupAggregate
			if err == nil {
				next, err = x.groupIn(k.host.Table(), row)
			}
			if !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// groupIn returns the group of a row, and its aggregate.
func (x *Summary[C]) groupIn(table *tables.Table, row *tables.Entity) (g GroupAggregate, err error) {
	garbled := func(err error) (GroupAggregate, error) {
		return GroupAggregate{}, &tables.Error{Op: "All", Table: table.Name(), Key: row.Key, Pattern: x.tally.name, Kind: tables.ErrGarbled, Err: err}
	}
	if err := compoundkey.Parse(row.Key.Row, x.tally.name, compoundkey.ToString(&g.Group)); err != nil {
		return garbled(fmt.Errorf("the row key is not one of the summary: %w; delete the row", err))
	}
	var ok bool
	if g.Aggregate, ok = aggregateIn(row); !ok {
		return garbled(errors.New("property Count, Sum, Min or Max is missing or wrong; run Recount of the group"))
	}
	return g, nil
}

// Recount adds up the entities of a group again, and returns the aggregate and the previously stored aggregate,
// nil if there was none. Use it for groups whose entities programs without the summary have written. The result
// is exact: if the group's row changes meanwhile, Recount adds up again, and returns tables.ErrConflict after
// ten attempts. Requests for each attempt: 2, and 1 for each page of entities.
func (x *Summary[C]) Recount(ctx context.Context, partition, group string) (is Aggregate, was *Aggregate, err error) {
	k, err := x.in("Recount", group)
	if err != nil {
		return Aggregate{}, nil, err
	}
	return k.recount(ctx, partition, group, true)
}

// Count stores the number of entities of each partition in a row of the partition, which is written in the entities'
// own transactions. It is a pattern: give it to NewRepository of the entities to count.
type Count[C any] struct{ tally tally }

// NewCount returns a count. name is the row key of the row that stores the number: letters, digits, '-' and
// '.'. counts reports whether an entity is counted, nil for all; it must be pure, and use stored properties
// only.
func NewCount[C any](name string, counts func(*C) bool) *Count[C] {
	return &Count[C]{tally{name: name, get: countIn, set: setCount, value: func(v any) (int64, bool) { return 0, counts == nil || counts(v.(*C)) }}}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Count[C]) Attach(host driver.Host, _ *C) (driver.Implementation, error) {
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
// attempts. Requests for each attempt: 2, and 1 for each page of entities.
func (x *Count[C]) Recount(ctx context.Context, partition string) (n, was int64, err error) {
	k, err := x.tally.in("Recount")
	if err != nil {
		return 0, 0, err
	}
	a, before, err := k.recount(ctx, partition, "", true)
	return a.Count, countOrNone(before), err
}

// countOrNone returns the stored number, or -1 if there is none.
func countOrNone(a *Aggregate) int64 {
	if a == nil {
		return -1
	}
	return a.Count
}
