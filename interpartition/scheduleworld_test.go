package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scheduleWorld is the world of one schedule: writers that move few entities between few keys, which they take from one another,
// and workers. Every process applies its effects at once or leaves them to the workers, as the seed says.
type scheduleWorld struct {
	world
	harness.Trouble
	entities int
	changes  int // of each writer
	repairs  bool
	kept     int // maintenance runs beside them

	mu      sync.Mutex
	refused map[string]bool // names whose writer was told that they were not written
}

// duplicates are keys that two entities have in the end, where that may be.
const duplicates = "duplicates"

// What Repair did.
const (
	removed        = "things removed by Repair"
	repairedCopies = "things repaired by Repair"
)

var (
	scheduleEmails = []string{"", "a", "b", "c"}
	scheduleBadges = []string{"", "x", "y"}
)

// stage makes the world and its actors.
func (r *scheduleWorld) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	r.unique = rng.IntN(2) == 0
	if r.repairs && r.unique {
		// Late requests arrive within the margin of a term that is no shorter than a message is hidden.
		r.term = []time.Duration{visibility, 0}[rng.IntN(2)]
	}
	r.world = *newWorld(t, s, r.kind)
	r.Network, r.Visibility, r.refused = s.ClientOptions.Transport, visibility, map[string]bool{}
	p := harness.Must[*process](t)(r.start(s))
	for id := range r.entities {
		if rng.IntN(4) == 0 {
			continue
		}
		e := &employee{Department: "Sales", ID: id, Name: "first", Email: scheduleEmails[1+id], Badge: scheduleBadges[id%len(scheduleBadges)]}
		if err := p.repo.Insert(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var stage explore.Stage
	for id := range 3 {
		stage.Actors = append(stage.Actors, r.writer(id, rng.Uint64()))
	}
	if r.repairs {
		stage.Actors = append(stage.Actors, r.repairer(rng.Uint64()))
	}
	if r.kept > 0 {
		stage.Actors = append(stage.Actors, harness.Keeper(&r.Trouble, rng.Uint64(), r.kept, r.start,
			harness.RepositoryJobs(func(p *process) *patterns.Repository[employee] { return p.repo }, time.Second)...))
	}
	for id := range 2 {
		// One message at a time: handlers that draw random numbers side by side would not do so in the same order again.
		stage.Workers = append(stage.Workers, r.Worker(rng.Uint64(), harness.Workers{Open: r.openQueue, Concurrency: 1, Runs: id == 0}))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return r.check(ctx, s)
	}
	return stage
}

// writer changes entities.
func (r *scheduleWorld) writer(id int, seed uint64) explore.Actor {
	rng, done := mathrand.New(mathrand.NewPCG(seed, 0)), 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		own := r.world
		own.async = rng.IntN(2) == 0
		p, err := own.start(s)
		for ; err == nil && done < r.changes && !dead(); done++ {
			r.change(ctx, p, rng, fmt.Sprintf("w%d.%d", id, done))
		}
		return done == r.changes, err
	})
}

// repairer runs Repair again and again, with a Lag that is as short as callers can make it.
func (r *scheduleWorld) repairer(seed uint64) explore.Actor {
	runs := 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		p, err := r.start(s)
		for ; err == nil && runs < 3 && !dead(); runs++ {
			found, failed := harness.Findings(ctx, p.repo.Repair, &patterns.JobOptions{Lag: 1, Concurrency: 1})
			if failed != nil {
				r.Log.Add("failed repairs", 1)
			}
			for _, f := range found {
				switch {
				case f.Repaired && f.Kind == patterns.Spurious:
					r.Log.Add(removed, 1)
				case f.Repaired:
					r.Log.Add(repairedCopies, 1)
				}
			}
		}
		return runs == 3, err
	})
}

// change makes one change, or two that hand a key over from one entity to another.
func (r *scheduleWorld) change(ctx context.Context, p *process, rng *mathrand.Rand, name string) {
	e := &employee{Department: "Sales", ID: rng.IntN(r.entities), Name: name,
		Email: scheduleEmails[rng.IntN(len(scheduleEmails))], Badge: scheduleBadges[rng.IntN(len(scheduleBadges))]}
	key := keyOf(e)
	edit := func(old *employee) error {
		old.Name, old.Email, old.Badge = e.Name, e.Email, e.Badge
		return nil
	}
	var err error
	switch rng.IntN(9) {
	case 0:
		err = p.repo.Insert(ctx, e)
	case 1:
		err = p.repo.Upsert(ctx, e)
	case 2:
		err = p.repo.DeleteUnconditional(ctx, key)
	case 3:
		_, err = p.repo.Update(ctx, key, edit)
	case 4:
		err = r.handOver(ctx, p, e, rng)
	case 5:
		err = harness.ReadAnd(ctx, p.repo, key, edit, p.repo.Delete)
	case 6:
		err = harness.ReadAnd(ctx, p.repo, key, edit, func(ctx context.Context, e *employee) error { return p.repo.Merge(ctx, e, "Name", "Email") })
	case 7:
		var found *employee
		if found, err = p.email.In("Sales").Get(ctx, compoundkey.String("a")); err == nil {
			edit(found)
			err = p.repo.Replace(ctx, found)
		}
	default:
		err = harness.ReadAnd(ctx, p.repo, key, edit, p.repo.Replace)
	}
	r.told(name, err)
}

// handOver takes another entity's email for e.
func (r *scheduleWorld) handOver(ctx context.Context, p *process, e *employee, rng *mathrand.Rand) error {
	giver, err := p.repo.Get(ctx, tables.Key{Partition: "Sales", Row: keyOf(&employee{ID: (e.ID + 1) % r.entities}).Row})
	if err != nil {
		return err
	}
	e.Email = giver.Email
	giver.Name, giver.Email = e.Name+"-giver", scheduleEmails[rng.IntN(len(scheduleEmails))]
	err = p.repo.Replace(ctx, giver)
	r.told(giver.Name, err)
	if err != nil {
		return err
	}
	return p.repo.Upsert(ctx, e)
}

// told notes what a writer was told of a change.
func (r *scheduleWorld) told(name string, err error) {
	if r.Log.Told(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused[name] = true
	}
}
