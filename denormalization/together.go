package denormalization

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// named is a holder of an intent. isNew says that the source has just begun to name it; such a holder is written even if it is correct.
type named struct {
	key   tables.Key
	isNew bool
}

// heldBy is a holder as it was read.
type heldBy[H any] struct {
	named
	holder *H
}

// readSource reads the current state of a source, nil if it does not exist.
type readSource[S any] func(ctx context.Context, key tables.Key) (*S, error)

// mostTogether limits the holders that are written in one transaction: each may need a second row for an
// index.
const mostTogether = tables.MaxTransactionOperations / 2

// mostHeld limits the holders in memory that wait for other holders of their partition.
const mostHeld = 500

// each reconciles the holders that an intent names, with the holders of each partition together.
func (f *fanOut[S, H]) each(ctx context.Context, all []named) {
	partitions := map[string][]named{}
	var order []string
	for _, n := range all {
		if partitions[n.key.Partition] == nil {
			order = append(order, n.key.Partition)
		}
		partitions[n.key.Partition] = append(partitions[n.key.Partition], n)
	}
	for _, partition := range order {
		group := partitions[partition]
		slices.SortFunc(group, func(a, b named) int { return compoundkey.Compare(a.key.Row, b.key.Row) }) // so that one query reads the keys that lie close together
		for part := range slices.Chunk(group, mostTogether) {
			if err := ctx.Err(); err != nil {
				f.failed(err)
				return
			}
			f.do(func() error { return f.group(ctx, part) })
		}
	}
}

// group reads holders of one partition together and reconciles them. Holders that do not exist are skipped.
func (f *fanOut[S, H]) group(ctx context.Context, group []named) error {
	if len(group) == 1 {
		return f.one(ctx, group[0])
	}
	keys := make([]tables.Key, len(group))
	for i, n := range group {
		keys[i] = n.key
	}
	found, err := f.holders.GetEach(ctx, keys)
	if err != nil {
		return f.oneByOne(ctx, group) // read the holders one by one, so that a row that cannot be read delays only itself
	}
	var holders []heldBy[H]
	for i, holder := range found {
		if holder != nil {
			holders = append(holders, heldBy[H]{group[i], holder})
		}
	}
	return f.together(ctx, holders)
}

// together reconciles holders of one partition, as they were read, in one transaction under the ETag of each.
// If the service refuses a holder, for example because it has changed since, that holder is read and written
// alone.
func (f *fanOut[S, H]) together(ctx context.Context, holders []heldBy[H]) error {
	var write []heldBy[H]
	var alone []named
	read := f.readOnce()
	for _, h := range holders {
		switch differs, err := f.give(ctx, read, h.named, h.holder); {
		case err != nil:
			alone = append(alone, h.named)
		case differs:
			write = append(write, h)
		}
	}
	refused, err := division.Divided[heldBy[H]]{
		Write:   func(holders []heldBy[H]) error { return f.commit(ctx, holders) },
		Refused: func(err error, _ []heldBy[H]) int { return changeOf(err) - 1 },
		Ends: func(err error) bool {
			return ctx.Err() != nil || changeOf(err) == 0 && !errors.Is(err, tables.ErrTooLarge)
		},
	}.Run(write)
	switch {
	case errors.Is(err, tables.ErrUnknownOutcome):
		return err // the transaction may still arrive, so a worker must carry out the intent again
	case err != nil:
		refused = write
	}
	for _, h := range refused {
		alone = append(alone, h.named)
	}
	return f.oneByOne(ctx, alone)
}

// commit writes holders in one transaction.
func (f *fanOut[S, H]) commit(ctx context.Context, holders []heldBy[H]) error {
	x := f.holders.Table().NewTransaction()
	for _, h := range holders {
		f.holders.Stage(ctx, driver.ChangeReplace, x, h.holder)
	}
	_, err := x.Commit(by(ctx, bySource, f.relation))
	return err
}

// changeOf returns the number, from 1, of the holder for which the service refused a transaction; 0 if it is
// unknown.
func changeOf(err error) int {
	var e *tables.Error
	if errors.As(err, &e) {
		return e.Change
	}
	return 0
}

// oneByOne reconciles holders one after the other. It continues after one that cannot be written.
func (f *fanOut[S, H]) oneByOne(ctx context.Context, group []named) (first error) {
	for _, n := range group {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.one(ctx, n); first == nil {
			first = err
		}
	}
	return first
}

// readOnce returns a function that reads each source once and then repeats the result. Use it only for holders that were all read
// before the first source, so that no holder has a copy of a newer version than the one that was read.
func (f *fanOut[S, H]) readOnce() readSource[S] {
	known := map[tables.Key]*S{}
	return func(ctx context.Context, key tables.Key) (*S, error) {
		if v, is := known[key]; is {
			return v, nil
		}
		v, err := f.read(ctx, key)
		if err == nil {
			known[key] = v
		}
		return v, err
	}
}
