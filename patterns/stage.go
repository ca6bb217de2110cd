package patterns

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// stageInsert is Repository.StageInsert.
func (r *engine) stageInsert(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageInsert"
	return r.stage(ctx, op, x, func() (*work, error) { return r.inserting(op, v) })
}

// stageReplace is Repository.StageReplace.
func (r *engine) stageReplace(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageReplace"
	return r.stage(ctx, op, x, func() (*work, error) { return r.replacing(op, v) })
}

// stageDelete is Repository.StageDelete.
func (r *engine) stageDelete(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageDelete"
	return r.stage(ctx, op, x, func() (*work, error) { return r.deleting(ctx, op, v) })
}

func (r *engine) checkStage(op string) error {
	if name, out := r.firstOutside(); out {
		return r.invalid(op, tables.Key{}, fmt.Errorf("%q has effects outside of the partition, which a transaction cannot hold", name))
	}
	return nil
}

func (r *engine) stage(ctx context.Context, op string, x *tables.Transaction, prepare func() (*work, error)) error {
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
	w.begin()
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
		r.handBack(w)
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
func (r *engine) draft(ctx context.Context, w *work) (*draft, error) {
	if err := r.store(ctx, w); err != nil {
		return nil, err
	}
	return r.plan(ctx, &w.change, w.etag, w.merged)
}
