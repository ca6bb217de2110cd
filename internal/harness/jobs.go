package harness

import (
	"cmp"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RepositoryJob is a job of a repository, such as Verify, whose report is an R.
type RepositoryJob[R any] = func(context.Context, *patterns.JobOptions) (R, error)

// Tallied returns a job whose report is a tally.Report, to run different jobs in one loop.
func Tallied[R any](job RepositoryJob[R]) RepositoryJob[tally.Report] {
	return func(ctx context.Context, options *patterns.JobOptions) (tally.Report, error) {
		report, err := job(ctx, options)
		var counts tally.Report
		tally.Into(report, &counts)
		return counts, err
	}
}

// Findings runs a job and returns its findings, even together with an error.
func Findings[R any](ctx context.Context, job RepositoryJob[R], options *patterns.JobOptions) (found []patterns.Finding, err error) {
	_, err = job(ctx, withFound(options, func(f patterns.Finding) error {
		found = append(found, f)
		return nil
	}))
	return found, err
}

// Clean runs a job and returns an error at its first finding.
func Clean[R any](ctx context.Context, job RepositoryJob[R], options *patterns.JobOptions) error {
	_, err := job(ctx, withFound(options, func(f patterns.Finding) error { return fmt.Errorf("found %v", f) }))
	return err
}

func withFound(options *patterns.JobOptions, found func(patterns.Finding) error) *patterns.JobOptions {
	o := *cmp.Or(options, &patterns.JobOptions{})
	o.Found = found
	return &o
}

// Job is a maintenance run over all entities. P is the state of one process, such as its repositories.
type Job[P any] struct {
	Name string
	Run  func(context.Context, P) error
}

// RepositoryJobs returns Verify, Repair and Rebuild of a repository. Each makes one request at a time:
// concurrent goroutines would draw random numbers in a different order in each run of a schedule, and in a
// walk the next request must depend on the history alone. Findings are not an error, because a writer that
// died causes findings.
func RepositoryJobs[P, T any](repo func(P) *patterns.Repository[T], lag time.Duration) []Job[P] {
	verify := patterns.JobOptions{Lag: lag, Concurrency: 1}
	return []Job[P]{
		{"Verify", func(ctx context.Context, p P) error {
			_, err := repo(p).Verify(ctx, &verify)
			return err
		}},
		{"Repair", func(ctx context.Context, p P) error {
			_, err := repo(p).Repair(ctx, &verify)
			return err
		}},
		{"Rebuild", func(ctx context.Context, p P) error {
			_, err := repo(p).Rebuild(ctx, &patterns.JobOptions{Concurrency: 1})
			return err
		}},
	}
}

// Keeper returns an actor whose processes run jobs, chosen by the seed, concurrently with writers and
// workers. For half of the seeds its processes meet faults: a run may fail, and a later run repeats it. For
// the other seeds they meet no faults, and every run must succeed, whatever concurrent writers do.
func Keeper[P any](x *Trouble, seed uint64, runs int, open func(*storagetest.Service) (P, error), jobs ...Job[P]) explore.Actor {
	rng, own := mathrand.New(mathrand.NewPCG(seed, 2)), *x
	calm := rng.IntN(2) == 0
	if calm {
		own.Faults, own.Deaths = 0, 0
	}
	return own.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		p, err := open(s)
		if err != nil {
			return false, err
		}
		for ; runs > 0 && !dead(); runs-- {
			job := jobs[rng.IntN(len(jobs))]
			err := job.Run(ctx, p)
			x.Log.Add("runs of "+job.Name, 1)
			if err != nil && calm {
				return false, fmt.Errorf("%s, run concurrently with writers: %w", job.Name, err)
			}
		}
		return runs == 0, nil
	})
}

// ReadFact reads one fact with Effect.Read.
func ReadFact(ctx context.Context, a *driver.Effect, place string, entity tables.Key) (fact driver.Fact, held bool, err error) {
	found, err := a.Read(ctx, []driver.Fact{{Place: place, Entity: entity}})
	if err != nil || found[0] == nil {
		return fact, false, err
	}
	return *found[0], true, nil
}

// ReconcileOne calls a pattern's Reconcile for one entity.
func ReconcileOne(ctx context.Context, reconcile func(context.Context, []*driver.Reconciliation) error, r *driver.Reconciliation) error {
	if err := reconcile(ctx, []*driver.Reconciliation{r}); err != nil {
		return err
	}
	return r.Err
}

// ReadAnd reads an entity, edits it, and calls write with it.
func ReadAnd[T any](ctx context.Context, repo *patterns.Repository[T], key tables.Key, edit func(*T) error, write func(context.Context, *T) error) error {
	e, err := repo.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := edit(e); err != nil {
		return err
	}
	return write(ctx, e)
}

// Marked returns the keys of the marked rows of a table: copies that readers follow to their entity, so that what they hold does not matter.
func Marked(ctx context.Context, table *tables.Table) (map[tables.Key]bool, error) {
	marked := map[tables.Key]bool{}
	for row, err := range table.Entities().Query().Where(tables.Gt("_tpMark", "")).AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		marked[row.Key] = true
	}
	return marked, nil
}
