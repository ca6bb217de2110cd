// Package readiness checks the resources of a store.
package readiness

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Check reports whether a resource exists and can be read, and if not, what to do.
func Check(ctx context.Context, r resource.Resource) error {
	switch err := r.Check(ctx); {
	case err == nil:
		return nil
	case errors.Is(err, tables.ErrMissingResource):
		return fmt.Errorf("%s %s does not exist; call Store.Create, or create it: %w", r.Kind, r.Name, err)
	case errors.Is(err, tables.ErrDenied):
		return fmt.Errorf("%s %s cannot be read; give the program the role %s: %w", r.Kind, r.Name, r.Kind.Role(), err)
	default:
		return fmt.Errorf("%s %s: %w", r.Kind, r.Name, err)
	}
}

// OfTable returns a table as a resource. It is checked by a query for one row, which needs no right to list tables.
func OfTable(t *tables.Table) resource.Resource {
	return resource.Resource{Kind: resource.Table, Name: t.Name(), Check: func(ctx context.Context) error {
		_, err := t.Entities().Query().AllowTableScan().Select("PartitionKey").PageSize(1).Page(ctx, "")
		return err
	}}
}

// atOnce is how many functions All calls at once.
const atOnce = 8

// All calls functions, some at once, and joins their errors.
func All(ctx context.Context, all []func(context.Context) error) error {
	failures := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, f := range all {
		group.Go(func() error {
			failures[i] = f(ctx)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errors.Join(failures...)
}
