package denormalization

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// isBeside reports whether a holder is written in its source's own transaction.
func (b *base[S, T]) isBeside(source, holder patterns.Key) bool {
	return b.shares && !b.nested && b.link.Find == nil && source.Partition == holder.Partition
}

// Companions implements patterns.CompanionContributor: it stages the holders that are in the source's partition. Each one
// that the source names is written, also when nothing in it changes: so whoever read it before is refused.
func (b *base[S, T]) Companions(ctx context.Context, c *patterns.Change, x *patterns.Transaction) error {
	if b.link.Find != nil {
		return nil
	}
	now, all, err := b.touched(ctx, c)
	if err != nil {
		return err
	}
	for _, key := range all {
		if !b.isBeside(c.Key, key) {
			continue
		}
		if err := b.stage(ctx, c, x, key, slices.Contains(now, key)); err != nil {
			return err
		}
	}
	return nil
}

// stage stages one holder, unless the change leaves it alone.
func (b *base[S, T]) stage(ctx context.Context, c *patterns.Change, x *patterns.Transaction, key patterns.Key, names bool) error {
	target := b.link.Target
	holder, err := target.Get(ctx, key)
	if patterns.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	source, _ := c.Entity.(*S)
	changed, err := b.settle(holder, c.Key, source, names)
	if err != nil {
		return fmt.Errorf("the holder (%q, %q): %w", key.Partition, key.Row, err)
	}
	if !changed && !names {
		return nil
	}
	return target.StageReplace(ctx, x, holder)
}
