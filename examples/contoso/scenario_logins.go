package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	loginDays = 90 // before today
	keptDays  = 60 // of them, and the rest of a week
	loggingIn = 20 // employees, once a day each
)

// logins go by the table when they are old.
func logins() scenario {
	return scenario{
		title: "Login requests of 90 days, of which 60 are kept",
		guide: "High volume delete pattern",
		shows: []show{
			{"High volume delete", "the old weeks dropped", "the same in the plain table, by hand", "old data goes by the table"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			g, err := c.openGate(ctx)
			if err != nil {
				return err
			}
			s.Plain = "one table for all days"
			return steps(ctx, s, g.load, g.firstOfWeek, g.askForMonth, g.plan, g.drop, g.dropByHand, g.refuseLate, g.check)
		},
	}
}

// Login is a request to log in.
type Login struct {
	tables.Meta
	Employee int
	At       time.Time
	Address  string
}

// loginRecord is what two Logins must have in common to be the same.
type loginRecord struct {
	employee int
	at       int64
	address  string
}

func (l *Login) record() loginRecord { return loginRecord{l.Employee, l.At.UnixNano(), l.Address} }

func newLogin(employee int, at time.Time) *Login {
	return &Login{Employee: employee, At: at, Address: fmt.Sprintf("10.0.%d.%d", employee/250, employee%250)}
}

func openLogins(table *tables.Table) (*patterns.Repository[Login], error) {
	return patterns.NewRepository(table, patterns.Schema[Login]{
		Key: func(l *Login) tables.Key {
			return tables.Key{Partition: sender(l.Employee), Row: compoundkey.Join("at", compoundkey.Time(l.At))}
		},
		Rows: compoundkey.Starting("at"),
	})
}

// gate is the same logins in a table for each week, and in one for all.
type gate struct {
	c      *company
	now    time.Time
	weeks  *highvolumedelete.Tables[Login]
	plain  *patterns.Repository[Login]
	stored int // in the weeks
	mark   time.Time
}

func (c *company) openGate(ctx context.Context) (*gate, error) {
	g := &gate{c: c, now: time.Date(2014, 8, 22, 12, 0, 0, 0, time.UTC)} // a Friday
	name := c.prefix + "Logins"
	var err error
	g.weeks, err = highvolumedelete.New(c.account, highvolumedelete.Schema[Login]{
		Name: name, Unit: highvolumedelete.Week, RowOrder: highvolumedelete.OldestFirst,
		Time: func(l *Login) time.Time { return l.At },
		Open: openLogins,
		Now:  func() time.Time { return g.now },
	})
	if err != nil {
		return nil, err
	}
	c.tables = append(c.tables, name+"W...", g.weeks.Control().Name())
	c.drops = append(c.drops, drop{"a table " + name + "...", g.dropAll})
	plain, err := c.table(ctx, "LoginsPlain")
	if err != nil {
		return nil, err
	}
	g.plain, err = openLogins(plain)
	return g, err
}

// dropAll drops the tables of all weeks, at the end of the run. What is not there is no error.
func (g *gate) dropAll(ctx context.Context) error {
	names, err := g.weeks.List(ctx)
	if err != nil {
		return err
	}
	for _, name := range append(names, g.weeks.Control().Name()) {
		if err := g.c.account.Table(name).Drop(ctx); err != nil && !errors.Is(err, tables.ErrMissingResource) {
			return err
		}
	}
	return nil
}

// first is the time of the oldest login.
func (g *gate) first() time.Time { return g.now.AddDate(0, 0, -loginDays).Truncate(24 * time.Hour) }

// load imports the weeks before this one, and the same into the plain table.
func (g *gate) load(ctx context.Context, s *section) error {
	weeks := map[string][]*Login{}
	var names []string
	var inPlain []*Login
	for day := g.first(); g.now.Sub(day) >= 5*24*time.Hour; day = day.AddDate(0, 0, 1) {
		name, err := g.weeks.TableName(day)
		if err != nil {
			return err
		}
		if weeks[name] == nil {
			names = append(names, name)
		}
		for _, e := range g.c.staff[jones-loggingIn : jones] {
			at := day.Add(8*time.Hour + time.Duration(e.ID)*time.Second)
			weeks[name], inPlain = append(weeks[name], newLogin(e.ID, at)), append(inPlain, newLogin(e.ID, at))
		}
	}
	if err := g.c.exposed(s, "logins imported", func() (string, error) {
		if err := again(ctx, func() error { return g.weeks.Prepare(ctx, g.first(), g.now.AddDate(0, 0, -5)) }); err != nil {
			return "", err
		}
		for _, name := range names {
			repo, err := g.weeks.Repository(weeks[name][0].At)
			if err != nil {
				return "", err
			}
			if _, err := repo.BulkNonAtomic(ctx, each(weeks[name]), nil); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s in %d tables, one a week", counted(len(inPlain), "login"), len(names)), nil
	}); err != nil {
		return err
	}
	g.stored = len(inPlain)
	_, err := g.plain.BulkNonAtomic(ctx, each(inPlain), nil)
	return err
}

// firstOfWeek: who inserts thinks of no table.
func (g *gate) firstOfWeek(ctx context.Context, s *section) error {
	for i, what := range []string{"the first login of a week", "the next one"} {
		l := newLogin(jones, g.now.Add(time.Duration(i)*time.Second))
		if err := g.c.act(s, what, func() (string, error) {
			name, err := g.weeks.TableName(l.At)
			if err != nil {
				return "", err
			}
			return "in table ..." + name[len(name)-len("W20140818"):], g.weeks.Insert(ctx, l)
		}); err != nil {
			return err
		}
		g.stored++
		if err := g.plain.Insert(ctx, newLogin(l.Employee, l.At)); err != nil {
			return err
		}
	}
	return nil
}

// askForMonth asks over the weeks: that is what many tables cost.
func (g *gate) askForMonth(ctx context.Context, s *section) error {
	from, to := time.Date(2014, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2014, 8, 1, 0, 0, 0, 0, time.UTC)
	without, err := answering(g.plain.Query().Partition(sender(jones)).Rows(between(from, to).Under("at")))
	if err != nil {
		return err
	}
	return ask(ctx, g.c, s, asked[Login, loginRecord]{text: "her logins of July", without: without, record: (*Login).record,
		with: wayTo[Login]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Login, error] {
			return g.weeks.Between(ctx, from, to, &highvolumedelete.ReadOptions[Login]{Partitions: []string{sender(jones)}})
		}}})
}

func (g *gate) before() time.Time { return g.now.AddDate(0, 0, -keptDays) }

// plan tells what a drop would do.
func (g *gate) plan(ctx context.Context, s *section) error {
	return g.c.act(s, "what there is to drop, by a dry run", func() (string, error) {
		report, err := g.weeks.Drop(ctx, g.before(), &highvolumedelete.DropOptions{DryRun: true, Count: true})
		if err != nil {
			return "", err
		}
		g.mark = report.Mark
		return fmt.Sprintf("%s with %s, which take %s to find and delete in them", counted(len(report.Tables), "table"),
			counted(int(report.Rows), "row"), counted(int(report.Instead), "request")), nil
	})
}

// drop needs no time of grace here, where nobody writes meanwhile.
func (g *gate) drop(ctx context.Context, s *section) error {
	return g.c.act(s, "the old weeks dropped", func() (string, error) {
		report, err := g.weeks.Drop(ctx, g.before(), &highvolumedelete.DropOptions{UnsafeGrace: -1})
		if err == nil && (!report.Mark.Equal(g.mark) || len(report.Tables) == 0) {
			return "", fmt.Errorf("%d tables before %v were dropped, the plan was before %v", len(report.Tables), report.Mark, g.mark)
		}
		return fmt.Sprintf("%s, all before %s", counted(len(report.Tables), "table"), report.Mark.Format(time.DateOnly)), err
	})
}

// dropByHand finds the same rows in the plain table, and deletes them in transactions.
func (g *gate) dropByHand(ctx context.Context, s *section) error {
	return g.c.act(s, "the same in the plain table, by hand", func() (string, error) {
		rows := g.plain.Table().Entities()
		old, err := collect(rows.Query().Where(tables.Lt("At", g.mark)).Select("At").AllowTableScan().All(ctx))
		if err != nil {
			return "", err
		}
		transactions := 0
		for len(old) > 0 {
			x := g.plain.Table().NewTransaction()
			for _, row := range old[:min(len(old), tables.MaxTransactionOperations)] {
				if row.Key.Partition != old[0].Key.Partition {
					break
				}
				x.DeleteUnconditional(row.Key)
			}
			if _, err := x.Commit(ctx); err != nil {
				return "", err
			}
			old = old[x.Len():]
			transactions++
		}
		return "a table scan and " + counted(transactions, "transaction"), nil
	})
}

// refuseLate: what comes late for a week that was dropped does not bring its table back.
func (g *gate) refuseLate(ctx context.Context, s *section) error {
	return g.c.act(s, "a login of a dropped week", func() (string, error) {
		if err := g.weeks.Insert(ctx, newLogin(jones, g.first().Add(9*time.Hour))); !errors.Is(err, highvolumedelete.ErrLate) {
			return "", fmt.Errorf("it was not refused: %w", err)
		}
		return "refused: " + highvolumedelete.ErrLate.Error(), nil
	})
}

// check reads what is left both ways, employee by employee.
func (g *gate) check(ctx context.Context, s *section) error {
	return g.c.act(s, "all that is left, both ways", func() (string, error) {
		found := 0
		for _, e := range g.c.staff[jones-loggingIn : jones] {
			with, err := collect(g.weeks.Between(ctx, g.mark, g.now.AddDate(0, 0, 1), &highvolumedelete.ReadOptions[Login]{Partitions: []string{sender(e.ID)}}))
			if err != nil {
				return "", err
			}
			without, err := collect(g.plain.Query().Partition(sender(e.ID)).All(ctx))
			if err != nil {
				return "", err
			}
			if err := sameAnswers(with, without, (*Login).record); err != nil {
				return "", err
			}
			if kept := with[0].At; g.now.Sub(kept) < keptDays*24*time.Hour {
				return "", fmt.Errorf("the oldest login of employee %d is of %v", e.ID, kept)
			}
			found += len(with)
		}
		return fmt.Sprintf("%s of %s, the same", counted(found, "login"), grouped(g.stored)), nil
	})
}
