package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// profiles keeps what has too many properties for an entity.
func profiles() scenario {
	return scenario{
		title: "Profiles of 1,000 answers",
		guide: "Wide entities pattern",
		shows: []show{
			{"Wide entities", "the profile of 000223 in Sales", "", "1,000 properties, never of two editions"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			f, err := c.openFiles(ctx)
			if err != nil {
				return err
			}
			s.Plain = "rows of 250 answers by hand"
			return steps(ctx, s, f.load, f.askByID, f.askByEmail, f.mergeOne, f.refuseStale, f.readBetween, f.check)
		},
	}
}

// files are the profiles of some employees of Sales, June Jones among them, in a table with patterns and in one by hand.
type files struct {
	c        *company
	profiles map[int]*Profile // by employee, as they are stored
	repo     *patterns.Repository[Profile]
	byEmail  *intrapartition.Index[Profile]
	hand     *tables.Table
}

func (c *company) openFiles(ctx context.Context) (*files, error) {
	f := &files{c: c, profiles: map[int]*Profile{}}
	table, err := c.table(ctx, "Profiles")
	if err != nil {
		return nil, err
	}
	if f.hand, err = c.table(ctx, "ProfilesByHand"); err != nil {
		return nil, err
	}
	f.repo, f.byEmail, err = newProfiles(table)
	return f, err
}

func (f *files) june() *Profile { return f.profiles[jones] }

// load writes each profile in one transaction, either way.
func (f *files) load(ctx context.Context, s *section) error {
	var some []*Employee
	for _, e := range f.c.of(sales) {
		if e.ID >= reviewed && e.ID <= jones {
			some = append(some, e)
			f.profiles[e.ID] = newProfile(e, "2012")
		}
	}
	x, err := f.repo.Explain(ctx, driver.ChangeInsert, f.june())
	if err != nil {
		return err
	}
	s.explain("One of the inserts, by Repository.Explain:", x)
	if err := f.c.exposed(s, "profiles inserted", func() (string, error) {
		return fmt.Sprintf("%s, each in 1 transaction with its copy by email", counted(len(some), "profile")),
			together(ctx, some, func(ctx context.Context, e *Employee) error { return insert(ctx, f.repo, f.profiles[e.ID]) })
	}); err != nil {
		return err
	}
	return together(ctx, some, func(ctx context.Context, e *Employee) error {
		x := f.hand.NewTransaction()
		for _, row := range f.profiles[e.ID].byHand() {
			x.Insert(row)
		}
		_, err := x.Commit(ctx)
		return err
	})
}

// rows is how many rows a profile has.
func (f *files) rows(ctx context.Context, p *Profile) (int, error) {
	x, err := f.repo.Explain(ctx, driver.ChangeReplace, p)
	if err != nil {
		return 0, err
	}
	rows := 0
	for _, row := range x.Rows {
		if row.Pattern != "email" {
			rows++
		}
	}
	return rows, nil
}

// ofHand is the query of one profile's rows.
func (f *files) ofHand(department string, n int) tables.Query[tables.Entity] {
	return f.hand.Entities().Query().Partition(department).Rows(compoundkey.Starting("profile", id(n)))
}

// askByID: by hand, one query finds all rows of a profile, which may be of several versions.
func (f *files) askByID(ctx context.Context, s *section) error {
	with := reading(func(ctx context.Context) (*Profile, error) { return f.repo.Get(ctx, profileKey(sales, jones)) })
	without := reading(func(ctx context.Context) (*Profile, error) { return fromHand(f.ofHand(sales, jones).All(ctx)) })
	without.class, without.searched = tables.RangeQuery, answers/inOneRow
	var err error
	if with.searched, err = f.rows(ctx, f.june()); err != nil {
		return err
	}
	return ask(ctx, f.c, s, asked[Profile, profileRecord]{text: fmt.Sprintf("the profile of %06d in Sales", jones), with: with, without: without, record: (*Profile).record})
}

// askByEmail: by hand, the whole partition is read, or an index is kept by hand, too.
func (f *files) askByEmail(ctx context.Context, s *section) error {
	email := f.june().Email
	with := reading(func(ctx context.Context) (*Profile, error) {
		return f.byEmail.Get(ctx, sales, compoundkey.String(email))
	})
	without := reading(func(ctx context.Context) (*Profile, error) {
		first, err := f.hand.Entities().Query().Partition(sales).Where(tables.Eq("Email", email)).Select("Email").First(ctx)
		if err != nil {
			return nil, err
		}
		var n, part int
		if err := compoundkey.Parse(first.Key.Row, "profile", compoundkey.ToInt(&n, 6), compoundkey.ToInt(&part, 2)); err != nil {
			return nil, err
		}
		return fromHand(f.ofHand(sales, n).All(ctx))
	})
	without.class, without.searched = tables.PartitionScan, (len(f.profiles)+1)*answers/inOneRow
	var err error
	if with.searched, err = f.rows(ctx, f.june()); err != nil {
		return err
	}
	return ask(ctx, f.c, s, asked[Profile, profileRecord]{text: "the profile of " + email, with: with, without: without, record: (*Profile).record})
}

// mergeOne changes one of 1,000 answers.
func (f *files) mergeOne(ctx context.Context, s *section) error {
	june := f.june()
	june.Answers[answer(7)] = tables.String("I would rather not say")
	if err := f.c.act(s, "one answer merged", func() (string, error) {
		return "the first row and the one that holds it are written, and their copies", f.repo.Merge(ctx, june, answer(7))
	}); err != nil {
		return err
	}
	return f.c.act(s, "read by email", func() (string, error) {
		got, err := f.byEmail.Get(ctx, sales, compoundkey.String(june.Email))
		return "the copy has it, too", sameProfile(got, june, err)
	})
}

// sameProfile is an error unless the profile that was read is the other one.
func sameProfile(got, want *Profile, err error) error {
	if err != nil {
		return err
	}
	if got.record() != want.record() {
		return fmt.Errorf("profile %d is not as written", want.ID)
	}
	return nil
}

// refuseStale: however many rows there are, there is one ETag.
func (f *files) refuseStale(ctx context.Context, s *section) error {
	stale, err := f.repo.Get(ctx, profileKey(sales, jones))
	if err != nil {
		return err
	}
	june := f.june()
	june.Answers[answer(3)] = tables.Int32(100)
	return f.c.act(s, "two change different answers", func() (string, error) {
		if err := f.repo.Replace(ctx, june); err != nil {
			return "", err
		}
		stale.Answers[answer(answers-2)] = tables.Int32(0)
		if err := f.repo.Replace(ctx, stale); !errors.Is(err, tables.ErrConflict) {
			return "", fmt.Errorf("the second one was not refused: %w", err)
		}
		return "the second one is refused: " + tables.ErrConflict.Error(), nil
	})
}

// interruption is a policy that has something done before the second request of a client.
type interruption struct {
	requests atomic.Int64
	do       func(context.Context) error
}

func (i *interruption) Do(req *policy.Request) (*http.Response, error) {
	if i.requests.Add(1) == 2 {
		if err := i.do(req.Raw().Context()); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// readBetween has a profile replaced between the two requests of its reader: with the pattern, and by hand as the guide reads
// it, row by row.
func (f *files) readBetween(ctx context.Context, s *section) error {
	next := newProfile(f.c.employee(jones), "2013")
	if err := f.c.act(s, "read while another edition is written", func() (string, error) {
		got, err := f.readInterrupted(ctx, next)
		return "the reader looks again, and has the new one", sameProfile(got, next, err)
	}); err != nil {
		return err
	}
	f.profiles[jones] = next
	return f.c.act(s, "the same by hand, row by row", func() (string, error) {
		torn, err := fromHand(f.rowByRow(ctx, func() error { return f.replaceByHand(ctx, next) }))
		if err != nil {
			return "", err
		}
		first, last := torn.editions()
		if first != "2012" || last != "2013" {
			return "", fmt.Errorf("it begins with edition %s and ends with %s", first, last)
		}
		return fmt.Sprintf("what was read begins as the edition of %s and ends as that of %s", first, last), nil
	})
}

// readInterrupted reads June Jones's profile with a client of its own, while another replaces it.
func (f *files) readInterrupted(ctx context.Context, next *Profile) (*Profile, error) {
	next.Meta = f.june().Meta
	account, err := f.c.client(&interruption{do: func(ctx context.Context) error { return f.repo.Replace(ctx, next) }})
	if err != nil {
		return nil, err
	}
	reader, _, err := newProfiles(account.Table(f.repo.Table().Name()))
	if err != nil {
		return nil, err
	}
	return reader.Get(ctx, profileKey(sales, jones))
}

// rowByRow reads June Jones's rows by their keys, and has something done after the first.
func (f *files) rowByRow(ctx context.Context, between func() error) iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for part := 1; part <= answers/inOneRow; part++ {
			row, err := f.hand.Entities().Get(ctx, handKey(sales, jones, part))
			if err == nil && part == 1 {
				err = between()
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (f *files) replaceByHand(ctx context.Context, p *Profile) error {
	x := f.hand.NewTransaction()
	for _, row := range p.byHand() {
		x.ReplaceUnconditional(row)
	}
	_, err := x.Commit(ctx)
	return err
}

// check reads all profiles, and compares all copies.
func (f *files) check(ctx context.Context, s *section) error {
	return f.c.act(s, "all profiles, by Repository.Verify", func() (string, error) {
		found := 0
		for p, err := range f.repo.Query().Partition(sales).All(ctx) {
			if err != nil {
				return "", err
			}
			want := f.profiles[p.ID]
			if want == nil {
				return "", fmt.Errorf("profile %d was never written", p.ID)
			}
			if err := sameProfile(p, want, nil); err != nil {
				return "", err
			}
			found++
		}
		if found != len(f.profiles) {
			return "", fmt.Errorf("%d profiles of %d", found, len(f.profiles))
		}
		return fmt.Sprintf("%s, as written; nothing to repair", counted(found, "profile")), clean(ctx, f.repo)
	})
}
