package engine

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// notInBulk returns the name of a pattern with effects outside of the entity's own rows.
func (r *Engine) notInBulk() (name string, is bool) {
	name, is = r.firstOutside()
	switch {
	case is:
	case len(r.rows) > 0:
		return r.rows[0].Name, true
	case len(r.companions) > 0:
		return r.companions[0].Name, true
	}
	return name, is
}

// CheckBulk rejects patterns with effects outside of the entity's own rows.
func (r *Engine) CheckBulk(op string) error {
	if name, is := r.notInBulk(); is {
		return r.Invalid(op, tables.Key{}, fmt.Errorf("pattern %q has effects outside of the entity's own rows, which a bulk insert cannot write; use Insert", name))
	}
	return nil
}

// BulkUnit plans the insert of one entity of a bulk write.
func (r *Engine) BulkUnit(ctx context.Context, op string, v any) (tables.BulkUnit, error) {
	w, err := r.Inserting(op, v)
	if err != nil {
		return tables.BulkUnit{}, err
	}
	w.Begin()
	d, err := r.NewSet(w).Draft(ctx)
	if err != nil {
		return tables.BulkUnit{}, err
	}
	return tables.BulkUnit{
		Writes:  d.Writes,
		Written: func(etag azcore.ETag) { r.updateMeta(v, driver.ChangeInsert, d.parts[0].next, etag) },
		Alone:   func(ctx context.Context) error { return r.Insert(ctx, v) },
	}, nil
}
