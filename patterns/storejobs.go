package patterns

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/internal/eachof"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Verify runs Repository.Verify for all repositories of the store, one after another, and returns the sum of
// their reports. Found gets the findings of all repositories; Finding.Table and Finding.Entity name the
// entity. Resume continues an earlier run of the same store. It returns ErrWiring if JobOptions.Partitions,
// Patterns or Rows is set, since they belong to one repository. It skips repositories on a RunTimeTable.
// Report.Estimate and ETA are 0.
func (s *Store) Verify(ctx context.Context, options *JobOptions) (tables.Report, error) {
	return s.runAll(ctx, opVerify, options, func(ctx context.Context, r *engine.Engine, o *JobOptions) (tables.Report, error) {
		return audit(ctx, r, opVerify, o)
	})
}

// Repair runs Repository.Repair for all repositories of the store; see Verify.
func (s *Store) Repair(ctx context.Context, options *JobOptions) (tables.Report, error) {
	return s.runAll(ctx, opRepair, options, func(ctx context.Context, r *engine.Engine, o *JobOptions) (tables.Report, error) {
		return audit(ctx, r, opRepair, o)
	})
}

// Rebuild runs Repository.Rebuild for all repositories of the store; see Verify.
func (s *Store) Rebuild(ctx context.Context, options *JobOptions) (tables.Report, error) {
	return s.runAll(ctx, opRebuild, options, rebuildAll)
}

// runAll runs a job on the store's repositories in the order of their names.
func (s *Store) runAll(ctx context.Context, op string, options *JobOptions, run func(context.Context, *engine.Engine, *JobOptions) (tables.Report, error)) (tables.Report, error) {
	o := JobOptions{}
	if options != nil {
		o = *options
	}
	if o.Partitions != nil || o.Patterns != nil || o.Rows != 0 {
		return tables.Report{}, tables.Wiringf(op, "", "JobOptions.Partitions, Patterns or Rows is set, and they belong to one repository; leave them out, or call %s of the repository", op)
	}
	s.mu.Lock()
	all := slices.SortedFunc(slices.Values(s.engines), func(a, b *engine.Engine) int { return cmp.Compare(a.Name(), b.Name()) })
	s.mu.Unlock()
	job := eachof.Job{Op: op, Resume: o.Resume, Progress: o.Progress}
	for _, r := range all {
		job.Names = append(job.Names, r.Name())
	}
	job.Run = func(ctx context.Context, repository int, resume string, progress func(tables.Report)) (tables.Report, error) {
		here := o
		here.Resume, here.Progress = resume, progress
		return run(ctx, all[repository], &here)
	}
	return job.All(ctx)
}
