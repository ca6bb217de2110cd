package scatter

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ReadOptions are the options of reads over several partitions; nil is the same as the zero value.
type ReadOptions struct {
	// Where are conditions on the entities. The service reads all entities in the range to check them.
	Where []tables.Condition
	// Select names the properties to read (default all).
	Select []string
	// Limit ends the read after this many entities (default no limit), at most Limit from each
	// partition.
	Limit int
	// PageSize is the maximum number of entities in a response (default 1,000). With a Limit, a smaller
	// PageSize reads fewer unneeded entities in more requests.
	PageSize int
	// Concurrency is the maximum number of requests in flight (default 8).
	Concurrency int
}

// Get reads one entity. Requests: 1.
func (s *Spread[T]) Get(ctx context.Context, row string) (*T, error) {
	key, err := s.key(ctx, "Get", row)
	if err != nil {
		return nil, err
	}
	return s.Repository().Get(ctx, key)
}

// GetMany reads entities by their row keys, several at once, and yields those that exist in the order of
// rowKeys. An error is yielded once, as the last element. Of options only Concurrency applies. Requests: 1
// for each row below the horizon, and 1 for the record if some are at or above the known horizon.
func (s *Spread[T]) GetMany(ctx context.Context, rowKeys []string, options *ReadOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		const op = "GetMany"
		positions, farthest := make([]int64, len(rowKeys)), int64(0)
		for i, row := range rowKeys {
			var err error
			if positions[i], err = s.order.position(row); err != nil {
				yield(nil, invalid(op, s.Repository().Table(), fmt.Errorf("rowKeys[%d]: %w", i, err)))
				return
			}
			farthest = max(farthest, positions[i])
		}
		if len(rowKeys) == 0 {
			return
		}
		if _, err := s.find(ctx, op, farthest); err != nil {
			yield(nil, err)
			return
		}
		l := s.known.Load()
		var keys []tables.Key
		for i, row := range rowKeys {
			if l.covers(positions[i]) {
				keys = append(keys, s.place(l, positions[i], row))
			}
		}
		parallel := &tables.ParallelOptions[T]{}
		if options != nil {
			parallel.Concurrency = options.Concurrency
		}
		s.Repository().GetMany(ctx, keys, parallel)(yield)
	}
}

// Update reads an entity, lets change edit it and replaces it: see Repository.Update. Requests: 2, more on
// conflict.
func (s *Spread[T]) Update(ctx context.Context, row string, change func(*T) error) (*T, error) {
	key, err := s.key(ctx, "Update", row)
	if err != nil {
		return nil, err
	}
	return s.update(ctx, key, change)
}

// DeleteUnconditional removes the entity without a check of its ETag. Requests: 2, more on conflict.
func (s *Spread[T]) DeleteUnconditional(ctx context.Context, row string) error {
	key, err := s.key(ctx, "DeleteUnconditional", row)
	if err != nil {
		return err
	}
	err = s.Repository().DeleteUnconditional(ctx, key)
	if err == nil && s.meter != nil {
		s.meter.Add(key.Partition, 1)
	}
	return err
}

// Key returns the key of a row, for the Repository's methods. It returns tables.ErrNotFound for a row at or
// above the horizon, where no entity can be. Requests: 0, or 1 for a row at or above the known horizon.
func (s *Spread[T]) Key(ctx context.Context, row string) (tables.Key, error) {
	return s.key(ctx, "Key", row)
}

func (s *Spread[T]) key(ctx context.Context, op, row string) (tables.Key, error) {
	position, err := s.order.position(row)
	if err != nil {
		return tables.Key{}, invalid(op, s.Repository().Table(), err)
	}
	l, err := s.find(ctx, op, position)
	switch {
	case err != nil:
		return tables.Key{}, err
	case l == nil:
		return tables.Key{}, failure(op, s.Repository().Table(), tables.ErrNotFound, errors.New("the row key is at or above the horizon, so no entity has it yet"))
	}
	return s.place(l, position, row), nil
}

// Prepare moves the horizon above an entity that the Repository is to insert, alone or with others in a
// transaction. Requests: 0, or 1 or 2 for an entity above the known horizon.
func (s *Spread[T]) Prepare(ctx context.Context, v *T) error {
	const op = "Prepare"
	if v == nil {
		return invalid(op, s.Repository().Table(), errors.New("the entity is nil; give a pointer to a value"))
	}
	return s.reachEntity(ctx, op, v)
}

func (s *Spread[T]) reachEntity(ctx context.Context, op string, v *T) error {
	position, err := s.order.position(s.row(v))
	if err != nil {
		return invalid(op, s.Repository().Table(), err)
	}
	if s.known.Load().covers(position) {
		return nil
	}
	// An entity that cannot be stored must not move the horizon, which never moves back. Its partition is not known yet, so the
	// check uses partition 0, whose key is as long as all others.
	if err := patterns.HostOf(s.Repository()).CheckUnder(ctx, tables.Key{Partition: s.partition(0), Row: s.row(v)}, v); err != nil {
		return errs.Amend(err, func(e *tables.Error) { e.Op, e.Key = op, tables.Key{} })
	}
	return s.reach(ctx, op, position)
}

// reachStored reads the record if the row key is at or above the known horizon: another program may have inserted it.
func (s *Spread[T]) reachStored(ctx context.Context, op string, v *T) error {
	position, err := s.order.position(s.row(v))
	if err != nil {
		return invalid(op, s.Repository().Table(), err)
	}
	_, err = s.find(ctx, op, position)
	return err
}

// Range yields the entities of a span in the order of their row keys, whatever n they were inserted under. The span applies to
// the row keys after the prefix, as in compoundkey.Between(compoundkey.Time(from), compoundkey.Time(to)). For a row that does not
// fit the type it yields tables.ErrGarbled with Error.OfRow, and the loop can continue; any other error is yielded once, as the
// last element. Entities that are inserted while it runs may be included. Requests: 1 for each partition and page, and 1 for the
// record unless the span ends below the known horizon.
func (s *Spread[T]) Range(ctx context.Context, span compoundkey.Span, options *ReadOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		const op = "Range"
		whole := span.Under(s.order.prefix)
		if err := whole.Err(); err != nil {
			yield(nil, invalid(op, s.Repository().Table(), err))
			return
		}
		l := s.known.Load()
		if l == nil || s.order.overlaps(whole, l.horizon, s.order.limit) {
			var err error
			if _, l, err = s.load(ctx, op); err != nil {
				yield(nil, err)
				return
			}
		}
		if l == nil {
			return
		}
		merged(ctx, s.Repository(), s.partitions(l.most(s.order, whole)), whole, options)(yield)
	}
}

// merged orders by row key, then by partition for equal row keys, which only Natural can have.
func merged[T any](ctx context.Context, r *patterns.Repository[T], partitions []string, span compoundkey.Span, options *ReadOptions) iter.Seq2[*T, error] {
	if r.Table().Account().IsCosmos() {
		return func(yield func(*T, error) bool) {
			yield(nil, invalid("Range", r.Table(), errors.New("queries of Cosmos DB return rows in no order, so partitions cannot be merged; query them one by one")))
		}
	}
	if options == nil {
		options = &ReadOptions{}
	}
	host := patterns.HostOf(r)
	q := r.Query().Rows(span).Where(options.Where...).Select(options.Select...).Top(options.Limit).PageSize(options.PageSize)
	if options.PageSize == 0 && options.Limit > 0 {
		q = q.PageSize(min(options.Limit, tables.MaxPageSize))
	}
	return q.AllPartitions(ctx, partitions, &tables.ParallelOptions[T]{Concurrency: options.Concurrency, Order: func(a, b *T) int {
		return compoundkey.Compare(host.MetaOf(a).Key().Row, host.MetaOf(b).Key().Row)
	}})
}
