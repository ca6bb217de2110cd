package harness

import (
	"context"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ReadFact reads one fact with Audit.Read.
func ReadFact[T any](ctx context.Context, a *driver.Audit[T], place string, entity tables.Key) (fact driver.Fact, held bool, err error) {
	found, err := a.Read(ctx, []driver.Fact{{Place: place, Entity: entity}})
	if err != nil || found[0] == nil {
		return fact, false, err
	}
	return *found[0], true, nil
}

// ReconcileOne calls a pattern's Reconcile for one entity.
func ReconcileOne[T any](ctx context.Context, reconcile func(context.Context, []*driver.Reconciliation[T]) error, r *driver.Reconciliation[T]) error {
	if err := reconcile(ctx, []*driver.Reconciliation[T]{r}); err != nil {
		return err
	}
	return r.Err
}
