package patterns_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// setSchedule has writers of change sets with three people, and writers of one of them, who take unique keys from one another.
type setSchedule struct {
	setWorld
	harness.Trouble
	changes int // of each writer
}

const (
	setsWritten        = "change sets written"
	composedVisibility = 10 * time.Second
)

func (r *setSchedule) openQueue(s *storagetest.Service) (*eventual.Queue, error) {
	_, _, queue, err := r.start(s)
	return queue, err
}

// stage makes the world and its actors.
func (r *setSchedule) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
	r.table, r.queue, r.changes = s.TableName(t), s.QueueName(t), 3
	r.Faults, r.Deaths, r.Visibility, r.Network = trouble, trouble/5, composedVisibility, s.ClientOptions.Transport
	repo, _, queue, err := r.start(s)
	assert.Check(t, err, repo.Table().Create(t.Context()), queue.Create(t.Context()))
	for id := range 3 {
		assert.Check(t, repo.Insert(t.Context(), setPerson(2*id)))
	}
	var stage explore.Stage
	for range 2 {
		stage.Actors = append(stage.Actors, r.actor(rng.Uint64(), r.changeSet), r.actor(rng.Uint64(), r.changeOne))
	}
	for range 2 {
		stage.Workers = append(stage.Workers, r.Worker(rng.Uint64(), harness.Workers{Open: r.openQueue, Concurrency: 1}))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		time.Sleep(composedVisibility) // what is late has arrived
		err := harness.Drain(ctx, s, composedVisibility, r.openQueue)
		repo, _, _, startErr := r.start(s)
		if err := errors.Join(append(errs, err, startErr)...); err != nil {
			return err
		}
		return harness.Clean(ctx, repo.Verify, &patterns.JobOptions{Lag: 1})
	}
	return stage
}

func (r *setSchedule) actor(seed uint64, change func(context.Context, *patterns.Repository[person], *mathrand.Rand) error) explore.Actor {
	rng, done := mathrand.New(mathrand.NewPCG(seed, 0)), 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		repo, _, _, err := r.start(s)
		for ; err == nil && done < r.changes && !dead(); done++ {
			r.Log.Told(change(ctx, repo, rng))
		}
		return done == r.changes, err
	})
}

// edit gives a person another name, and a unique key that others may have.
func edit(p *person, rng *mathrand.Rand) {
	p.Name, p.Email = fmt.Sprint("name", rng.IntN(2)), fmt.Sprintf("e%d@contoso.com", rng.IntN(6))
}

// changeSet replaces all people in one transaction.
func (r *setSchedule) changeSet(ctx context.Context, repo *patterns.Repository[person], rng *mathrand.Rand) error {
	x := repo.Table().NewTransaction()
	for p, err := range repo.Query().Partition("p0").All(ctx) {
		if err != nil {
			return err
		}
		edit(p, rng)
		repo.StageReplace(x, p)
	}
	if x.Len() == 0 {
		return nil
	}
	_, err := x.Commit(ctx)
	if err == nil {
		r.Log.Add(setsWritten, 1)
	}
	return err
}

// changeOne changes, deletes or inserts one of them.
func (r *setSchedule) changeOne(ctx context.Context, repo *patterns.Repository[person], rng *mathrand.Rand) error {
	p := setPerson(2 * rng.IntN(3))
	edit(p, rng)
	switch rng.IntN(4) {
	case 0:
		return repo.DeleteUnconditional(ctx, repo.KeyOf(p))
	case 1:
		return repo.Upsert(ctx, p)
	}
	_, err := repo.Update(ctx, repo.KeyOf(p), func(old *person) error {
		old.Name, old.Email = p.Name, p.Email
		return nil
	})
	if errors.Is(err, tables.ErrNotFound) {
		return repo.Insert(ctx, p)
	}
	return err
}

// TestScheduleSets: writers of change sets beside writers of single members, and two workers, whose calls fail or arrive late, and who die.
func TestScheduleSets(t *testing.T) {
	log := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(200), Pauses: harness.Pauses(composedVisibility),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			r := &setSchedule{Trouble: harness.Trouble{Log: log}}
			return r.stage(t, s)
		}})
	t.Log(log)
	log.MustHave(t, setsWritten, harness.Unknown, harness.Lost)
}
