package patterns

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
)

// Resource is a table, queue or container that a store uses.
type Resource struct {
	Kind string // "table", "queue" or "container"
	Name string // with StoreOptions.Prefix; for a container its URL, since it can be in another account
	Role string // the built-in role that lets a program write to it; a program that only reads needs the corresponding Reader role
}

// Resources lists everything that Create creates: the resources of the store's repositories and patterns, and
// those opened from the store, in the order in which the program has named them. Infrastructure code creates
// these and grants the roles. A queue is listed with its shards, its poison queue and the container of its
// large bodies. Requests: 0.
func (s *Store) Resources() []Resource {
	var all []Resource
	for _, e := range s.uses.Entries() {
		for _, part := range e.Parts {
			all = append(all, Resource{Kind: string(part.Kind), Name: part.Name, Role: part.Kind.Role()})
		}
	}
	return all
}

// Ready returns nil if everything in Resources exists and the account's credential can read it, for a
// readiness probe. If not, it returns joined errors, one for each failed resource, which name the resource
// and say what to do: tables.ErrMissingResource, tables.ErrBeingDeleted, tables.ErrDenied or
// tables.ErrUnavailable. It does not find out whether the credential may write. Requests: 1 for each of
// Resources, at most 8 at once. When Ready first succeeds, it makes up to 2 more for each repository whose
// schema has Rows, Mine or Where, and logs a line (rows_unmatched) if the table has rows, one request can
// search all of it, and none of them is an entity of the repository.
func (s *Store) Ready(ctx context.Context) error {
	var checks []func(context.Context) error
	for _, e := range s.uses.Entries() {
		for _, part := range e.Parts {
			checks = append(checks, func(ctx context.Context) error { return readiness.Check(ctx, part) })
		}
	}
	if err := readiness.All(ctx, checks); err != nil {
		return err
	}
	s.mu.Lock()
	all := slices.Clone(s.engines)
	s.mu.Unlock()
	s.uses.Warn(ctx, all)
	return nil
}
