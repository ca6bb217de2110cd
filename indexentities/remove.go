package indexentities

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attempts limits how often a list is read and written again on conflict.
const attempts = 10

// removeEntity removes an entity from a list. Requests: 2, and those of wanted; 2 more for each conflict.
func (x *InPartition[T]) removeEntity(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	rows, err := x.rows()
	if err != nil {
		return err
	}
	for attempt := range attempts {
		l, err := rows.read(ctx, place)
		if err != nil {
			return x.failed("Remove", err)
		}
		l.leave(x.idOf(entity))
		operations := l.writes()
		if len(operations) == 0 || l.first.Partition != entity.Partition {
			return nil
		}
		if belongs, err := wanted(ctx); err != nil || belongs {
			return err
		}
		err = x.writeAlone(ctx, rows.table, place, entity, operations)
		if !errors.Is(err, tables.ErrConflict) {
			return x.failed("Remove", err)
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
	return x.failed("Remove", &tables.Error{Table: rows.table.Name(), Key: entity, Kind: tables.ErrConflict})
}

// writeAlone writes rows of a list outside of an entity's change.
func (x *InPartition[T]) writeAlone(ctx context.Context, table *tables.Table, place string, entity tables.Key, operations []driver.RowOperation) error {
	return driver.NewReconciliation(x.definition.Name, driver.Reconciliation[T]{Key: entity, Keys: []string{place}}).Write(ctx, place, table, operations...)
}
