package harness

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

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
