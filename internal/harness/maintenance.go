package harness

import (
	"context"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// Job is a maintenance run over all entities. P is what one process has.
type Job[P any] struct {
	Name string
	Run  func(context.Context, P) error
}

// RepositoryJobs are Verify, Repair and Rebuild of a repository. Each makes one request at a time: in a schedule, goroutines that
// draw random numbers side by side do not do so in the same order again, and in a walk a history says what is asked next. What a
// run reports is not an error: a writer that has died is one reason for it.
func RepositoryJobs[P, T any](repo func(P) *patterns.Repository[T], lag time.Duration) []Job[P] {
	verify := patterns.VerifyOptions{Lag: lag, Concurrency: 1}
	return []Job[P]{
		{"Verify", func(ctx context.Context, p P) error { return drained(repo(p).Verify(ctx, &verify)) }},
		{"Repair", func(ctx context.Context, p P) error {
			return drained(repo(p).Repair(ctx, &patterns.RepairOptions{VerifyOptions: verify}))
		}},
		{"Rebuild", func(ctx context.Context, p P) error {
			_, err := repo(p).Rebuild(ctx, &patterns.RebuildOptions{Concurrency: 1})
			return err
		}},
	}
}

// drained is the error of a sequence that is read to its end.
func drained[V any](all iter.Seq2[V, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// Keeper is an actor whose processes run jobs, chosen by the seed, beside writers and workers. Half of them meet trouble: a run
// may fail then, and is left to the next one. The others meet none of their own, and none of their runs fails: what concurrent
// writers do is no reason to.
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
				return false, fmt.Errorf("%s beside concurrent writers: %w", job.Name, err)
			}
		}
		return runs == 0, nil
	})
}
