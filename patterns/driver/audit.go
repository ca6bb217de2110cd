package driver

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Audit compares what a pattern holds of entities, beside copies, with what the entities ask for. Patterns of copies need none: the
// repository knows their rows.
type Audit[T any] struct {
	// Expected returns what the pattern must hold for an entity. It is pure.
	Expected func(entity *T) ([]Fact, error)
	// List yields what the pattern holds for the entities in the scope, in any order, and with as many requests as it has
	// pages. What cannot be read is a Fact with an Err.
	List func(ctx context.Context, scope Scope) iter.Seq2[Fact, error]
	// Read reads what the pattern holds for one entity at one place now; held is false for nothing.
	Read func(ctx context.Context, place string, entity tables.Key) (fact Fact, held bool, err error)
	// Remove is set by a pattern that contributes to the entity's own transaction. What is missing is mended by writing the entity
	// again; what is held without reason is removed by Remove, unless wanted says that it belongs there: it reads the place, asks
	// wanted, and writes under the ETag that it read, again from the start when the place has changed. Each write by which
	// an entity comes to belong there must change the place's ETag, so that none comes between unseen.
	Remove func(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error
}

// Fact is one thing that a pattern holds for one entity.
type Fact struct {
	Place  string // in the pattern's words; where OutsideKeys is set, the key by which intents name it
	Entity tables.Key
	Digest [16]byte // of what is held; zero where being there is all there is to it
	Err    error    // why it cannot be read
}

// Scope is the part of a table that is looked at.
type Scope struct {
	Partitions []string // of the entities; nil for all
}

// Contains reports whether an entity is in the scope.
func (s Scope) Contains(entity tables.Key) bool {
	return s.Partitions == nil || slices.Contains(s.Partitions, entity.Partition)
}
