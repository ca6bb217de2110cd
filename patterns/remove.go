package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/removing"
	"github.com/tablepatterns/tablepatterns/tables"
)

// unattachedIn returns the patterns whose rows RemoveUnattached removes.
func (r *Repository[T]) unattachedIn(patterns []Pattern[T]) ([]removing.Unattached, error) {
	var all []removing.Unattached
	for i, p := range patterns {
		if fields.IsNil(p) {
			return nil, fmt.Errorf("pattern number %d is nil; leave it out", i+1)
		}
		x, err := p.Attach(host[T]{r})
		if err == nil && x.Binding != nil {
			err = x.Binding.Bind(pass, nil) // Bind returns an error for a pattern that is attached to a repository
		}
		same := func(name string) bool { return name == x.Name }
		switch {
		case err != nil:
		case slices.ContainsFunc(r.engine.Patterns, func(o *engine.Pattern) bool { return same(o.Name) }):
			err = errors.New("a pattern of this name is attached to the repository; detach it first")
		case slices.ContainsFunc(all, func(o removing.Unattached) bool { return same(o.Name) }):
			err = errors.New("the name is given twice; give each pattern once")
		case x.Transform != nil || x.Layout != nil:
			err = errors.New("the pattern has changed what entities store, which is not removed with its rows; write the entities without it first")
		case len(x.Containers) > 0:
			err = errors.New("the pattern stores blobs, which are not rows; delete its container, or the blobs under its name")
		case x.Copies == nil && x.Outside == nil && x.Rows == nil && x.Audit == nil:
			err = errors.New("the pattern stores no rows; leave it out")
		}
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", nameOf(x.Name, i, p), err)
		}
		all = append(all, removing.Unattached{Pattern: erased(&x, r.engine.Table), Tables: x.Tables})
	}
	if len(all) == 0 {
		return nil, errors.New("no pattern is given; give those whose rows are to be removed, as they were declared")
	}
	return all, nil
}

// removeUnattached implements Repository.RemoveUnattached.
func removeUnattached(ctx context.Context, r *engine.Engine, patterns []removing.Unattached, options *JobOptions) (tables.Report, error) {
	o, err := options.checked(opRemove, r.Patterns)
	if err != nil {
		return tables.Report{}, tables.Wiringf(opRemove, r.Table.Name(), "%w", err)
	}
	run := &removing.Removal{Engine: r, Patterns: patterns, Partitions: o.Partitions, Concurrency: o.Concurrency, DryRun: o.DryRun}
	pages := o.pages(opRemove, r)
	pages.Options = fmt.Sprintf("%q", o.Partitions)
	for _, p := range patterns {
		pages.Options += fmt.Sprintf(" %q", p.Name)
	}
	pages.Parts = []pagejob.Part{{Table: r.Table, Partitions: o.Partitions, Span: compoundkey.All(), Keep: run.Keep(r.Table, false)}}
	elsewhere := run.Tables()
	if run.Elsewhere() {
		elsewhere = append(elsewhere, r.Table)
	}
	for _, table := range elsewhere {
		pages.Parts = append(pages.Parts, pagejob.Part{Table: table, Span: compoundkey.All(), Keep: run.Keep(table, table.Same(r.Table))})
	}
	pages.Page = func(ctx context.Context, part int, page []*engine.StoredRow) error {
		return run.Process(ctx, pages, pages.Parts[part].Table, page)
	}
	return pages.Run(ctx)
}
