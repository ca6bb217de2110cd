package patterns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// composedWorld is a world with every kind of contribution, of which each process has a repository of its own.
type composedWorld struct {
	table, copies, container string
	key                      [32]byte
	said                     outcomes
}

// composed is what one process has.
type composed struct {
	repo   *patterns.Repository[person]
	copies *tables.Table
	index  *interpartition.Unique[person, compoundkey.Part]
	email  *intrapartition.Unique[person, compoundkey.Part]
	spill  *spilled
}

func (w *composedWorld) start(s *storagetest.Service) (*composed, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	c := &composed{copies: account.Table(w.copies), spill: &spilled{property: "Photo", over: 100, blobs: blobstorage.Container(account, w.container)}}
	key := func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }
	c.index = interpartition.NewUnique("everywhere", key, &interpartition.Options[person]{
		Table:   c.copies,
		Project: []string{"Name"},
	})
	c.email = intrapartition.NewUnique("email", key, nil)
	c.repo, err = patterns.NewRepository(account.Table(w.table), personSchema(), c.index, &sealed{property: "Salary", key: w.key}, c.email, halved{}, c.spill, &tally{})
	return c, err
}

// check returns the text of the only person, "" for none, or what does not fit together: rows, halves, tally, blobs, and the
// copy in the other table, which is settled and right, or marked.
func (w *composedWorld) check(ctx context.Context, s *storagetest.Service) (string, error) {
	c, err := w.start(s)
	if err != nil {
		return "", err
	}
	state, err := w.state(ctx, c)
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
		w := &composedWorld{table: s.TableName(t), container: s.ContainerName(t), copies: s.TableName(t)}
		c := assert.Must[*composed](t)(w.start(s))
		_, err := c.spill.blobs.Create(t.Context(), nil)
		if err := errors.Join(err, c.repo.Table().Create(t.Context()), c.copies.Create(t.Context())); err != nil {
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
// repository.
func TestSweepComposition(t *testing.T) {
	old, changed := personText(ann()), personText(changedAnn())
	for name, c := range map[string]storagetest.SweepCase{
		"Insert": sweptComposition(172, nil, []string{"", old}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.Insert(ctx, ann())
		}),
		"Update": sweptComposition(320, ann(), []string{old, changed}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			_, err := repo.Update(ctx, personSchema().Key(ann()), func(p *person) error {
				now := changedAnn()
				p.Email, p.Salary, p.Photo = now.Email, now.Salary, now.Photo
				return nil
			})
			return err
		}),
		"DeleteUnconditional": sweptComposition(268, ann(), []string{old, ""}, func(ctx context.Context, repo *patterns.Repository[person]) error {
			return repo.DeleteUnconditional(ctx, personSchema().Key(ann()))
		}),
	} {
		c.Every = harness.SweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

// state is the text of the only person, "" for none; or what does not fit together.
func (w *composedWorld) state(ctx context.Context, p *composed) (string, error) {
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

func (w *composedWorld) checkBlobs(ctx context.Context, p *composed, blob string) error {
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
	if blob != "" && !slices.Contains(names, blob) { // others may be left of processes that died
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
