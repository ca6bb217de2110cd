package engine

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/tables"
)

// StageInsert implements Repository.StageInsert.
func (r *Engine) StageInsert(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageInsert"
	return r.stage(ctx, op, x, func() (*Work, error) { return r.Inserting(op, v) })
}

// StageReplace implements Repository.StageReplace.
func (r *Engine) StageReplace(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageReplace"
	return r.stage(ctx, op, x, func() (*Work, error) { return r.Replacing(op, v) })
}

// StageDelete implements Repository.StageDelete.
func (r *Engine) StageDelete(ctx context.Context, x *tables.Transaction, v any) error {
	const op = "StageDelete"
	return r.stage(ctx, op, x, func() (*Work, error) { return r.Deleting(ctx, op, v) })
}

// CheckStage implements Host.CheckStage.
func (r *Engine) CheckStage(op string) error {
	if name, out := r.firstOutside(); out {
		return r.Invalid(op, tables.Key{}, fmt.Errorf("pattern %q has effects outside of the partition, which a transaction cannot contain; write the entity with Insert, Replace or Delete", name))
	}
	return nil
}

func (r *Engine) stage(ctx context.Context, op string, x *tables.Transaction, prepare func() (*Work, error)) error {
	if x == nil || x.Table() == nil {
		return r.Invalid(op, tables.Key{}, fmt.Errorf("the transaction is not usable; make it with Table.NewTransaction"))
	}
	if !x.Table().Same(r.Table) {
		return r.Invalid(op, tables.Key{}, fmt.Errorf("the transaction is on table %s; make it with NewTransaction of the repository's table", x.Table().Name()))
	}
	if err := r.CheckStage(op); err != nil {
		return err
	}
	w, err := prepare()
	if err != nil {
		return err
	}
	w.Begin()
	w.Change.gone, _ = tables.HintOf(pass, x).(map[string]azcore.ETag)
	if err := r.rebase(ctx, w); err != nil {
		return r.Located(w, err)
	}
	if err := r.Complete(ctx, w); err != nil {
		return r.Located(w, err)
	}
	d, err := r.Draft(ctx, w)
	if err != nil {
		return r.Located(w, err)
	}
	tables.StageWrites(pass, x, tables.Staged{Writes: d.Writes, Written: func(etags []azcore.ETag) {
		d.notifyStaged(etags)
		r.updateMeta(w.Entity, w.Change.Kind, d.next, etags[0])
		r.handBack(w)
	}})
	return nil
}

// notifyStaged tells the other repositories that their staged rows are written.
func (d *draft) notifyStaged(etags []azcore.ETag) {
	for _, s := range d.staged {
		if s.staged.Written != nil {
			s.staged.Written(etags[s.at:])
		}
	}
}

// Draft stores and plans a change.
func (r *Engine) Draft(ctx context.Context, w *Work) (*draft, error) {
	if err := r.store(ctx, w); err != nil {
		return nil, err
	}
	return r.plan(ctx, &w.Change, w.Etag, w.merged)
}
