package patterns_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// setWorld has people with a unique index, an index that is not unique, a list, and notes by way of a queue, all outside of their partition.
type setWorld struct {
	table, queue string
	idle         bool // no worker runs
}

// setPeople is how many people the sweeps of sets have, in two partitions.
const setPeople = 5

func setPerson(id int) *person {
	p := ann()
	p.ID, p.Name, p.Email, p.Photo = id, fmt.Sprint("old", id%2), fmt.Sprintf("p%d@contoso.com", id), nil
	return p
}

func setSchema() patterns.Schema[person] {
	return patterns.Schema[person]{Prefix: "person", MaxAttempts: 40, Key: func(p *person) tables.Key {
		return tables.Key{Partition: fmt.Sprint("p", p.ID%2), Row: compoundkey.Join("person", compoundkey.Int(p.ID, 6))}
	}}
}

// start opens the repository, and the queue. bare is the repository without patterns.
func (w *setWorld) start(s *storagetest.Service) (repo, bare *patterns.Repository[person], queue *eventual.Queue, err error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, nil, nil, err
	}
	if queue, err = eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: composedVisibility}); err != nil {
		return nil, nil, nil, err
	}
	if bare, err = patterns.NewRepository(account.Table(w.table), setSchema()); err != nil {
		return nil, nil, nil, err
	}
	repo, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), setSchema(),
		interpartition.NewUnique("email", func(p *person) string { return p.Email }, nil),
		interpartition.NewIndex("name", func(p *person) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(p.Name), compoundkey.Int(p.ID, 6))
		}, nil),
		indexentities.NewInTable("names", func(p *person) string { return p.Name }, nil, nil),
		&notes[person]{name: "notes", table: account.Table(w.table), text: func(p *person) string { return p.Name }})
	return repo, bare, queue, err
}

// swept is an operation on people. check gets the people that there are at the end.
func (w setWorld) swept(floor int, linked bool, operate func(ctx context.Context, repo *patterns.Repository[person]) error,
	check func(people map[int]*person, end storagetest.Ending) error, after func(ctx context.Context, repo *patterns.Repository[person], end storagetest.Ending) error) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: floor, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w.table, w.queue = s.TableName(t), s.QueueName(t)
		repo, bare, queue, err := w.start(s)
		assert.Check(t, err, repo.Table().Create(t.Context()), queue.Create(t.Context()))
		if linked {
			bare = repo
		}
		_, err = bare.BulkNonAtomic(t.Context(), bulkOf(setPerson), nil)
		assert.Check(t, err, harness.DrainNow(t.Context(), queue))
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				repo, _, _, err := w.start(s)
				if err == nil {
					err = operate(ctx, repo)
				}
				return err
			},
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				if w.idle {
					return nil
				}
				return harness.Drain(ctx, s, composedVisibility, func(s *storagetest.Service) (*eventual.Queue, error) {
					_, _, queue, err := w.start(s)
					return queue, err
				})
			},
			Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
				repo, _, _, err := w.start(s)
				if err == nil && after != nil {
					err = after(ctx, repo, end)
				}
				if err == nil {
					err = harness.Clean(ctx, repo.Verify, &patterns.JobOptions{Lag: 1})
				}
				if err != nil {
					return err
				}
				people := map[int]*person{}
				for p, err := range repo.Query().AllowTableScan().All(ctx) {
					if err != nil {
						return err
					}
					people[p.ID] = p
				}
				return check(people, end)
			},
		}
	}}
}

// bulkOf yields all people.
func bulkOf(of func(id int) *person) func(func(*person, error) bool) {
	return func(yield func(*person, error) bool) {
		for id := range setPeople {
			if !yield(of(id), nil) {
				return
			}
		}
	}
}

// allAre requires each person in the old or the new state, and after a success in the new one.
func allAre(old, now string) func(map[int]*person, storagetest.Ending) error {
	return func(people map[int]*person, end storagetest.Ending) error {
		for id := range setPeople {
			state := ""
			if p := people[id]; p != nil {
				state = p.Name[:3]
			}
			if state != now && (end.Succeeded() || state != old) {
				return fmt.Errorf("person %d is %q", id, state)
			}
		}
		return nil
	}
}

// sweepRebuild is a Rebuild of all copies and lists. If it is interrupted, the next one does the rest.
func (w setWorld) sweepRebuild(floor int) storagetest.SweepCase {
	rebuild := func(ctx context.Context, repo *patterns.Repository[person]) error {
		report, err := repo.Rebuild(ctx, &patterns.JobOptions{Concurrency: 1})
		if err == nil && report.Failed > 0 {
			err = fmt.Errorf("%+v", report)
		}
		return err
	}
	return w.swept(floor, false, rebuild, allAre("old", "old"), func(ctx context.Context, repo *patterns.Repository[person], end storagetest.Ending) error {
		if end.Succeeded() {
			return nil
		}
		return rebuild(ctx, repo)
	})
}

// sweepBulk is a bulk change that reads the people first, if the verb is for stored ones.
func (w setWorld) sweepBulk(floor int, verb tables.BulkVerb) storagetest.SweepCase {
	operate := func(ctx context.Context, repo *patterns.Repository[person]) error {
		options := &tables.BulkOptions{Verb: verb, Concurrency: 1}
		people := bulkOf(func(id int) *person {
			p := setPerson(id)
			p.Name = fmt.Sprint("new", id%2)
			return p
		})
		if verb != tables.BulkUpsert {
			stored := map[int]*person{}
			for p, err := range repo.Query().AllowTableScan().All(ctx) {
				if err != nil {
					return err
				}
				p.Name = fmt.Sprint("new", p.ID%2)
				stored[p.ID] = p
			}
			people = func(yield func(*person, error) bool) {
				for id := range setPeople {
					if p := stored[id]; p != nil && !yield(p, nil) {
						return
					}
				}
			}
		}
		if verb == tables.BulkMerge {
			options.Properties = []string{"Name"}
		}
		_, err := repo.BulkNonAtomic(ctx, people, options)
		return err
	}
	now := "new"
	if verb == tables.BulkDelete {
		now = ""
	}
	// After a failure the run is repeated: it changes who is still as before.
	return w.swept(floor, true, operate, allAre(now, now), func(ctx context.Context, repo *patterns.Repository[person], end storagetest.Ending) error {
		if err := harness.Clean(ctx, repo.Verify, &patterns.JobOptions{Lag: 1}); err != nil || end.Succeeded() {
			return err
		}
		return operate(ctx, repo)
	})
}

// TestSweepSets breaks Rebuild and the verbs of bulk changes at every storage call, with copies, lists and notes. Whatever breaks, workers leave what follows from the entities, and the next run does the rest.
func TestSweepSets(t *testing.T) {
	w := setWorld{}
	for name, c := range map[string]storagetest.SweepCase{
		"Rebuild":     w.sweepRebuild(640),
		"BulkReplace": w.sweepBulk(1472, tables.BulkReplace),
		"BulkMerge":   w.sweepBulk(1568, tables.BulkMerge),
		"BulkUpsert":  w.sweepBulk(1536, tables.BulkUpsert),
		"BulkDelete":  w.sweepBulk(1332, tables.BulkDelete),
	} {
		if c.Every = 1; !harness.Thorough() {
			c.Every = 211
		}
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

// TestSweepSetsCanFail: without workers the sweeps find entities whose copies are stale.
func TestSweepSetsCanFail(t *testing.T) {
	if os.Getenv(careless) != "" {
		c := setWorld{idle: true}.sweepBulk(0, tables.BulkReplace)
		c.Every, c.Callers = 11, []storagetest.Caller{storagetest.ProcessDies}
		storagetest.Sweep(t, c)
		return
	}
	cmd := exec.CommandContext(t.Context(), assert.Must[string](t)(os.Executable()), "-test.run=^TestSweepSetsCanFail$", "-test.v")
	cmd.Env = append(os.Environ(), careless+"=1")
	out, err := cmd.CombinedOutput()
	said := regexp.MustCompile(`sweep TestSweepSetsCanFail: [^\n]*[1-9]\d* divergences`).FindString(string(out))
	if err == nil || said == "" {
		t.Fatalf("a change without workers was not caught: %v\n%s", err, out)
	}
	t.Log("as expected: " + said)
}
