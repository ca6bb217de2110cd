package patterns

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/internal/bulk"
	"github.com/tablepatterns/tablepatterns/patterns/internal/eachof"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/jobs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// DeleteOptions are the options of Store.DeletePartition; nil is the same as the zero value.
type DeleteOptions struct {
	// RowsPerSecond limits the rows that the job reads and writes, as JobOptions.RowsPerSecond does (default 0: no limit).
	RowsPerSecond int
	// Found gets each entity, row or fact that could not be deleted, with Err or NotRepaired, one call at a time. An error of Found ends the job.
	Found func(Finding) error
	// Progress is called after each transaction of deletes.
	Progress func(tables.Progress)
	// Resume continues an earlier run for the same partition: it is Resume of that run's report.
	Resume string
}

// DeleteReport says what a DeletePartition has deleted.
type DeleteReport struct {
	tables.Run
	Deleted  int64 // entities deleted, each with all that its patterns store
	Repaired int64 // rows and facts deleted whose entity was gone already, such as what an interrupted run has left
	Failed   int64 // what could not be deleted, and was given to Found
}

// String formats the counts that are not 0, without Resume.
func (r DeleteReport) String() string { return tally.Text(r) }

// DeletePartition deletes all entities with this partition key, in all repositories of the store, one repository after
// another: for a tenant who leaves, if the partition key is the tenant's. With each entity goes all that its patterns store elsewhere: copies in
// indexes, lists, blobs, counts, and rows in other partitions. Then it runs Repair for the partition, which deletes what remains of
// entities that are gone, such as copies in other partitions that an earlier run has left when it was interrupted.
//
// End the tenant's writes before: what is written meanwhile may stay. Effects of patterns attached with Async are deleted by the worker (see
// Start), and a blob whose delete failed, or was cut off, by largeentities.Property.Sweep. It does not delete rows that no repository of the store knows, tables of a RunTimeTable, messages of your own
// queues, and backups. It can be interrupted anywhere and run again or resumed.
//
// Requests: for each repository those of a query of the partition, of BulkNonAtomic with BulkDelete, and of Repair with the partition, which
// waits up to 35 seconds if it deletes copies in other partitions, and a query of each index over partitions; if that finds copies which were just
// marked, 35 seconds more and another Repair.
func (s *Store) DeletePartition(ctx context.Context, partition string, options *DeleteOptions) (DeleteReport, error) {
	const op = "DeletePartition"
	o := *cmp.Or(options, &DeleteOptions{})
	if partition == "" {
		return DeleteReport{}, errs.Invalidf(op, "the partition key is empty; give the partition to delete")
	}
	if err := pace.Check("DeleteOptions", o.RowsPerSecond); err != nil {
		return DeleteReport{}, errs.Wiringf(op, "", "%w", err)
	}
	all := s.root().enginesByName()
	job := eachof.Job{Op: op, Of: partition, Names: slices.Sorted(maps.Keys(all)), Resume: o.Resume, Progress: o.Progress}
	job.Run = func(ctx context.Context, repository int, _ string, progress func(tables.Progress)) (tally.Report, error) {
		e := &erasure{DeleteOptions: o, store: s.root(), engine: all[job.Names[repository]], partition: partition}
		e.Progress = progress
		err := e.run(ctx)
		return e.report, err
	}
	return tally.Of[DeleteReport](job.All(ctx))
}

// erasure deletes the entities of one repository in a partition. It needs no position: what it has deleted, a later run does not find.
type erasure struct {
	DeleteOptions
	store     *root
	engine    *engine.Engine
	partition string
	report    tally.Report
	left      []tables.Key // entities that a transaction could not delete, or that cannot be decoded
}

func (e *erasure) run(ctx context.Context) error {
	before := e.report
	_, err := bulk.NonAtomic(ctx, e.engine, e.entities(ctx), &tables.BulkOptions{Verb: tables.BulkDelete, RowsPerSecond: e.RowsPerSecond,
		Refused: func(err *tables.Error) error {
			e.left = append(e.left, err.Key)
			return nil
		},
		Progress: func(r tables.BulkReport) {
			e.report.Deleted = before.Deleted + r.Deleted
			e.Progress(tables.Progress{Read: r.Deleted, Rows: r.Rows})
		}})
	if err != nil {
		return err
	}
	for _, key := range e.left {
		if err := e.delete(pace.With(ctx, e.RowsPerSecond), key); err != nil {
			return err
		}
	}
	if err := e.store.rest.Idle(ctx); err != nil { // copies in other partitions
		return err
	}
	if err := e.repair(ctx); err != nil {
		return err
	}
	copied, err := e.copied(ctx)
	if err != nil || !copied {
		return err
	}
	if lease.Holds(ctx, lease.Terms) { // Repair leaves a fresh mark alone, since a change may be under way; the service gives its time in whole seconds
		if err := backoff.Sleep(ctx, marks.Term+marks.Grace+2*time.Second); err != nil {
			return err
		}
	}
	return e.repair(ctx)
}

// repair deletes what is stored for entities of the partition that are gone.
func (e *erasure) repair(ctx context.Context) error {
	repaired, err := jobs.Run(ctx, e.engine, jobs.Repair, &jobs.Options{Partitions: []string{e.partition}, RowsPerSecond: e.RowsPerSecond, Found: func(f Finding) error {
		if f.Repaired {
			return nil
		}
		return e.failed(f)
	}})
	e.report.Repaired += repaired.Repaired
	return err
}

// copied reports whether an index over partitions still has copies of entities of the partition.
func (e *erasure) copied(ctx context.Context) (bool, error) {
	for _, p := range e.engine.Patterns {
		if p.Outside == nil {
			continue
		}
		copies := tables.Query[tables.Entity](engine.OutsideTable(p).Bags()).Where(tables.Eq(rows.Partition, e.partition)).Select(rows.Partition).AllowTableScan()
		switch _, err := copies.First(pace.With(ctx, e.RowsPerSecond)); {
		case err == nil:
			return true, nil
		case !errors.Is(err, tables.ErrNotFound):
			return false, err
		}
	}
	return false, nil
}

// entities yields the entities of the partition, and notes the keys of those that cannot be decoded.
func (e *erasure) entities(ctx context.Context) func(yield func(any, error) bool) {
	return func(yield func(any, error) bool) {
		for v, err := range core.NewQuery(&e.engine.Primary).Partition(e.partition).All(ctx) {
			if problem, is := errors.AsType[*tables.Error](err); is && problem.OfRow {
				e.left = append(e.left, problem.Key)
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// delete deletes one entity, whatever its version. It returns an error if no other one could be deleted either.
func (e *erasure) delete(ctx context.Context, key tables.Key) error {
	err := e.engine.DeleteUnconditional(ctx, key)
	switch {
	case err == nil:
		e.report.Deleted++
		return nil
	case errors.Is(err, tables.ErrNotFound):
		return nil
	case ctx.Err() != nil, errors.Is(err, tables.ErrUnavailable), errors.Is(err, tables.ErrUnknownOutcome), errors.Is(err, tables.ErrDenied):
		return err
	}
	return e.failed(Finding{Kind: Undecodable, Table: e.engine.Table.Name(), Entity: key, Err: err})
}

func (e *erasure) failed(f Finding) error {
	e.report.Failed++
	if e.Found == nil {
		return nil
	}
	return e.Found(f)
}
