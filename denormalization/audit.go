package denormalization

import (
	"context"
	"errors"
	"iter"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// facts implements Audit.Expected for sources. With Find the source does not know its holders: then facts
// returns none, and the method held compares holders with their sources.
func (end sourceEnd[S, H]) facts(source *S) ([]driver.Fact, error) {
	s, err := end.ready()
	if err != nil {
		return nil, err
	}
	keys, err := s.holdersOf(source)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	digest, err := s.copyOf(source)
	if err != nil {
		return nil, err
	}
	facts := make([]driver.Fact, len(keys))
	for i, key := range keys {
		facts[i] = driver.Fact{Place: driver.JoinKey(key), Entity: s.sources.KeyOf(source), Digest: digest}
	}
	return facts, nil
}

// held implements Audit.List for sources. With Find it yields only the holders whose copy differs from their source, as copies that no
// source requires; it keeps the sources that it reads in memory. Requests: 1 for each page of the holders' table; with Find 1 more for each
// source.
func (end sourceEnd[S, H]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		s, err := end.ready()
		if err != nil {
			yield(driver.Fact{}, err)
			return
		}
		seen := map[tables.Key]*S{}
		for holder, err := range s.scan(ctx, scope) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			source, is := s.link.SourceOf(holder)
			if !is || !scope.Contains(source) {
				continue
			}
			fact := s.fact(holder, source)
			if s.link.Find != nil {
				wrong, err := s.isWrong(ctx, seen, holder, source)
				if err != nil {
					yield(driver.Fact{}, err)
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
func (s *linked[S, H]) scan(ctx context.Context, scope driver.Scope) iter.Seq2[*H, error] {
	query := s.holders.Query()
	if scope.Partitions != nil && s.inPartition {
		return query.AllPartitions(ctx, scope.Partitions, nil)
	}
	return query.AllowTableScan().AllParallel(ctx, &tables.ParallelOptions[H]{Unordered: true})
}

// fact returns the fact that a holder has a copy of a source.
func (s *linked[S, H]) fact(holder *H, source tables.Key) driver.Fact {
	digest, err := s.digest(holder)
	return driver.Fact{Place: driver.JoinKey(s.holders.MetaOf(holder).Key()), Entity: source, Digest: digest, Err: err}
}

// isWrong reports whether a holder's copy differs from the source to which it refers. seen holds the sources that were read before, nil for
// one that does not exist.
func (s *linked[S, H]) isWrong(ctx context.Context, seen map[tables.Key]*S, holder *H, key tables.Key) (bool, error) {
	source, known := seen[key]
	if !known && checkKey(key) == nil {
		var err error
		if source, err = s.read(ctx, key); err != nil {
			return false, err
		}
		seen[key] = source
	}
	right, err := s.isAsAsked(holder, key, source, source != nil)
	return !right, err
}

// read implements Audit.Read for sources. A holder that does not exist has no copy, and counts as correct.
func (end sourceEnd[S, H]) read(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	key, err := driver.SplitKey(place)
	s, readyErr := end.ready()
	if err = errors.Join(err, readyErr); err != nil {
		return driver.Fact{}, false, err
	}
	holder, err := s.holders.Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return s.readMissing(ctx, key, entity)
	}
	if err != nil {
		return driver.Fact{}, false, err
	}
	source, is := s.link.SourceOf(holder)
	if !is || source != entity {
		return driver.Fact{}, false, nil
	}
	fact := s.fact(holder, source)
	if s.link.Find == nil {
		return fact, true, nil
	}
	wrong, err := s.isWrong(ctx, map[tables.Key]*S{}, holder, source)
	return fact, wrong, err
}

// readMissing returns the fact of a holder that does not exist.
func (s *linked[S, H]) readMissing(ctx context.Context, holder, entity tables.Key) (driver.Fact, bool, error) {
	if s.link.Find != nil {
		return driver.Fact{}, false, nil
	}
	source, err := s.read(ctx, entity)
	if err != nil || !s.names(source, holder) {
		return driver.Fact{}, false, err
	}
	digest, err := s.copyOf(source)
	return driver.Fact{Place: driver.JoinKey(holder), Entity: entity, Digest: digest}, err == nil, err
}
