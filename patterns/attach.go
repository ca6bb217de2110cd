package patterns

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attach collects the patterns' implementations and passes them to the engine.
func (r *Repository[T]) attach(attached []Pattern[T]) error {
	h := host[T]{r}
	for i, p := range attached {
		if fields.IsNil(p) {
			return fmt.Errorf("pattern number %d is nil; leave it out", i+1)
		}
		implementation, err := p.Attach(h)
		if err == nil && implementation.Binding != nil {
			err = implementation.Binding.Bind(pass, nil)
		}
		if err != nil {
			return fmt.Errorf("pattern %s: %w", nameOf(implementation.Name, i, p), err)
		}
		r.patterns = append(r.patterns, implementation)
	}
	for i := range r.patterns {
		p := &r.patterns[i]
		if p.Fits != nil {
			if err := p.Fits(r.patterns); err != nil {
				return fmt.Errorf("pattern %q: %w", p.Name, err)
			}
		}
		r.engine.Patterns = append(r.engine.Patterns, erased(p, r.engine.Table))
	}
	return nil
}

// nameOf returns a pattern's name for an error, or its position and type if it has no name yet.
func nameOf(name string, i int, p any) string {
	if name == "" {
		return fmt.Sprintf("%d of type %T", i+1, p)
	}
	return strconv.Quote(name)
}

// bind binds the patterns to the repository, all or none.
func (r *Repository[T]) bind() error {
	for i := range r.patterns {
		b := r.patterns[i].Binding
		if b == nil {
			continue
		}
		if err := b.Bind(pass, host[T]{r}); err != nil {
			r.release(i)
			return fmt.Errorf("pattern %q: %w", r.patterns[i].Name, err)
		}
	}
	return nil
}

// release frees the first n patterns for use by another repository.
func (r *Repository[T]) release(n int) {
	for i := range n {
		if b := r.patterns[i].Binding; b != nil {
			b.Release(pass)
		}
	}
}

// erased adapts an implementation to the engine, which does not know T.
func erased[T any](p *driver.Implementation[T], table *tables.Table) *engine.Pattern {
	e := &engine.Pattern{Name: p.Name, Layout: p.Layout, Async: p.Async, Last: p.Last}
	if p.Copies != nil {
		e.Copies = func(v any) ([]driver.Copy, error) { return p.Copies(v.(*T)) }
	}
	if o := p.Outside; o != nil {
		e.Outside = &engine.Outside{Table: o.Table, Owns: o.Owns, ReservationTerm: o.ReservationTerm}
		if o.Table == nil {
			e.Outside.Table = table
		}
		if o.Copies != nil {
			e.Outside.Copies = func(v any) ([]driver.OutsideCopy, error) { return o.Copies(v.(*T)) }
		}
	}
	if p.Prior != nil {
		e.Prior = func(v any, stored tables.Properties) ([]string, error) { return p.Prior(v.(*T), stored) }
	}
	if p.Rows != nil {
		e.Rows = func(ctx context.Context, changes []*engine.Change) ([]driver.RowOperation, error) {
			return p.Rows(ctx, changesOf[T](p.Name, changes))
		}
	}
	if p.Companions != nil {
		e.Companions = func(ctx context.Context, c *engine.Change, x *tables.Transaction) error {
			return p.Companions(ctx, changeOf[T](p.Name, c), x)
		}
	}
	if p.Complete != nil {
		e.Complete = func(ctx context.Context, c *engine.Change) error { return p.Complete(ctx, changeOf[T](p.Name, c)) }
	}
	if p.OutsideKeys != nil {
		e.OutsideKeys = func(ctx context.Context, c *engine.Change) ([]string, error) {
			return p.OutsideKeys(ctx, changeOf[T](p.Name, c))
		}
	}
	if p.Reconcile != nil {
		e.Reconcile = reconcileOf(p)
	}
	if t := p.Transform; t != nil {
		e.Transform = &engine.Transform{Stage: t.Stage, Load: t.Load, Filterable: t.Filterable, RefusesMerge: t.RefusesMerge, Streams: t.Streams, Authentication: t.Authentication}
		if t.Store != nil {
			e.Transform.Store = func(ctx context.Context, c *engine.Change, properties tables.Properties) (tables.Properties, error) {
				return t.Store(ctx, changeOf[T](p.Name, c), properties)
			}
		}
	}
	if a := p.Audit; a != nil {
		e.Audit = &engine.Audit{List: a.List, Read: a.Read, Remove: a.Remove}
		if a.Expected != nil {
			e.Audit.Expected = func(v any) ([]driver.Fact, error) { return a.Expected(v.(*T)) }
		}
	}
	return e
}

// reconcileOf adapts the Reconcile of an implementation.
func reconcileOf[T any](p *driver.Implementation[T]) func(context.Context, []*engine.Reconciliation) error {
	return func(ctx context.Context, all []*engine.Reconciliation) error {
		typed := make([]*driver.Reconciliation[T], len(all))
		for i, r := range all {
			typed[i] = driver.NewReconciliation(p.Name,
				driver.Reconciliation[T]{Key: r.Key, Entity: as[T](r.Entity), Stored: r.Stored, Keys: r.Keys, Received: r.Received,
					ChangeID: r.ChangeID, NotCommitted: r.NotCommitted})
		}
		err := p.Reconcile(ctx, typed)
		for i, r := range all {
			r.Err = typed[i].Err
		}
		return err
	}
}

// changeOf converts a change of the engine to the Change that a pattern gets.
func changeOf[T any](pattern string, c *engine.Change) *driver.Change[T] {
	written := ""
	if c.Old != nil && !c.Companion {
		written = c.Old.WriteID
	}
	return driver.NewChange(pass, pattern, c.State, driver.Change[T]{
		Kind: c.Kind, Key: c.Key, ID: c.ID, Entity: as[T](c.Entity), Given: as[T](c.Given), Stored: c.Stored, Prior: c.Prior(pattern), DryRun: c.DryRun,
		PriorWriteID: written, Rewritten: c.Rewritten,
	})
}

// changesOf converts changes of the engine to the Changes that a pattern gets.
func changesOf[T any](pattern string, changes []*engine.Change) []*driver.Change[T] {
	typed := make([]*driver.Change[T], len(changes))
	for i, c := range changes {
		typed[i] = changeOf[T](pattern, c)
	}
	return typed
}

// as returns an entity of the engine as *T, or nil.
func as[T any](v any) *T {
	typed, _ := v.(*T)
	return typed
}
