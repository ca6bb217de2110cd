package denormalization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fanOut reconciles the holders of one source concurrently.
type fanOut struct {
	*linked
	*crew
	key    tables.Key
	source any                 // the source as it was read, nil if it did not exist
	keys   map[tables.Key]bool // keys of the holders that the source names

	mu    sync.Mutex
	other map[tables.Key]namedBy // by key of another source: the holders that it named when it was last read
}

// namedBy holds the keys of the holders that one version of a source names.
type namedBy struct {
	etag azcore.ETag
	keys map[tables.Key]bool
}

func (r *linked) newFanOut(key tables.Key, source any) (*fanOut, error) {
	keys, err := r.holdersOf(source)
	if err != nil {
		return nil, err
	}
	return &fanOut{linked: r, crew: newCrew(r.options.Concurrency), key: key, source: source, keys: setOf(keys), other: map[tables.Key]namedBy{}}, nil
}

func setOf(keys []tables.Key) map[tables.Key]bool {
	set := make(map[tables.Key]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// names reports whether the source names a holder.
func (f *fanOut) names(holder tables.Key) bool {
	if f.link.Find != nil {
		return f.linked.names(f.source, holder)
	}
	return f.keys[holder]
}

// all reconciles all holders that Find yields. Correct holders need no further request, so a repeated fan-out
// soon reaches the holders that an interrupted one has not written.
func (f *fanOut) all(ctx context.Context) error {
	if f.link.Find == nil {
		return errors.New("the intent is for all holders that Link.Find yields, and this program's link has no Find; set it as in the program that wrote the source")
	}
	found := 0
	together, held := map[string][]heldBy{}, 0 // holders to write, by partition
	write := func(partition string) {
		batch := together[partition]
		delete(together, partition)
		held -= len(batch)
		f.do(func() error { return f.together(ctx, batch) })
	}
	for holder, err := range f.link.Find(f.holders.Query(), f.key).All(ctx) {
		if err != nil {
			return err
		}
		if found++; found > f.options.Limit {
			return f.tooMany(f.key)
		}
		key, correct, err := f.correct(holder)
		if err != nil {
			return err
		}
		switch {
		case correct:
		case f.holders.MetaOf(holder).ReadRow() != key.Row: // holder is a copy in an index: read the holder itself
			f.do(func() error { return f.one(ctx, named{key: key}) })
		default:
			together[key.Partition] = append(together[key.Partition], heldBy{named{key: key}, holder})
			if held++; len(together[key.Partition]) == mostTogether {
				write(key.Partition)
			}
			for partition := range together {
				if held < mostHeld {
					break
				}
				write(partition)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for partition := range together {
		write(partition)
	}
	return nil
}

// correct returns the key of a holder that Find has yielded, and whether the holder is already correct. If the
// holder was read from an index, it may be outdated, so the result is false.
func (f *fanOut) correct(holder any) (tables.Key, bool, error) {
	meta := f.holders.MetaOf(holder)
	key := meta.Key()
	if key == (tables.Key{}) {
		return key, false, errors.New("Link.Find yielded a holder without a key; it must return a query of the given holders")
	}
	if meta.ReadRow() != key.Row {
		return key, false, nil
	}
	right, err := f.isAsAsked(holder, f.key, f.source, f.names(key))
	return key, right, err
}

// one reads one holder, reconciles it with f.source, and writes it under its ETag.
func (f *fanOut) one(ctx context.Context, n named) error {
	_, err := f.holders.Update(by(ctx, bySource, f.relation), n.key, func(holder any) error {
		return unlessChanged(f.give(ctx, f.read, n, holder))
	})
	if err = passed(err); err != nil {
		return f.holderError(n.key, err)
	}
	return nil
}

// give changes a holder in memory as the source requires, and reports whether to write it.
func (f *fanOut) give(ctx context.Context, read readSource, n named, holder any) (write bool, err error) {
	names := f.names(n.key)
	if other, is := f.link.SourceOf(holder); f.link.Find == nil && names && is && other != f.key {
		if takes, err := f.takes(ctx, read, other, n.key); err != nil || !takes {
			return false, err
		}
	}
	changed, err := f.bring(holder, f.key, f.source, names)
	return changed || err == nil && n.isNew && f.holds(holder, f.key), err
}

// takes reports whether the source takes over a holder that has the copy of another source. It does if the
// other source no longer names the holder, or was written earlier. So a delayed message cannot give a holder
// back to an earlier source.
func (f *fanOut) takes(ctx context.Context, read readSource, other, holder tables.Key) (bool, error) {
	if checkKey(other) != nil {
		return true, nil
	}
	theirs, err := f.naming(ctx, read, other, holder)
	if err != nil || theirs == nil {
		return err == nil, err
	}
	ours, err := f.naming(ctx, read, f.key, holder)
	if err != nil || ours == nil {
		return false, err // the source has changed since the fan-out read it, so the intent's holder runs the fan-out again
	}
	return follows(ours, theirs), nil
}

// follows reports whether source a counts as written after source b. Rows of one transaction, or of one moment,
// can have the same Timestamp. Then the greater key wins, so that every order of messages ends with the same
// copy.
func follows(a, b *tables.Meta) bool {
	x, y := a.Key(), b.Key()
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), compoundkey.Compare(x.Partition, y.Partition), compoundkey.Compare(x.Row, y.Row)) > 0
}

// naming reads a source, and returns its Meta, or nil if the source does not exist or does not name the holder.
func (f *fanOut) naming(ctx context.Context, read readSource, source, holder tables.Key) (*tables.Meta, error) {
	v, err := read(ctx, source)
	if v == nil || err != nil {
		return nil, err
	}
	meta := f.sources.MetaOf(v)
	if !f.namedIn(v, meta)[holder] {
		return nil, nil
	}
	return meta, nil
}

// namedIn returns the holders that a source names. It computes them once for each version of the source, since thousands of
// holders may have the copy of one other source.
func (f *fanOut) namedIn(source any, meta *tables.Meta) map[tables.Key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.other[meta.Key()]
	if known.keys == nil || known.etag != meta.ETag {
		keys, err := f.holdersOf(source)
		if err != nil {
			keys = nil // a source for which holdersOf fails has no holders
		}
		known = namedBy{meta.ETag, setOf(keys)}
		f.other[meta.Key()] = known
	}
	return known.keys
}

// holderError adds the holder's key to an error, since an error of an intent names only the source.
func (r *linked) holderError(key tables.Key, err error) error {
	return r.errorAt("holder", key, r.holders.Table(), err)
}

// errorAt adds to an error the key and the table of the entity at the other end of the link.
func (r *linked) errorAt(end string, key tables.Key, table *tables.Table, err error) error {
	where := fmt.Errorf("the %s (%q, %q) in %s: %w", end, key.Partition, key.Row, table.Name(), err)
	var e *tables.Error
	if !errors.As(err, &e) {
		return where
	}
	return &tables.Error{Pattern: r.name, Code: e.Code, Kind: e.Kind, Err: where}
}

// crew runs functions concurrently, up to a limit, and keeps the first error. If a function panics, wait
// repeats the panic in the goroutine that calls wait.
type crew struct {
	running  errgroup.Group
	mu       sync.Mutex // protects panicked
	panicked any
}

func newCrew(n int) *crew {
	c := &crew{}
	c.running.SetLimit(n)
	return c
}

// do starts a function in a goroutine as soon as fewer than the limit run.
func (c *crew) do(work func() error) {
	c.running.Go(func() error {
		defer func() {
			if r := recover(); r != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
		}()
		return work()
	})
}

// failed makes wait return err, unless a function has failed before.
func (c *crew) failed(err error) { c.do(func() error { return err }) }

// wait waits for all functions and returns the first error.
func (c *crew) wait() error {
	err := c.running.Wait()
	if c.panicked != nil {
		panic(c.panicked)
	}
	return err
}

// named is the key of a holder. isNew says that the source has just begun to name the holder (see newlyNamed).
type named struct {
	key   tables.Key
	isNew bool
}

// heldBy is a holder as it was read.
type heldBy struct {
	named
	holder any
}

// readSource reads a source, or returns nil if it does not exist.
type readSource func(ctx context.Context, key tables.Key) (any, error)

// mostTogether limits the holders that one transaction writes. The transaction has room for a second row of
// each, for an index.
const mostTogether = tables.MaxTransactionOperations / 2

// mostHeld limits the holders that wait in memory until more of the same partition are found.
const mostHeld = 500

// each reconciles the holders that an intent names, up to mostTogether of one partition together.
func (f *fanOut) each(ctx context.Context, all []named) {
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
		slices.SortFunc(group, func(a, b named) int { return compoundkey.Compare(a.key.Row, b.key.Row) }) // one query reads keys that lie close together
		for part := range slices.Chunk(group, mostTogether) {
			if err := ctx.Err(); err != nil {
				f.failed(err)
				return
			}
			f.do(func() error { return f.group(ctx, part) })
		}
	}
}

// group reads holders of one partition together and reconciles them. It skips holders that do not exist.
func (f *fanOut) group(ctx context.Context, group []named) error {
	if len(group) == 1 {
		return f.one(ctx, group[0])
	}
	keys := make([]tables.Key, len(group))
	for i, n := range group {
		keys[i] = n.key
	}
	found, err := f.holders.GetEach(ctx, keys)
	if err != nil {
		return f.oneByOne(ctx, group) // perhaps only one of the holders cannot be read
	}
	var holders []heldBy
	for i, holder := range found {
		if holder != nil {
			holders = append(holders, heldBy{group[i], holder})
		}
	}
	return f.together(ctx, holders)
}

// together reconciles holders of one partition that were just read, in one transaction under their ETags. A holder that the
// service refuses, for example because it has changed since, is read again and written alone.
func (f *fanOut) together(ctx context.Context, holders []heldBy) error {
	var write []heldBy
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
	refused, err := division.Divided[heldBy]{
		Write:   func(holders []heldBy) error { return f.commit(ctx, holders) },
		Refused: func(err error, _ []heldBy) int { return changeOf(err) - 1 },
		Ends: func(err error) bool {
			return ctx.Err() != nil || changeOf(err) == 0 && !errors.Is(err, tables.ErrTooLarge)
		},
	}.Run(write)
	switch {
	case errors.Is(err, tables.ErrUnknownOutcome):
		return err // the transaction may still be applied; the error makes a worker carry out the intent again
	case err != nil:
		refused = write
	}
	for _, h := range refused {
		alone = append(alone, h.named)
	}
	return f.oneByOne(ctx, alone)
}

// commit writes holders in one transaction.
func (f *fanOut) commit(ctx context.Context, holders []heldBy) error {
	x := f.holders.Table().NewTransaction()
	for _, h := range holders {
		f.holders.Stage(ctx, driver.ChangeReplace, x, h.holder)
	}
	_, err := x.Commit(by(ctx, bySource, f.relation))
	return err
}

// changeOf returns the number, from 1, of the holder because of which the service refused a transaction; 0 if unknown.
func changeOf(err error) int {
	var e *tables.Error
	if errors.As(err, &e) {
		return e.Change
	}
	return 0
}

// oneByOne reconciles holders one after the other. If one cannot be written, it continues with the others and
// returns the first error.
func (f *fanOut) oneByOne(ctx context.Context, group []named) (first error) {
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

// readOnce returns a readSource that reads each source once. All holders must have been read before the first
// source: otherwise a holder could have been given the copy of a version of the source that is newer than the
// one that readOnce returns.
func (f *fanOut) readOnce() readSource {
	known := map[tables.Key]any{}
	return func(ctx context.Context, key tables.Key) (any, error) {
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
