package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// composedWorld is a spikeWorld with a real queue, whose repository has copies in another table besides all other kinds of
// contribution.
type composedWorld struct {
	spikeWorld
	copies, queue string
}

// composed is what one process has.
type composed struct {
	repo   *patterns.Repository[person]
	queue  *eventual.Queue
	copies *tables.Table
	index  *interpartition.Index[person]
	spill  *spilled
}

const composedVisibility = 10 * time.Second

func (w *composedWorld) start(s *storagetest.Service) (*composed, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	c := &composed{copies: account.Table(w.copies), spill: &spilled{property: "Photo", over: 100, blobs: blobstorage.Container(account, w.container)}}
	if c.queue, err = eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: composedVisibility}); err != nil {
		return nil, err
	}
	key := func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }
	c.index = interpartition.NewIndex("everywhere", key, &interpartition.Options[person]{
		Table:   c.copies,
		Project: []string{"Name"},
		Unique:  true,
	})
	c.repo, err = patterns.NewRepository(harness.In(account.Table(w.table), c.queue), personSchema(), c.index,
		&sealed{property: "Salary", key: w.key}, intrapartition.NewIndex("email", key, nil), halved{}, c.spill, &headcount{})
	return c, err
}

// drain lets every message appear and a worker handle them, until none is left.
func (w *composedWorld) drain(ctx context.Context, s *storagetest.Service) error {
	for range 5 {
		s.Wait(composedVisibility + time.Second)
		c, err := w.start(s)
		if err != nil {
			return err
		}
		worker, err := eventual.NewWorker(c.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1000})
		if err != nil {
			return err
		}
		if _, err := worker.Drain(ctx); err != nil {
			return err
		}
		if n, err := c.queue.Length(ctx); err != nil || n == 0 {
			return err
		}
	}
	return errors.New("the queue does not get empty")
}

// check returns the text of the only person, "" for none, or what does not fit together: rows, halves, tally, blobs, and the
// copy in the other table, which is settled and right, or marked.
func (w *composedWorld) check(ctx context.Context, s *storagetest.Service) (string, error) {
	state, err := w.state(ctx, s)
	if err != nil {
		return "", err
	}
	c, err := w.start(s)
	if err != nil {
		return "", err
	}
	now, err := c.repo.Get(ctx, personSchema().Key(ann()))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return "", err
	}
	rows, err := readStored(ctx, c.copies, "")
	if err != nil {
		return "", err
	}
	for key, row := range rows {
		if row["_tpMark"] == "" && (now == nil || key.Row != now.Email || unquoted(row["Name"]) != now.Name) {
			return "", fmt.Errorf("the settled copy %v is %v, of %+v", key, row, now)
		}
	}
	for _, p := range []*person{ann(), changedAnn()} {
		found, err := c.index.Get(ctx, compoundkey.String(p.Email))
		switch wanted := now != nil && now.Email == p.Email; {
		case err != nil && !errors.Is(err, tables.ErrNotFound):
			return "", err
		case wanted != (err == nil) || wanted && found.Name != now.Name:
			return "", fmt.Errorf("under %s there is %+v, %v, and the entity is %+v", p.Email, found, err, now)
		}
	}
	return state, nil
}

// sweptComposition is an operation on Ann; states are as in swept.
func sweptComposition(floor int, before *person, states []string, operate func(ctx context.Context, repo *patterns.Repository[person]) error) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: floor, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := &composedWorld{spikeWorld: spikeWorld{table: s.TableName(t), container: s.ContainerName(t),
			intents: &durableIntents{open: map[int]intents.Intent{}}}, copies: s.TableName(t), queue: s.QueueName(t)}
		c := assert.Must[*composed](t)(w.start(s))
		_, err := c.spill.blobs.Create(t.Context(), nil)
		if err := errors.Join(err, c.repo.Table().Create(t.Context()), c.copies.Create(t.Context()), c.queue.Create(t.Context())); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			copied := *before
			if err := c.repo.Insert(t.Context(), &copied); err != nil {
				t.Fatal(err)
			}
		}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				c, err := w.start(s)
				if err == nil {
					err = operate(ctx, c.repo)
				}
				w.said.add(err)
				return err
			},
			Recover: w.drain,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				state, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				least, most := w.said.bounds()
				for n := least; n <= most; n++ {
					if state == states[min(n, len(states)-1)] {
						return nil
					}
				}
				return fmt.Errorf("between %d and %d attempts were applied, and there is %q; they said %q", least, most, state, w.said.errs)
			},
		}
	}}
}

// TestSweepComposition: copies in the partition and outside of it, transformers, a layout, a shared row and blobs, all on one
// repository whose intents go over a real queue.
func TestSweepComposition(t *testing.T) {
	old, changed := personText(ann()), personText(changedAnn())
	for name, c := range map[string]storagetest.SweepCase{
		"Insert": sweptComposition(264, nil, []string{"", old}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.Insert(ctx, ann())
		}),
		"Update": sweptComposition(412, ann(), []string{old, changed}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			_, err := repo.Update(ctx, personSchema().Key(ann()), func(p *person) error {
				now := changedAnn()
				p.Email, p.Salary, p.Photo = now.Email, now.Salary, now.Photo
				return nil
			})
			return err
		}),
		"DeleteUnconditional": sweptComposition(360, ann(), []string{old, ""}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.DeleteUnconditional(ctx, personSchema().Key(ann()))
		}),
	} {
		c.Every = harness.SweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}
