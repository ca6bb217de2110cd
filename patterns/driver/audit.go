package driver

import (
	"context"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Audit lets Verify and Repair compare the facts that a pattern stores for entities with the facts that the
// entities require. A fact is anything but a copy. Patterns of copies need no Audit: the repository knows
// their rows.
type Audit[T any] struct {
	// Expected returns the facts that the pattern must store for an entity. It must be pure.
	Expected func(entity *T) ([]Fact, error)
	// List yields the facts that the pattern stores for the entities in the scope, in any order. It may make
	// one request per page. For a fact that cannot be read, it yields a Fact with an Err.
	List func(ctx context.Context, scope Scope) iter.Seq2[Fact, error]
	// Read reads the facts that the pattern currently stores. Each element of asked has Place and Entity set.
	// Read returns for each of them, in the same order, the fact that is stored for the entity at the place,
	// or nil. It should read facts that are stored together, such as the entries of one list, with one
	// request. If every fact needs its own request, use ReadEach.
	Read func(ctx context.Context, asked []Fact) ([]*Fact, error)
	// Remove is for a pattern that contributes to the entity's own transaction. Repair writes an entity again
	// to restore a missing fact, and calls Remove for a fact that no entity requires. Remove reads the place,
	// calls wanted, removes the fact under the ETag that it read unless wanted returns true, and starts again
	// on conflict. Each write that makes the place required must change its ETag, so that Remove detects it.
	Remove func(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error
}

// Fact is one thing that a pattern stores for one entity.
type Fact struct {
	Place  string // in the pattern's notation; with OutsideKeys, the key that intents name
	Entity tables.Key
	Digest [16]byte // of the content; zero if the fact has no content
	Err    error    // why it cannot be read
}

// readsAtOnce is how many facts ReadEach reads at the same time.
const readsAtOnce = 8

// ReadEach returns an Audit.Read that calls read for each fact. read returns held as false if nothing is
// stored.
func ReadEach(read func(ctx context.Context, place string, entity tables.Key) (fact Fact, held bool, err error)) func(context.Context, []Fact) ([]*Fact, error) {
	return func(ctx context.Context, asked []Fact) ([]*Fact, error) {
		found := make([]*Fact, len(asked))
		one := func(ctx context.Context, i int) error {
			fact, held, err := read(ctx, asked[i].Place, asked[i].Entity)
			if err == nil && held {
				found[i] = &fact
			}
			return err
		}
		if len(asked) == 1 {
			return found, one(ctx, 0)
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(readsAtOnce)
		for i := range asked {
			group.Go(func() error { return one(ctx, i) })
		}
		return found, group.Wait()
	}
}

// Scope is the part of a table that is verified.
type Scope struct {
	Partitions []string // the entities' partitions; nil for all
}

// Contains reports whether an entity is in the scope.
func (s Scope) Contains(entity tables.Key) bool {
	return s.Partitions == nil || slices.Contains(s.Partitions, entity.Partition)
}
