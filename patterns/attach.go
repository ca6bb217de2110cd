package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attach collects the patterns' implementations and passes them to the engine.
func (r *Repository[T]) attach(attached []Pattern[T]) error {
	for i, p := range attached {
		if fields.IsNil(p) {
			return fmt.Errorf("pattern number %d is nil; leave it out", i+1)
		}
		implementation, err := p.Attach(HostOf(r))
		if err == nil && implementation.Binding != nil {
			err = fill(implementation.Binding, nil)
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

// bind binds all patterns to the repository. If one of them is already bound, it binds none and returns an
// error.
func (r *Repository[T]) bind() error {
	for i := range r.patterns {
		b := r.patterns[i].Binding
		if b == nil {
			continue
		}
		if err := fill(b, HostOf(r)); err != nil {
			r.release(i)
			return fmt.Errorf("pattern %q: %w", r.patterns[i].Name, err)
		}
	}
	return nil
}

// fill binds a pattern to its repository; with a nil host it only checks that the pattern is free.
func fill[T any](b *driver.Binding[T], host driver.Host[T]) error {
	slot, next := (*handle.Slot[driver.Host[T]])(b), &host
	if host == nil {
		next = nil
	}
	if !slot.Fill(next) {
		return fmt.Errorf("the pattern already belongs to a repository on table %s; make another pattern for this one", (*slot.Get()).Table().Name())
	}
	return nil
}

// release frees the first n patterns for use by another repository.
func (r *Repository[T]) release(n int) {
	for i := range n {
		if b := r.patterns[i].Binding; b != nil {
			(*handle.Slot[driver.Host[T]])(b).Empty()
		}
	}
}

// erased adapts an implementation to the engine, which does not know T.
func erased[T any](p *driver.Implementation[T], table *core.Table) *engine.Pattern {
	e := &engine.Pattern{Name: p.Name, Layout: p.Layout, Async: p.Async, Last: p.Last, Totals: p.Totals, Containers: opened(p.Containers)}
	for _, t := range p.Tables {
		e.Tables = append(e.Tables, (*core.Table)(t))
	}
	if p.Copies != nil {
		e.Copies = func(v any) ([]driver.Copy, error) { return p.Copies(v.(*T)) }
	}
	if o := p.Outside; o != nil {
		e.Outside = &engine.Outside{Table: cmp.Or((*core.Table)(o.Table), table), Owns: o.Owns}
		if o.Copies != nil {
			e.Outside.Copies = func(v any) ([]driver.OutsideCopy, error) { return o.Copies(v.(*T)) }
		}
	}
	if p.Prior != nil {
		e.Prior = func(v any, stored tables.Properties) ([]string, error) { return p.Prior(v.(*T), stored) }
	}
	if p.Rows != nil {
		e.Rows = func(ctx context.Context, changes []*engine.Change) ([]driver.RowOperation, error) {
			typed := make([]*driver.Change[T], len(changes))
			for i, c := range changes {
				typed[i] = changeOf[T](p.Name, c)
			}
			return p.Rows(ctx, typed)
		}
	}
	if p.Companions != nil {
		e.Companions = func(ctx context.Context, c *engine.Change, x *core.Transaction) error {
			return p.Companions(ctx, changeOf[T](p.Name, c), (*tables.Transaction)(x))
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

// opened returns the containers that a pattern names.
func opened(containers []driver.Container) (all []stores.Entry) {
	for _, c := range containers {
		if container, ok := handle.Any(c).Value().(stores.Entry); ok {
			all = append(all, container)
		}
	}
	return all
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
	return driver.NewChange(pattern, c.State, driver.Change[T]{
		Kind: c.Kind, Key: c.Key, ID: c.ID, Entity: as[T](c.Entity), Given: as[T](c.Given), Stored: c.Stored, Prior: c.Prior(pattern), DryRun: c.DryRun,
		PriorWriteID: written, Rewritten: c.Rewritten,
	})
}

// as converts an entity of the engine to *T. It returns nil for nil.
func as[T any](v any) *T {
	typed, _ := v.(*T)
	return typed
}

// Async returns a pattern that leaves its effects outside of the partition to the workers (see eventual.Run): a
// write does not wait for the effects, and rows of the pattern are stale until a worker has applied them.
// Without Async, the writer applies the effects before it returns. Some patterns of a repository can have Async
// and others not. NewRepository returns ErrWiring for a pattern without such
// effects, such as an index over partitions, which is always current. Give the result of Async to NewRepository, and read through the original pattern.
func Async[T any](pattern Pattern[T]) Pattern[T] { return asyncPattern[T]{pattern} }

type asyncPattern[T any] struct{ pattern Pattern[T] }

// Attach implements Pattern.
func (a asyncPattern[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	if fields.IsNil(a.pattern) {
		return driver.Implementation[T]{}, errors.New("Async was given nil; give it a pattern")
	}
	implementation, err := a.pattern.Attach(host)
	if err == nil && implementation.OutsideKeys == nil {
		err = errors.New("the pattern has no effects that could be left to workers; attach it without Async")
	}
	implementation.Async = true
	return implementation, err
}

// HostOf returns the driver.Host of a repository, for a pattern that uses a second repository and for packages
// that are built on repositories. For a nil repository it returns nil.
func HostOf[T any](r *Repository[T]) driver.Host[T] {
	if r == nil {
		return nil
	}
	return (*host[T])(r)
}

// host is a Repository as driver.Host. It does not embed the Repository: for each type of entity, the compiler would
// make all methods of Repository a second time.
type host[T any] Repository[T]

func (h *host[T]) Table() *tables.Table { return (*tables.Table)(h.engine.Table) }

func (h *host[T]) KeyOf(v *T) tables.Key { return h.engine.Schema.Key(v) }

func (h *host[T]) Get(ctx context.Context, key tables.Key) (*T, error) {
	return (*Repository[T])(h).Get(ctx, key)
}

func (h *host[T]) GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error] {
	return (*Repository[T])(h).GetMany(ctx, keys, options)
}

func (h *host[T]) Query() tables.Query[T] { return (*Repository[T])(h).Query() }

func (h *host[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return (*Repository[T])(h).Merge(ctx, v, properties...)
}

func (h *host[T]) Update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	return (*Repository[T])(h).Update(ctx, key, change)
}

func (h *host[T]) PropertyNames() []string { return h.engine.Names }

func (h *host[T]) Rows() compoundkey.Span { return h.engine.Schema.Own.Span }

func (h *host[T]) Owns(key tables.Key, stored tables.Properties) bool {
	own := &h.engine.Schema.Own
	return own.Keeps(key) && own.Meets(key, stored)
}

func (h *host[T]) MayName(entity, other tables.Key) error {
	if may := h.engine.Schema.MayName; may != nil && !may(entity, other) {
		return fmt.Errorf("Schema.MayName does not let (%q, %q) name (%q, %q); store a key that it allows, or change MayName", entity.Partition, entity.Row, other.Partition, other.Row)
	}
	return nil
}

func (h *host[T]) Patterns() []driver.Implementation[T] { return slices.Clone(h.patterns) }

func (h *host[T]) MetaOf(v *T) *tables.Meta { return h.engine.Codec.Meta(v) }

func (h *host[T]) GetEach(ctx context.Context, keys []tables.Key) ([]*T, error) {
	rows, err := h.engine.FetchOwnAll(ctx, "Get", keys)
	if err != nil {
		return nil, err
	}
	all := make([]*T, len(keys))
	for i, row := range rows {
		v, _, err := h.engine.LoadOwn(ctx, "Get", keys[i], row)
		if all[i], err = typed[T](v, err); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (h *host[T]) Copies(span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.Query[T](core.NewQuery(h.engine.CopiesSource(span, keep)))
}

func (h *host[T]) GetCopy(ctx context.Context, key tables.Key, keep []string) (*T, error) {
	return typed[T](h.engine.CopiesSource(compoundkey.All(), keep).Get(ctx, "Get", key))
}

func (h *host[T]) GetPrimary(ctx context.Context, copied tables.Key) (*T, error) {
	return typed[T](h.engine.GetPrimary(ctx, copied))
}

func (h *host[T]) OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.Query[T](core.NewQuery(h.engine.OutsideSource(h.tableOr(table), span, keep)))
}

func (h *host[T]) GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (*T, error) {
	return typed[T](h.engine.OutsideSource(h.tableOr(table), compoundkey.All(), keep).Get(ctx, "Get", key))
}

// tableOr returns the given table of copies, or the repository's own for nil.
func (h *host[T]) tableOr(table *tables.Table) *core.Table {
	if table == nil {
		return h.engine.Table
	}
	return (*core.Table)(table)
}

func (h *host[T]) Apply(ctx context.Context, kind driver.ChangeKind, v *T, options *driver.ApplyOptions) error {
	if options == nil {
		options = &driver.ApplyOptions{}
	}
	changes := []engine.Applied{{Engine: h.engine, Kind: kind, Value: untyped(v), Incarnation: options.Incarnation}}
	for _, a := range options.Along {
		change, ok := handle.Any(a).Value().(engine.Applied)
		if !ok {
			return h.engine.Invalid("Apply", tables.Key{}, errors.New("ApplyOptions.Along has the zero value; use what Host.Along returns"))
		}
		changes = append(changes, change)
	}
	return engine.Apply(ctx, changes, &options.Beside)
}

func (h *host[T]) Along(kind driver.ChangeKind, v *T, incarnation string) driver.Along {
	return driver.Along(handle.New(engine.Applied{Engine: h.engine, Kind: kind, Value: untyped(v), Incarnation: incarnation}))
}

func (h *host[T]) Stage(ctx context.Context, kind driver.ChangeKind, x *tables.Transaction, v *T) {
	h.engine.StageKind(ctx, kind, (*core.Transaction)(x), untyped(v))
}

func (h *host[T]) StageUnchanged(ctx context.Context, x *tables.Transaction, v *T) {
	h.engine.StageUnchanged(ctx, (*core.Transaction)(x), untyped(v))
}

func (h *host[T]) GetIn(ctx context.Context, x *tables.Transaction, key tables.Key) (*T, error) {
	return typed[T](h.engine.GetIn(ctx, (*core.Transaction)(x), key))
}

func (h *host[T]) CheckUnder(ctx context.Context, key tables.Key, v *T) error {
	return h.engine.CheckUnder(ctx, key, untyped(v))
}
