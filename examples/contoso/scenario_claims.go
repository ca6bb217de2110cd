package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	claimed = 1200 // claims of one employee: more than an answer holds
	latest  = 10   // of them
)

// claims has the newest first.
func claims() scenario {
	return scenario{
		title: "The ten latest expense claims",
		guide: "Log tail pattern",
		shows: []show{
			{"Log tail", "the ten latest claims", "", "the newest first, in one request"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			x, err := c.openExpenses(ctx)
			if err != nil {
				return err
			}
			s.Plain = "the same rows, oldest first"
			return steps(ctx, s, x.load, x.askForLatest, x.appendTwice, x.follow)
		},
	}
}

// Claim is of an employee's expenses.
type Claim struct {
	tables.Meta
	logtail.Entry
	Employee int
	Amount   int
}

// claimRecord is what two Claims must have in common to be the same.
type claimRecord struct {
	at               int64
	id               string
	employee, amount int
}

func (c *Claim) record() claimRecord {
	return claimRecord{c.LoggedAt.UnixNano(), c.LogID, c.Employee, c.Amount}
}

// claimant is the partition of an employee's claims.
func claimant(n int) string { return compoundkey.Join("", id(n)) }

// expenses are June Jones's claims, newest first and in a plain table.
type expenses struct {
	c     *company
	now   time.Time // by which claims are stamped
	log   *logtail.Log[Claim]
	plain *patterns.Repository[Claim]
}

func (c *company) openExpenses(ctx context.Context) (*expenses, error) {
	x := &expenses{c: c, now: time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)}
	table, err := c.table(ctx, "Claims")
	if err != nil {
		return nil, err
	}
	if x.log, err = logtail.New(table, logtail.Schema[Claim]{
		Partition: func(c *Claim) string { return claimant(c.Employee) },
		Prefix:    "claim",
		Now:       func() time.Time { return x.now },
	}); err != nil {
		return nil, err
	}
	if table, err = c.table(ctx, "ClaimsPlain"); err != nil {
		return nil, err
	}
	x.plain, err = patterns.NewRepository(table, patterns.Schema[Claim]{
		Key: func(c *Claim) tables.Key {
			return tables.Key{Partition: claimant(c.Employee), Row: compoundkey.Join("claim", compoundkey.Time(c.LoggedAt), compoundkey.String(c.LogID))}
		},
		Rows: compoundkey.Starting("claim"),
	})
	return x, err
}

// load imports what was claimed up to now, every two days.
func (x *expenses) load(ctx context.Context, s *section) error {
	var all, again []*Claim
	for n := range claimed {
		c := &Claim{Employee: jones, Amount: 10 + n*7%90}
		c.LoggedAt = x.now.AddDate(0, 0, 2*(n-claimed))
		if err := x.log.Stamp(c); err != nil {
			return err
		}
		all, again = append(all, c), append(again, &Claim{Entry: c.Entry, Employee: c.Employee, Amount: c.Amount})
	}
	if err := x.c.exposed(s, "claims imported", func() (string, error) {
		done, err := x.log.Repository().BulkNonAtomic(ctx, each(all), nil)
		return counted(int(done.Written), "claim") + " of one employee", err
	}); err != nil {
		return err
	}
	_, err := x.plain.BulkNonAtomic(ctx, each(again), nil)
	return err
}

// askForLatest: where the oldest are first, the newest are found by reading all.
func (x *expenses) askForLatest(ctx context.Context, s *section) error {
	without, err := answering(x.plain.Query().Partition(claimant(jones)))
	if err != nil {
		return err
	}
	without.searched, without.sort, without.top = claimed, newestFirst, latest
	return ask(ctx, x.c, s, asked[Claim, claimRecord]{text: "the ten latest claims", without: without, record: (*Claim).record,
		with: wayTo[Claim]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Claim, error] {
			return func(yield func(*Claim, error) bool) {
				newest, err := x.log.Latest(ctx, claimant(jones), latest)
				if err != nil {
					yield(nil, err)
					return
				}
				each(newest)(yield)
			}
		}}})
}

func newestFirst(a, b *Claim) int { return b.LoggedAt.Compare(a.LoggedAt) }

// appendTwice appends one claim, and once more as a program does that did not hear of the first time.
func (x *expenses) appendTwice(ctx context.Context, s *section) error {
	c := &Claim{Employee: jones, Amount: 80}
	if err := x.log.Stamp(c); err != nil {
		return err
	}
	for _, step := range []struct{ what, outcome string }{
		{"a claim appended", "it is the newest"}, {"the same claim once more", "it is there, and is not made again"},
	} {
		if err := x.c.act(s, step.what, func() (string, error) {
			return step.outcome, x.log.Append(ctx, &Claim{Entry: c.Entry, Employee: c.Employee, Amount: c.Amount})
		}); err != nil {
			return err
		}
	}
	newest, err := x.log.Latest(ctx, claimant(jones), 2)
	if err != nil {
		return err
	}
	if newest[0].record() != c.record() || newest[1].LogID == c.LogID {
		return fmt.Errorf("the newest claim is %+v, and the one before %+v", newest[0].record(), newest[1].record())
	}
	return nil
}

// follow hears of claims as they come, and goes on where another process has stopped.
func (x *expenses) follow(ctx context.Context, s *section) error {
	cursor := ""
	for round, what := range []string{"claims followed", "and by another process, from its cursor"} {
		want := map[string]bool{}
		for n := range 3 {
			x.now = x.now.Add(time.Second)
			c := &Claim{Employee: jones, Amount: 100 + n}
			if err := x.log.Append(ctx, c); err != nil {
				return err
			}
			want[c.LogID] = true
		}
		if err := x.c.act(s, what, func() (string, error) {
			follower, err := x.log.Follower(claimant(jones), cursor, &logtail.FollowOptions{From: x.now.Add(-2500 * time.Millisecond)})
			if err != nil {
				return "", err
			}
			heard := 0
			for c, err := range follower.Poll(ctx) {
				if err != nil {
					return "", err
				}
				if !want[c.LogID] {
					return "", fmt.Errorf("round %d: a claim of %v came, which is no news", round+1, c.LoggedAt)
				}
				heard++
			}
			if heard != len(want) {
				return "", fmt.Errorf("%d claims came, of %d", heard, len(want))
			}
			cursor = follower.Cursor()
			return fmt.Sprintf("%d, each once, oldest first", heard), nil
		}); err != nil {
			return err
		}
	}
	return nil
}
