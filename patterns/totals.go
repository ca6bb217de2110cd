package patterns

import (
	"cmp"
	"context"
	"sync"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// totals compares the numbers that patterns add up from entities, and corrects them if the job writes. It calls hand with those that are
// wrong. A run that is resumed has compared them before.
func (v *verifier) totals(ctx context.Context, hand func([]*finding) error) error {
	for _, p := range v.r.Patterns {
		if p.Totals == nil || !v.chosen(p.Name) || v.options.Resume != "" {
			continue
		}
		var rows []tables.Key
		for row, err := range p.Totals.Wrong(ctx, driver.Scope{Partitions: v.options.Partitions}) {
			if err != nil {
				return engine.PatternError(p, err, tables.ErrGarbled)
			}
			if rows = append(rows, row); len(rows) == atOnce {
				if err := v.agreeTotals(ctx, p, rows, hand); err != nil {
					return err
				}
				rows = nil
			}
		}
		if err := v.agreeTotals(ctx, p, rows, hand); err != nil {
			return err
		}
	}
	return nil
}

// agreeTotals adds up the entities of rows again, each row by itself.
func (v *verifier) agreeTotals(ctx context.Context, p *engine.Pattern, rows []tables.Key, hand func([]*finding) error) error {
	write := v.op != opVerify && !v.options.DryRun
	var mu sync.Mutex
	var findings []*finding
	err := pagejob.Each(ctx, v.options.Concurrency, rows, func(ctx context.Context, row tables.Key) error {
		wrong, err := p.Totals.Agree(ctx, row, write)
		if wrong == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		findings = append(findings, &finding{Finding: Finding{Kind: Different, Pattern: p.Name, Table: v.r.Table.Name(), Location: driver.JoinKey(row),
			Err: wrong, Repaired: write && err == nil, NotRepaired: err}})
		return fatal(ctx, err)
	})
	v.state.Candidates += int64(len(rows))
	return cmp.Or(err, hand(findings))
}
