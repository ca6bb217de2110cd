package relationships

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Source finds entities by their keys, in a repository (FromRepository) or in a Cache.
type Source[P any] interface {
	// Lookup returns the entities that exist. Keys may be repeated.
	Lookup(ctx context.Context, keys []tables.Key) (map[tables.Key]*P, error)
}

// FromRepository returns the Source that reads each entity from its table. concurrency is the maximum number of concurrent
// requests (0 means 8). Requests: 1 for each different key.
func FromRepository[P any](repo *patterns.Repository[P], concurrency int) Source[P] {
	return &fromRepository[P]{repo, concurrency}
}

type fromRepository[P any] struct {
	repo        *patterns.Repository[P]
	concurrency int
}

func (s *fromRepository[P]) Lookup(ctx context.Context, keys []tables.Key) (map[tables.Key]*P, error) {
	if s.repo == nil {
		return nil, errs.Wiringf("Lookup", "", "FromRepository was given a nil repository; give one")
	}
	found := make(map[tables.Key]*P, len(keys))
	for v, err := range s.repo.GetMany(ctx, unique(keys), &tables.ParallelOptions[P]{Concurrency: s.concurrency}) {
		if err != nil {
			return nil, err
		}
		found[patterns.HostOf(s.repo).MetaOf(v).Key()] = v
	}
	return found, nil
}

// unique returns each key once, in the order in which they first occur.
func unique(keys []tables.Key) []tables.Key {
	seen := make(map[tables.Key]bool, len(keys))
	once := make([]tables.Key, 0, len(keys))
	for _, key := range keys {
		if !seen[key] {
			seen[key], once = true, append(once, key)
		}
	}
	return once
}

// Reference leads from an entity of type C to the entity of type P to which it refers, such as from an employee
// to the department. A Reference can be copied, and is safe for concurrent use.
type Reference[C, P any] struct {
	Source Source[P]
	// Key returns the key of the referenced entity, or false if there is no reference. It computes the key from stored
	// properties (a stored link), or from the entity's own key (a convention such as SameKey). It must be pure.
	Key func(*C) (tables.Key, bool)
	// Batch is the number of entities for which Join looks up the references together, so that several
	// references to one entity cost one read (default 100).
	Batch int
}

const defaultBatch = 100

// SameKey is a Reference.Key for the convention that two related entities have the same key in two tables.
func SameKey[C any](repo *patterns.Repository[C]) func(*C) (tables.Key, bool) {
	return func(v *C) (tables.Key, bool) { return repo.KeyOf(v), true }
}

func (r *Reference[C, P]) check(op string) error {
	switch {
	case r.Source == nil || r.Key == nil:
		return errs.Wiringf(op, "", "Reference.Source or Reference.Key is nil; set both")
	case r.Batch < 0:
		return errs.Wiringf(op, "", "Reference.Batch is %d; it must be 0 (the default) or more", r.Batch)
	}
	return nil
}

// Get returns the referenced entity. It returns tables.ErrNotFound if the referenced entity does not exist, or
// if v has no reference. Requests: 1, or 0 from a fresh Cache.
func (r Reference[C, P]) Get(ctx context.Context, v *C) (*P, error) {
	if err := r.check("Get"); err != nil {
		return nil, err
	}
	key, ok := r.Key(v)
	if !ok {
		return nil, notFound("Get", tables.Key{}, errors.New("Reference.Key returns no key for the entity, so there is nothing to read"))
	}
	found, err := r.Source.Lookup(ctx, []tables.Key{key})
	if err != nil {
		return nil, err
	}
	if found[key] == nil {
		return nil, notFound("Get", key, nil)
	}
	return found[key], nil
}

// Joined is an entity together with the entity to which it refers.
type Joined[C, P any] struct {
	Child  *C
	Parent *P // nil if Child has no reference, or the referenced entity does not exist; several children of one batch can have the same pointer
}

// Join yields entities, such as those of Query.All, each with the entity to which it refers, in the same order.
// An error is yielded once, as the last element. It looks up the keys of a batch of entities together, each key
// once, and holds no more than one batch in memory.
//
// Child and Parent are not a snapshot: Parent is read a little later than Child, or comes from a Cache.
//
// Requests: those of the sequence children, and those of Source.Lookup for each batch.
func (r Reference[C, P]) Join(ctx context.Context, children iter.Seq2[*C, error]) iter.Seq2[Joined[C, P], error] {
	return func(yield func(Joined[C, P], error) bool) {
		if err := r.check("Join"); err != nil {
			yield(Joined[C, P]{}, err)
			return
		}
		if children == nil {
			yield(Joined[C, P]{}, errs.Wiringf("Join", "", "the sequence of entities is nil; give one, such as of Query.All"))
			return
		}
		size := cmp.Or(r.Batch, defaultBatch)
		batch := make([]*C, 0, size)
		for v, err := range children {
			if err != nil {
				if r.join(ctx, batch, yield) {
					yield(Joined[C, P]{}, err)
				}
				return
			}
			if batch = append(batch, v); len(batch) < size {
				continue
			}
			if !r.join(ctx, batch, yield) {
				return
			}
			batch = batch[:0]
		}
		r.join(ctx, batch, yield)
	}
}

// join yields one batch, and reports whether the iteration continues.
func (r *Reference[C, P]) join(ctx context.Context, batch []*C, yield func(Joined[C, P], error) bool) bool {
	keys := make([]tables.Key, 0, len(batch))
	for _, v := range batch {
		if key, ok := r.Key(v); ok {
			keys = append(keys, key)
		}
	}
	var found map[tables.Key]*P
	if len(keys) > 0 {
		var err error
		if found, err = r.Source.Lookup(ctx, unique(keys)); err != nil {
			yield(Joined[C, P]{}, err)
			return false
		}
	}
	for _, v := range batch {
		joined := Joined[C, P]{Child: v}
		if key, ok := r.Key(v); ok {
			joined.Parent = found[key]
		}
		if !yield(joined, nil) {
			return false
		}
	}
	return true
}

func notFound(op string, key tables.Key, err error) error {
	return &tables.Error{Op: op, Key: key, Kind: tables.ErrNotFound, Err: err}
}
