package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/keyrange"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
)

// FetchMany reads rows of a table by their keys. Requests: see keyrange.Reader.Read.
func FetchMany(ctx context.Context, table *core.Table, op string, keys []entity.Key) (map[entity.Key]*tablerow.Row, error) {
	found := make(map[entity.Key]*tablerow.Row, len(keys))
	wanted := make(map[entity.Key]bool, len(keys))
	all := make([]keyrange.Key, len(keys))
	for i, key := range keys {
		wanted[key], all[i] = true, keyrange.Key(key)
	}
	var mu sync.Mutex
	note := func(row *tablerow.Row) {
		mu.Lock()
		defer mu.Unlock()
		if wanted[row.Key] {
			found[row.Key] = row
		}
	}
	err := keyrange.Reader{
		Page: func(ctx context.Context, partition string, span compoundkey.Span, size int) (last string, more bool, err error) {
			src := table.Source(span)
			src.Problems, src.Load = true, func(_ context.Context, row *tablerow.Row, _ []string) (any, error) { return row.Clone(), nil }
			page, next, err := core.NewQuery(src).Partition(partition).PageSize(size).Page(ctx, "")
			if err != nil {
				return "", false, errs.Amend(err, func(e *entity.Error) { e.Op = op })
			}
			for _, v := range page.Values {
				row := v.(*tablerow.Row)
				note(row)
				last = row.Key.Row
			}
			return last, next != "", nil
		},
		One: func(ctx context.Context, key keyrange.Key) error {
			row, err := table.Get(ctx, op, entity.Key(key), nil)
			if errors.Is(err, entity.ErrNotFound) {
				return nil
			}
			if err == nil {
				note(row)
			}
			return err
		},
		Unordered: table.Account().IsCosmos(),
	}.Read(ctx, all)
	return found, err
}

// FetchOwnAll reads the own rows of entities, nil for one that does not exist. A returned row may be an entity
// of another repository; then rows that name this entity as their owner may belong to that repository, too.
// Requests: as FetchMany.
func (r *Engine) FetchOwnAll(ctx context.Context, op string, keys []entity.Key) ([]*tablerow.Row, error) {
	rows := make([]*tablerow.Row, len(keys))
	found, err := FetchMany(ctx, r.Table, op, keys)
	for i, key := range keys {
		if row := found[key]; row != nil && !row.Own.IsCopy {
			rows[i] = row
		}
	}
	return rows, err
}

// readTargets reads the entities of targets again. For each target it sets target.now, or target.err after a
// failure. If the entity is unchanged, target.now is the same pointer as target.seen.
func (r *Engine) readTargets(ctx context.Context, targets []*target) {
	keys := make([]entity.Key, len(targets))
	for i, t := range targets {
		keys[i] = t.Key
	}
	rows, err := r.FetchOwnAll(ctx, opReconcile, keys)
	for i, t := range targets {
		if t.err = err; err == nil {
			t.now, t.err = r.snapshotOf(ctx, opReconcile, t.Key, rows[i], t.seen)
		}
	}
}
