package denormalization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fanOut reconciles the holders of one source concurrently.
type fanOut[S, H any] struct {
	*linked[S, H]
	*crew
	key    tables.Key
	source *S                  // as it was read, nil if it did not exist
	keys   map[tables.Key]bool // keys of the holders that the source names

	mu    sync.Mutex
	other map[tables.Key]namedBy // sources whose copies holders have, as they were read last
}

// namedBy holds the keys of the holders that one version of a source names.
type namedBy struct {
	etag azcore.ETag
	keys map[tables.Key]bool
}

func (r *linked[S, H]) newFanOut(key tables.Key, source *S) (*fanOut[S, H], error) {
	keys, err := r.holdersOf(source)
	if err != nil {
		return nil, err
	}
	return &fanOut[S, H]{linked: r, crew: newCrew(r.options.Concurrency), key: key, source: source, keys: setOf(keys), other: map[tables.Key]namedBy{}}, nil
}

func setOf(keys []tables.Key) map[tables.Key]bool {
	set := make(map[tables.Key]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// names reports whether the source names a holder.
func (f *fanOut[S, H]) names(holder tables.Key) bool {
	return f.source != nil && (f.link.Find != nil || f.keys[holder])
}

// all reconciles all holders that Find yields. Correct holders cost no further request, so an interrupted
// fan-out soon reaches the remaining holders when it is repeated.
func (f *fanOut[S, H]) all(ctx context.Context) error {
	if f.link.Find == nil {
		return errors.New("the intent is for all holders that Link.Find yields, and this program's link has no Find; set it as in the program that wrote the source")
	}
	found := 0
	together, held := map[string][]heldBy[H]{}, 0 // holders to write, by partition
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
		if found++; found > f.limit() {
			return f.tooMany(f.key)
		}
		key, correct, err := f.correct(holder)
		if err != nil {
			return err
		}
		switch {
		case correct:
		case f.holders.MetaOf(holder).ReadRow() != key.Row: // the holder was read through an index's copy
			f.do(func() error { return f.one(ctx, named{key: key}) })
		default:
			together[key.Partition] = append(together[key.Partition], heldBy[H]{named{key: key}, holder})
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

// correct reports whether a holder that Find yielded is already correct. A holder that was read through an index may be outdated.
func (f *fanOut[S, H]) correct(holder *H) (tables.Key, bool, error) {
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

// one reconciles one holder with the snapshot of the source, under the holder's ETag.
func (f *fanOut[S, H]) one(ctx context.Context, n named) error {
	_, err := f.holders.Update(by(ctx, bySource, f.relation), n.key, func(holder *H) error {
		return unlessChanged(f.give(ctx, f.read, n, holder))
	})
	if err = passed(err); err != nil {
		return f.holderError(n.key, err)
	}
	return nil
}

// give changes a holder in memory, which was just read, as the source requires, and reports whether to write
// it. read is the function that reads a source.
func (f *fanOut[S, H]) give(ctx context.Context, read readSource[S], n named, holder *H) (write bool, err error) {
	names := f.names(n.key)
	if other, is := f.link.SourceOf(holder); f.link.Find == nil && names && is && other != f.key {
		if takes, err := f.takes(ctx, read, other, n.key); err != nil || !takes {
			return false, err
		}
	}
	changed, err := f.bring(holder, f.key, f.source, names)
	return changed || err == nil && n.isNew && f.holds(holder, f.key), err
}

// takes reports whether the source takes over a holder from the source whose copy it has: it does if that
// other source no longer names the holder, or was written earlier. So a delayed message cannot give the
// holder back to an earlier source.
func (f *fanOut[S, H]) takes(ctx context.Context, read readSource[S], other, holder tables.Key) (bool, error) {
	if checkKey(other) != nil {
		return true, nil
	}
	theirs, err := f.naming(ctx, read, other, holder)
	if err != nil || theirs == nil {
		return err == nil, err
	}
	ours, err := f.naming(ctx, read, f.key, holder)
	if err != nil || ours == nil {
		return false, err // the source has changed since it was read, and the intent is carried out again
	}
	return follows(ours, theirs), nil
}

// follows reports whether source a counts as written after source b. Two sources may have one Timestamp: the service gives it to all rows
// of a change set, and to rows that are written within a millisecond. Then the greater key wins, so that every order of messages ends with
// the same holder.
func follows(a, b *tables.Meta) bool {
	x, y := a.Key(), b.Key()
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), compoundkey.Compare(x.Partition, y.Partition), compoundkey.Compare(x.Row, y.Row)) > 0
}

// naming reads the current state of a source; it returns nil if the source does not name the holder.
func (f *fanOut[S, H]) naming(ctx context.Context, read readSource[S], source, holder tables.Key) (*tables.Meta, error) {
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

// namedIn returns the holders that a source names. It computes them once for each version of the source: thousands of holders may have the
// copy of the same other source.
func (f *fanOut[S, H]) namedIn(source *S, meta *tables.Meta) map[tables.Key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.other[meta.Key()]
	if known.keys == nil || known.etag != meta.ETag {
		keys, err := f.holdersOf(source)
		if err != nil {
			keys = nil // a source that the link refuses has no holders
		}
		known = namedBy{meta.ETag, setOf(keys)}
		f.other[meta.Key()] = known
	}
	return known.keys
}

// holderError adds the holder's key to an error, since an error of an intent names only the source.
func (r *linked[S, H]) holderError(key tables.Key, err error) error {
	return r.errorAt("holder", key, r.holders.Table(), err)
}

// errorAt adds the entity at the other end of the link to an error.
func (r *linked[S, H]) errorAt(end string, key tables.Key, table *tables.Table, err error) error {
	where := fmt.Errorf("the %s (%q, %q) in %s: %w", end, key.Partition, key.Row, table.Name(), err)
	var e *tables.Error
	if !errors.As(err, &e) {
		return where
	}
	return &tables.Error{Pattern: r.name, Code: e.Code, Kind: e.Kind, Err: where}
}
