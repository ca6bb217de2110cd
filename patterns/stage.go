package patterns

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// StageInsert adds the insert of an entity, with all its rows, to a transaction of the caller's own on the same table
// and partition. Nothing is written before the transaction is committed; then the entity's Meta is brought up to date.
// Patterns with effects outside of the partition cannot be staged: that is ErrInvalid. A change that was staged does not
// start over by itself: a copy that another program left behind in its way is ErrDuplicate, and one that is not there when it is
// to be removed ErrNotFound, each with Error.Pattern. Requests: 0; for a replace or delete, 1 for an entity that was read through
// an index or a projection.
func (r *Repository[T]) StageInsert(ctx context.Context, x *tables.Transaction, v *T) error {
	const op = "StageInsert"
	return r.stage(ctx, op, x, func() (*work[T], error) { return r.inserting(op, v) })
}

// StageReplace is StageInsert for a Replace.
func (r *Repository[T]) StageReplace(ctx context.Context, x *tables.Transaction, v *T) error {
	const op = "StageReplace"
	return r.stage(ctx, op, x, func() (*work[T], error) { return r.replacing(op, v) })
}

// StageDelete is StageInsert for a Delete.
func (r *Repository[T]) StageDelete(ctx context.Context, x *tables.Transaction, v *T) error {
	const op = "StageDelete"
	return r.stage(ctx, op, x, func() (*work[T], error) { return r.deleting(ctx, op, v) })
}

// CheckStage is ErrInvalid, naming the pattern, where changes of the repository's entities cannot be staged since they have
// effects outside of the partition: for those who build on staging, to refuse the repository when they are made. Requests: 0.
func (r *Repository[T]) CheckStage() error { return r.checkStage("CheckStage") }

func (r *Repository[T]) checkStage(op string) error {
	if name, out := r.firstOutside(); out {
		return r.invalid(op, tables.Key{}, fmt.Errorf("%q has effects outside of the partition, which a transaction cannot hold", name))
	}
	return nil
}

func (r *Repository[T]) stage(ctx context.Context, op string, x *tables.Transaction, prepare func() (*work[T], error)) error {
	if x == nil || x.Table() == nil {
		return r.invalid(op, tables.Key{}, fmt.Errorf("the transaction was not made by NewTransaction"))
	}
	if !x.Table().Same(r.table) {
		return r.invalid(op, tables.Key{}, fmt.Errorf("the transaction is on table %s", x.Table().Name()))
	}
	if err := r.checkStage(op); err != nil {
		return err
	}
	w, err := prepare()
	if err != nil {
		return err
	}
	w.change.ID = newWriteID()
	w.change.gone, _ = tables.HintOf(pass, x).(map[string]azcore.ETag)
	if err := r.ground(ctx, w); err != nil {
		return r.located(w, err)
	}
	if err := r.complete(ctx, w); err != nil {
		return r.located(w, err)
	}
	d, err := r.draft(ctx, w)
	if err != nil {
		return r.located(w, err)
	}
	tables.StageWrites(pass, x, tables.Staged{Writes: d.writes, Written: func(etags []azcore.ETag) {
		d.notifyStaged(etags)
		r.settle(w.entity, w.change.Kind, d.next, etags[0])
		w.handBack()
	}})
	return nil
}

// notifyStaged tells the repositories that have staged rows in a change that they are written.
func (d *draft) notifyStaged(etags []azcore.ETag) {
	for _, s := range d.staged {
		if s.staged.Written != nil {
			s.staged.Written(etags[s.at:])
		}
	}
}

// draft stores and plans a change.
func (r *Repository[T]) draft(ctx context.Context, w *work[T]) (*draft, error) {
	if err := r.store(ctx, w); err != nil {
		return nil, err
	}
	return r.plan(ctx, &w.change, w.etag, w.merged)
}
