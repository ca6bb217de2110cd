package patterns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// durableIntents are intents that outlive every process; a processIntents runs those of one process.
type durableIntents struct {
	mu   sync.Mutex
	next int
	open map[int]intents.Intent
}

func (d *durableIntents) put(intent intents.Intent) (forget func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	id := d.next
	d.open[id] = intent
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, id)
	}
}

// processIntents is the intents.Runner of one process, whose worker is recover.
type processIntents struct {
	*durableIntents
	reconcile func(context.Context, intents.Intent) error // of the process's repository
}

// Register implements intents.Runner.
func (d *processIntents) Register(_ string, reconcile func(context.Context, intents.Intent) error) error {
	d.reconcile = reconcile
	return nil
}

// Run implements intents.Runner. Once the commit is applied the change is made, whether or not its effects could
// be applied at once: the intent is there for the worker.
func (d *processIntents) Run(ctx context.Context, intent intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	forget := d.put(intent)
	err := commit(ctx)
	if !errors.Is(err, tables.ErrUnknownOutcome) && harness.ApplyAndClose(apply)(ctx) == nil {
		forget()
	}
	return err
}

// recover is the worker: it reconciles what is open.
func (d *processIntents) recover(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, intent := range d.open {
		if err := d.reconcile(ctx, intent); err != nil {
			return err
		}
		delete(d.open, id)
	}
	return nil
}

// spikeWorld is a world with every kind of contribution, of which each process has a repository of its own.
type spikeWorld struct {
	table, container string
	key              [32]byte
	intents          *durableIntents
	said             outcomes
}

// spikeProcess is what one process has.
type spikeProcess struct {
	repo    *patterns.Repository[person]
	intents *processIntents
	email   *intrapartition.Index[person]
	spill   *spilled
}

func (w *spikeWorld) open(s *storagetest.Service) (*spikeProcess, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p := &spikeProcess{
		intents: &processIntents{durableIntents: w.intents},
		email:   intrapartition.NewIndex("email", func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }, nil),
		spill:   &spilled{property: "Photo", over: 100, blobs: blobstorage.Container(account, w.container)},
	}
	p.repo, err = patterns.NewRepository(harness.In(account.Table(w.table), p.intents), personSchema(),
		&sealed{property: "Salary", key: w.key}, p.email, halved{}, p.spill, &headcount{})
	return p, err
}

// state is the text of the only person, "" for none; or what does not fit together.
func (w *spikeWorld) state(ctx context.Context, s *storagetest.Service) (string, error) {
	p, err := w.open(s)
	if err != nil {
		return "", err
	}
	rows, err := readStored(ctx, p.repo.Table(), "")
	if err != nil {
		return "", err
	}
	state, blob := "", ""
	var wanted []string
	got, err := p.repo.Get(ctx, personSchema().Key(ann()))
	switch {
	case err == nil:
		email := "email_" + got.Email
		copied, err := p.email.In("red").Get(ctx, compoundkey.String(got.Email))
		if err != nil || personText(copied) != personText(got) {
			return "", fmt.Errorf("by email: %v; own row: %s", err, personText(got))
		}
		state, wanted = personText(got), []string{email, email + "\uFFFB\uFFFB01", "person_0007", "person_0007\uFFFB\uFFFB01"}
		for _, key := range wanted {
			row := rows[tables.Key{Partition: "red", Row: key}]
			if row["_tpWrite"] != rows[got.Key()]["_tpWrite"] {
				return "", fmt.Errorf("row %s is of another write", key)
			}
			blob += unquoted(row["PhotoBlob"]) // in one half of the row, and in one of the copy
		}
		blob = blob[:len(blob)/2]
	case !errors.Is(err, tables.ErrNotFound):
		return "", err
	}
	var found []string
	for key := range rows {
		if key.Row != "tally" {
			found = append(found, key.Row)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, wanted) {
		return "", fmt.Errorf("the rows are %q, and should be %q", found, wanted)
	}
	if n := unquoted(rows[tables.Key{Partition: "red", Row: "tally"}]["N"]); n != fmt.Sprint(len(wanted)/4) && n+state != "" {
		return "", fmt.Errorf("the tally is %q", n)
	}
	return state, w.checkBlobs(ctx, p, blob)
}

func (w *spikeWorld) checkBlobs(ctx context.Context, p *spikeProcess, blob string) error {
	var names []string
	for pager := p.spill.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	if strings.Join(names, " ") != blob {
		return fmt.Errorf("the blobs are %q, and %q is in use", names, blob)
	}
	return nil
}

func personText(p *person) string {
	return fmt.Sprintf("%s/%d %s <%s> earns %d, %.5s of %d", p.Team, p.ID, p.Name, p.Email, p.Salary, p.Photo, len(p.Photo))
}

func changedAnn() *person {
	p := ann()
	p.Email, p.Salary, p.Photo = "ann@fabrikam.com", 92_000, bytes.Repeat([]byte("later"), 300)
	return p
}

// sweptSpike is an operation on Ann; states are as in swept.
func sweptSpike(floor int, before *person, states []string, operate func(ctx context.Context, repo *patterns.Repository[person]) error) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: floor, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := &spikeWorld{table: s.TableName(t), container: s.ContainerName(t), intents: &durableIntents{open: map[int]intents.Intent{}}}
		p := assert.Must[*spikeProcess](t)(w.open(s))
		if err := p.repo.Table().Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.spill.blobs.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			copied := *before
			if err := p.repo.Insert(t.Context(), &copied); err != nil {
				t.Fatal(err)
			}
		}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.open(s)
				if err == nil {
					err = operate(ctx, p.repo)
				}
				w.said.add(err)
				return err
			},
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.open(s)
				if err != nil {
					return err
				}
				return p.intents.recover(ctx)
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				state, err := w.state(ctx, s)
				least, most := w.said.bounds()
				if err != nil {
					return err
				}
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

func TestSweepAllKinds(t *testing.T) {
	old, changed := personText(ann()), personText(changedAnn())
	for name, c := range map[string]storagetest.SweepCase{
		"Insert": sweptSpike(148, nil, []string{"", old}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.Insert(ctx, ann())
		}),
		"Update": sweptSpike(240, ann(), []string{old, changed}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			_, err := repo.Update(ctx, personSchema().Key(ann()), func(p *person) error {
				now := changedAnn()
				p.Email, p.Salary, p.Photo = now.Email, now.Salary, now.Photo
				return nil
			})
			return err
		}),
		"Upsert": sweptSpike(240, ann(), []string{old, changed}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.Upsert(ctx, changedAnn())
		}),
		"DeleteUnconditional": sweptSpike(244, ann(), []string{old, ""}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.DeleteUnconditional(ctx, personSchema().Key(ann()))
		}),
	} {
		c.Every = harness.SweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}
