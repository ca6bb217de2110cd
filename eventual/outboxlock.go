package eventual

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// lockOwner is the value of _tpShared in the lock rows of ordered outboxes.
	lockOwner = "outbox"
	// lockRow is the prefix of the row keys of lock rows.
	lockRow = "\uFFFCoutboxlock_"
	// lockHolder is the property of a lock row that holds the Commit.ID of the call that has the lock.
	lockHolder = "Commit"
	// lockAttempts limits how often a holder looks for the lock of another change before it leaves its
	// message to a later delivery.
	lockAttempts = 10
)

// entityLock is the row that makes the calls of an ordered outbox for one entity follow one another. It belongs to a change, not to a
// process: if a process dies, the next holder of its message already has the lock, and no other change can acquire it.
type entityLock struct {
	key tables.Key
	row *tables.Entity // as inserted or read
}

// acquire inserts the lock row, unless the change already holds the lock. Requests: 1; if the row exists 2,
// repeated while another change holds the lock.
func (l *entityLock) acquire(ctx context.Context, table *tables.Table, id string) error {
	return backoff.Retry(ctx, lockAttempts, func() (again bool, err error) {
		l.row = &tables.Entity{Key: l.key}
		l.row.Set(lockHolder, tables.String(id))
		inserted := driver.Beside{Owner: lockOwner, Rows: []driver.RowOperation{{Verb: driver.InsertRow, Row: l.row}}}
		err = inserted.Write(ctx, table)
		if err == nil && l.row.ETag != "" || !errors.Is(err, tables.ErrExists) && err != nil {
			return false, err
		}
		there, err := l.read(ctx, table)
		switch {
		case errors.Is(err, tables.ErrNotFound):
			return true, l.taken(table, errors.New("another change held the lock and has just released it; a later delivery tries again"))
		case err != nil:
			return false, err
		}
		if holder, _ := there.Get(lockHolder).Text(); holder != id {
			return true, l.taken(table, fmt.Errorf("the change with Commit.ID %q holds the lock until its handler succeeds; requeue its intent if that is on the poison queue, or call Outbox.Unlock if it was purged", holder))
		}
		l.row = there
		return false, nil
	})
}

// taken returns the error for a lock that another change holds.
func (l *entityLock) taken(table *tables.Table, why error) error {
	return &tables.Error{Op: "Reconcile", Table: table.Name(), Key: l.key, Kind: tables.ErrConflict, Err: fmt.Errorf("%w: %w", errTurn, why)}
}

func (l *entityLock) read(ctx context.Context, table *tables.Table) (*tables.Entity, error) {
	return table.Entities().Get(ctx, l.key)
}

// release deletes the row. Requests: 1.
func (l *entityLock) release(ctx context.Context, table *tables.Table) error {
	deleted := driver.Beside{Owner: lockOwner, Rows: []driver.RowOperation{{Verb: driver.DeleteRow, Row: l.row}}}
	err := deleted.Write(ctx, table)
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrConflict) {
		return nil // an earlier attempt, or Unlock, has deleted it
	}
	return err
}
