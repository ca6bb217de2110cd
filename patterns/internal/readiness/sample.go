package readiness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// sampled is the number of entities that Unfilled compares with their copies, and the most copies of each index that it reads.
const sampled = 20

// Unfilled returns an error for each index that lacks the copies of most of a few entities: it was never filled, or its key function has changed since. It
// compares each repository until that finds nothing. Requests: 1, and at most 20 for each index and 20 more for one with copies missing.
func Unfilled(ctx context.Context, r *stores.Register, all []*engine.Engine) error {
	var failures []error
	for _, e := range all {
		id := stores.ID{Account: e.Table.Account(), Name: "sample of " + e.Table.Name() + " " + e.Name()}
		if len(e.Copies)+len(e.Outside) == 0 || e.Schema.OtherBuilds || r.Has(id) {
			continue
		}
		err := sample(ctx, e)
		if failures = append(failures, err); err == nil {
			r.Mark(id)
		}
	}
	return errors.Join(failures...)
}

// sample compares the first entities of a table with their copies. A page without entities of the repository is no sample.
func sample(ctx context.Context, r *engine.Engine) error {
	src := r.Primary
	src.Known = nil
	src.Load = func(_ context.Context, row *tablerow.Row, _ []string) (any, error) {
		if row.Problem != nil || !r.Owns(row) {
			return nil, nil
		}
		return row.Clone(), nil
	}
	page, _, err := core.NewQuery(&src).AllowTableScan().PageSize(sampled).Page(ctx, "")
	if err != nil {
		return fmt.Errorf("the entities of table %s: %w", r.Table.Name(), err)
	}
	var own []*tablerow.Row
	for _, v := range page.Values {
		own = append(own, v.(*tablerow.Row))
	}
	var failures []error
	for _, p := range slices.Concat(r.Copies, r.Outside) {
		failures = append(failures, sampleOf(ctx, r, p, own))
	}
	return errors.Join(failures...)
}

// sampleOf compares the copies of one pattern.
func sampleOf(ctx context.Context, r *engine.Engine, p *driver.Implementation, own []*tablerow.Row) error {
	table := r.Table
	if p.Outside != nil {
		table = engine.OutsideTable(p)
	}
	keys := map[entity.Key]*tablerow.Row{} // of the copies, with the entities' own rows
	for _, row := range own {
		for _, key := range keysOf(ctx, r, p, row) {
			if len(keys) < sampled {
				keys[key] = row
			}
		}
	}
	stored, err := missing(ctx, table, keys)
	if err != nil || 2*len(stored) <= len(keys) {
		return err
	}
	lacks := 0
	for _, key := range stored { // what has changed meanwhile is no sign
		row, err := r.Table.Get(ctx, "Ready", keys[key].Key, nil)
		if err == nil && row.ETag == keys[key].ETag {
			lacks++
		} else if err != nil && !errors.Is(err, entity.ErrNotFound) {
			return err
		}
	}
	if 2*lacks <= len(keys) {
		return nil
	}
	return &entity.Error{Op: "Ready", Table: table.Name(), Pattern: p.Name, Kind: entity.ErrWiring,
		Err: fmt.Errorf("the index lacks %d of the %d rows of the first entities: it was never filled, or its key function has changed; call Rebuild, or set Schema.OtherBuilds until it is filled", lacks, len(keys))}
}

// missing returns the keys under which there is no row.
func missing(ctx context.Context, table *core.Table, rows map[entity.Key]*tablerow.Row) ([]entity.Key, error) {
	var keys, none []entity.Key
	for key := range rows {
		keys = append(keys, key)
	}
	found, err := engine.FetchMany(ctx, table, "Ready", keys)
	for _, key := range keys {
		if found[key] == nil {
			none = append(none, key)
		}
	}
	return none, err
}

// keysOf returns the keys of an entity's copies, none if that is not known.
func keysOf(ctx context.Context, r *engine.Engine, p *driver.Implementation, row *tablerow.Row) (keys []entity.Key) {
	v, now, err := r.LoadStored(ctx, r.Table, row, nil, nil)
	if err != nil || v == nil || now.ETag != row.ETag || r.Schema.Key(v) != row.Key {
		return nil
	}
	copies := engine.CopiesOf(v)
	if p.Outside != nil {
		elsewhere, _ := copies.Outside(p)
		for i := range elsewhere {
			keys = append(keys, elsewhere[i].Key)
		}
		return keys
	}
	near, _ := copies.Near(p)
	for i := range near {
		keys = append(keys, entity.Key{Partition: row.Key.Partition, Row: near[i].RowKey})
	}
	return keys
}
