package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// totals compares the numbers that patterns add up from entities, and corrects them if the job writes.
func (j *job) totals(ctx context.Context) error {
	for _, p := range j.r.Patterns {
		if p.Totals == nil || len(j.areas) == 0 || !j.chosen(p.Name) {
			continue
		}
		var wrong []entity.Key
		for row, err := range p.Totals.Wrong(ctx, driver.Scope{Partitions: j.options.Partitions}) {
			if err != nil {
				return engine.PatternError(p, err, entity.ErrGarbled)
			}
			if wrong = append(wrong, row); len(wrong) == atOnce {
				if err := j.agreeTotals(ctx, p, wrong); err != nil {
					return err
				}
				wrong = nil
			}
		}
		if err := j.agreeTotals(ctx, p, wrong); err != nil {
			return err
		}
	}
	return nil
}

// agreeTotals adds up the entities of rows again, each row by itself, and passes the rows that differ to the caller. Rebuild passes only those that it
// could not correct.
func (j *job) agreeTotals(ctx context.Context, p *driver.Implementation, all []entity.Key) error {
	write := j.op != Verify && !j.options.DryRun
	var mu sync.Mutex
	var findings []*finding
	err := each(ctx, j.options.Concurrency, all, func(ctx context.Context, row entity.Key) error {
		wrong, err := p.Totals.Agree(ctx, row, write)
		if wrong == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		findings = append(findings, &finding{Finding: entity.Finding{Kind: entity.Different, Pattern: p.Name, Table: j.r.Table.Name(), Location: driver.JoinKey(row),
			Err: wrong, Repaired: write && err == nil, NotRepaired: err}})
		return fatal(ctx, err)
	})
	if r := &j.state.Report; j.compares() {
		r.Candidates += int64(len(all))
	} else {
		n := int64(len(findings))
		findings = slices.DeleteFunc(findings, func(f *finding) bool { return f.Repaired })
		for _, f := range findings {
			f.Err, f.NotRepaired = f.NotRepaired, nil
		}
		r.Failed += int64(len(findings))
		r.Written += n - int64(len(findings))
	}
	return cmp.Or(err, j.tell(findings))
}
