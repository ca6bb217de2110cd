package denormalization

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// Facts implements patterns.Auditor. With Find the holders are not known to the source: then there are none, and Held
// compares.
func (b *base[S, T]) Facts(entity any) ([]patterns.Fact, error) {
	source := entity.(*S)
	keys, err := b.holders(source)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	digest, err := b.copyOf(source)
	if err != nil {
		return nil, err
	}
	facts := make([]patterns.Fact, len(keys))
	for i, key := range keys {
		facts[i] = patterns.Fact{Place: placeOf(key), Entity: b.source.KeyOf(source), Digest: digest}
	}
	return facts, nil
}

// Held implements patterns.Auditor. With Find it yields only holders that are not in step, each of which is held without
// reason; it keeps the sources that it meets in memory. Requests: 1 for each page of the holders' table; with Find 1 more
// for each source.
func (b *base[S, T]) Held(ctx context.Context, scope patterns.Scope) iter.Seq2[patterns.Fact, error] {
	return func(yield func(patterns.Fact, error) bool) {
		seen := map[patterns.Key]*S{}
		for holder, err := range b.scan(ctx, scope) {
			if err != nil {
				yield(patterns.Fact{}, err)
				return
			}
			source, is := b.link.Held(holder)
			if !is || !scope.Contains(source) {
				continue
			}
			fact := b.fact(holder, source)
			if b.link.Find != nil {
				wrong, err := b.isWrong(ctx, seen, holder, source)
				if err != nil {
					yield(patterns.Fact{}, err)
					return
				}
				if !wrong {
					continue
				}
			}
			if !yield(fact, nil) {
				return
			}
		}
	}
}

// scan reads the holders that may have copies of sources in the scope.
func (b *base[S, T]) scan(ctx context.Context, scope patterns.Scope) iter.Seq2[*T, error] {
	query := b.link.Target.Query()
	if scope.Partitions != nil && b.inPartition {
		return query.AllPartitions(ctx, scope.Partitions, nil)
	}
	return query.AllowTableScan().All(ctx)
}

// fact is what a holder has of a source.
func (b *base[S, T]) fact(holder *T, source patterns.Key) patterns.Fact {
	digest, err := b.digest(holder)
	return patterns.Fact{Place: placeOf(b.link.Target.MetaOf(holder).Key()), Entity: source, Digest: digest, Err: err}
}

// isWrong reports whether a holder is not in step with the source that it refers to. seen are sources that were read before,
// nil for those that are not there.
func (b *base[S, T]) isWrong(ctx context.Context, seen map[patterns.Key]*S, holder *T, key patterns.Key) (bool, error) {
	source, known := seen[key]
	if !known && checkKey(key) == nil {
		var err error
		if source, err = b.source.Get(ctx, key); err != nil && !patterns.IsAbsent(err) {
			return false, err
		}
		seen[key] = source
	}
	return b.settle(holder, key, source, true)
}

// Look implements patterns.Auditor. A holder that is not there cannot hold anything, and is taken for one that is in step.
// Requests: 1; with Find, and for a holder that is not there, 1 more.
func (b *base[S, T]) Look(ctx context.Context, place string, entity patterns.Key) (patterns.Fact, bool, error) {
	key, err := parsePlace(place)
	if err != nil {
		return patterns.Fact{}, false, err
	}
	holder, err := b.link.Target.Get(ctx, key)
	if patterns.IsAbsent(err) {
		return b.lookWithout(ctx, key, entity)
	}
	if err != nil {
		return patterns.Fact{}, false, err
	}
	source, is := b.link.Held(holder)
	if !is || source != entity {
		return patterns.Fact{}, false, nil
	}
	fact := b.fact(holder, source)
	if b.link.Find == nil {
		return fact, true, nil
	}
	wrong, err := b.isWrong(ctx, map[patterns.Key]*S{}, holder, source)
	return fact, wrong, err
}

// lookWithout looks at a holder that is not there.
func (b *base[S, T]) lookWithout(ctx context.Context, holder, entity patterns.Key) (patterns.Fact, bool, error) {
	if b.link.Find != nil {
		return patterns.Fact{}, false, nil
	}
	source, err := b.source.Get(ctx, entity)
	if patterns.IsAbsent(err) {
		return patterns.Fact{}, false, nil
	}
	if err != nil {
		return patterns.Fact{}, false, err
	}
	facts, err := b.Facts(source)
	if err != nil {
		return patterns.Fact{}, false, err
	}
	i := slices.IndexFunc(facts, func(f patterns.Fact) bool { return f.Place == placeOf(holder) })
	if i < 0 {
		return patterns.Fact{}, false, nil
	}
	return facts[i], true, nil
}
