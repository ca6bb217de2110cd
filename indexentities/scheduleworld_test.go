package indexentities_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// scheduleWorld is the world of one schedule: writers that move few entities between few values.
type scheduleWorld struct {
	world
	harness.Trouble
	entities int
	changes  int // of each writer
	kept     int // maintenance runs beside them

	mu      sync.Mutex
	refused map[string]bool // notes whose writer was told that they were not written
}

func scheduleNames() []string { return []string{"", "a", "b", "c"} }

// term is longer than any change may take.
const term = 40 * time.Second

// stage makes the world and its actors.
func (r *scheduleWorld) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	r.open(t, s)
	r.Network, r.Visibility, r.refused = s.ClientOptions.Transport, term, map[string]bool{}
	p := assert.Must[*process](t)(r.start(s))
	for id := range r.entities {
		if err := p.repo.Insert(t.Context(), with(id, pick(rng, scheduleNames()))); err != nil {
			t.Fatal(err)
		}
	}
	var stage explore.Stage
	for id := range 3 {
		stage.Actors = append(stage.Actors, r.writer(id, rng.Uint64()))
	}
	if r.kept > 0 {
		stage.Actors = append(stage.Actors, harness.Keeper(&r.Trouble, rng.Uint64(), r.kept, r.start,
			harness.RepositoryJobs(func(p *process) *patterns.Repository[employee] { return p.repo }, time.Second)...))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return r.checkFinal(ctx, s)
	}
	return stage
}

// checkFinal compares the lists with the entities once nobody writes any more.
func (r *scheduleWorld) checkFinal(ctx context.Context, s *storagetest.Service) error {
	time.Sleep(term) // what is late has arrived
	found, err := r.check(ctx, s)
	if err != nil {
		return err
	}
	for key, text := range found {
		_, note, _ := strings.Cut(text, ": ")
		if r.refused[note] {
			return fmt.Errorf("%v is %q, of which its writer was told that it was not written", key, text)
		}
	}
	return nil
}

func pick(rng *mathrand.Rand, of []string) string { return of[rng.IntN(len(of))] }

// writer changes entities.
func (r *scheduleWorld) writer(id int, seed uint64) explore.Actor {
	rng, done := mathrand.New(mathrand.NewPCG(seed, 0)), 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		p, err := r.start(s)
		for ; err == nil && done < r.changes && !dead(); done++ {
			r.change(ctx, p, rng, fmt.Sprintf("w%d.%d", id, done))
		}
		return done == r.changes, err
	})
}

// change makes one change.
func (r *scheduleWorld) change(ctx context.Context, p *process, rng *mathrand.Rand, note string) {
	e := with(rng.IntN(r.entities), pick(rng, scheduleNames()))
	e.Note = note
	key := keyOf(e)
	edit := func(old *employee) error {
		old.Note, old.LastName = e.Note, e.LastName
		return nil
	}
	var err error
	switch rng.IntN(7) {
	case 0:
		err = p.repo.Insert(ctx, e)
	case 1:
		err = p.repo.Upsert(ctx, e)
	case 2:
		err = p.repo.DeleteUnconditional(ctx, key)
	case 3, 4:
		_, err = p.repo.Update(ctx, key, edit)
	case 5:
		err = harness.ReadAnd(ctx, p.repo, key, edit, func(ctx context.Context, e *employee) error { return p.repo.Merge(ctx, e, "Note", "LastName") })
	default:
		err = harness.ReadAnd(ctx, p.repo, key, edit, p.repo.Replace)
	}
	if r.Log.Told(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused[note] = true
	}
}
