package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inNames is how many employees the scenario takes, June Jones among them: the last ones of those who are always there.
const inNames = 125

// names finds employees by last name, which many share, through lists of their keys: the guide's three options at once.
func names() scenario {
	return scenario{
		title: "Employees by last name",
		guide: "Index entities pattern",
		shows: []show{
			{"Index entities", "Jones anywhere, by row (option 3)", "", "only who matches is read; lists are exact"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			r, err := c.openRoster(ctx)
			if err != nil {
				return err
			}
			return steps(ctx, s, r.hireAndDismiss, r.load, r.askInDepartment, r.askAnywhere, r.count, r.changeName, r.check)
		},
	}
}

// roster is employees in a table with lists of their keys for each last name, and in a plain one.
type roster struct {
	c     *company
	staff []*Employee // as they are stored
	repo  *patterns.Repository[Employee]
	plain *patterns.Repository[Employee] // the same employees, without lists

	blobs   *indexentities.InBlobs[Employee]     // option 1: a blob for each name of the organisation
	beside  *indexentities.InPartition[Employee] // option 2: rows lastname_Jones beside the department's employees
	outside *indexentities.InTable[Employee]     // option 3: one partition of a table of its own for the organisation
}

func lastName(e *Employee) compoundkey.Part { return compoundkey.String(e.LastName) }

// besideEmployees is the index of option 2.
func besideEmployees() *indexentities.InPartition[Employee] {
	return indexentities.NewInPartition("lastname", lastName)
}

func (c *company) openRoster(ctx context.Context) (*roster, error) {
	r := &roster{c: c, beside: besideEmployees()}
	employees, err := c.table(ctx, "Names")
	if err != nil {
		return nil, err
	}
	lists, err := c.table(ctx, "NamesLists")
	if err != nil {
		return nil, err
	}
	plain, err := c.table(ctx, "NamesPlain")
	if err != nil {
		return nil, err
	}
	blobs, err := c.container(ctx, "names")
	if err != nil {
		return nil, err
	}
	organisation := func(*Employee) string { return indexentities.Global }
	r.outside = indexentities.NewInTable("lastname-row", lastName, lists, &indexentities.Options[Employee]{Group: organisation})
	r.blobs = indexentities.NewInBlobs("lastname-blob", lastName, blobs, &indexentities.Options[Employee]{Group: organisation})
	if r.repo, err = patterns.NewRepository(employees, newSchema(), r.beside, r.outside, r.blobs); err != nil {
		return nil, err
	}
	r.plain, err = newPlain(plain)
	return r, err
}

// newSchema is that of employees beside rows of other kinds.
func newSchema() patterns.Schema[Employee] {
	return patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return employeeKey(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}
}

// hireAndDismiss shows what option 2 costs by itself. Who is gone before the other lists are there is in none of them.
func (r *roster) hireAndDismiss(ctx context.Context, s *section) error {
	alone, err := patterns.NewRepository(r.repo.Table(), newSchema(), besideEmployees())
	if err != nil {
		return err
	}
	e := r.c.newHire("new@contoso.com")
	if err := r.c.act(s, "one inserted, option 2 alone", func() (string, error) {
		return "the list is read; both rows are written in 1 transaction", alone.Insert(ctx, e)
	}); err != nil {
		return err
	}
	return r.c.act(s, "and deleted", func() (string, error) {
		return "the same; a list without keys is deleted", alone.Delete(ctx, e)
	})
}

// load inserts the employees, several names at a time: two of one name would conflict over its lists.
func (r *roster) load(ctx context.Context, s *section) error {
	for _, e := range r.c.staff[minEmployees-inNames : minEmployees] {
		r.staff = append(r.staff, e.unwritten())
	}
	x, err := r.repo.Explain(ctx, driver.ChangeInsert, r.june())
	if err != nil {
		return err
	}
	s.explain("One of the inserts with all three, by Repository.Explain:", x)
	if err := r.c.exposed(s, "employees inserted, all options", func() (string, error) {
		return fmt.Sprintf("%s, each in 3 lists", counted(len(r.staff), "employee")), insertByName(ctx, r.repo, r.staff)
	}); err != nil {
		return err
	}
	if err := r.c.drainIntents(ctx); err != nil {
		return err
	}
	_, err = r.plain.BulkNonAtomic(ctx, all(r.staff, (*Employee).unwritten), nil)
	return err
}

// june is June Jones as she is stored.
func (r *roster) june() *Employee { return r.staff[jones-1-(minEmployees-inNames)] }

// insertByName inserts several employees at a time, but those of one name after each other.
func insertByName(ctx context.Context, repo *patterns.Repository[Employee], staff []*Employee) error {
	var firsts []*Employee
	namesakes := map[string][]*Employee{}
	for _, e := range staff {
		if namesakes[e.LastName] == nil {
			firsts = append(firsts, e)
		}
		namesakes[e.LastName] = append(namesakes[e.LastName], e)
	}
	return together(ctx, firsts, func(ctx context.Context, first *Employee) error {
		for _, e := range namesakes[first.LastName] {
			if err := insert(ctx, repo, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// finding is the way of a list: it is read, and then each employee whose key is in it.
func finding(n int, find func(context.Context) iter.Seq2[*Employee, error]) way {
	return way{class: tables.PointQuery, searched: 1 + n, ask: find}
}

// named returns the employees with a last name, of a department or of all where it is "".
func (r *roster) named(department, name string) []*Employee {
	return slices.DeleteFunc(slices.Clone(r.staff), func(e *Employee) bool {
		return e.LastName != name || department != "" && e.Department != department
	})
}

func (r *roster) askInDepartment(ctx context.Context, s *section) error {
	without, err := answering(r.plain.Query().Partition(sales).Where(tables.Eq("LastName", "Jones")))
	if err != nil {
		return err
	}
	for _, e := range r.staff {
		if e.Department == sales {
			without.searched++
		}
	}
	return r.c.ask(ctx, s, question{text: "Jones in Sales, by row (option 2)", without: without,
		with: finding(len(r.named(sales, "Jones")), func(ctx context.Context) iter.Seq2[*Employee, error] {
			return r.beside.Find(ctx, sales, compoundkey.String("Jones"), nil)
		})})
}

// askAnywhere: nobody knows the departments, so without the lists the whole table is read.
func (r *roster) askAnywhere(ctx context.Context, s *section) error {
	without, err := answering(r.plain.Query().Where(tables.Eq("LastName", "Jones")).AllowTableScan())
	if err != nil {
		return err
	}
	without.searched = len(r.staff)
	n := len(r.named("", "Jones"))
	for _, q := range []question{
		{text: "Jones anywhere, by row (option 3)", with: finding(n, func(ctx context.Context) iter.Seq2[*Employee, error] {
			return r.outside.Find(ctx, indexentities.Global, compoundkey.String("Jones"), nil)
		})},
		{text: "Jones anywhere, by blob (option 1)", with: finding(n, func(ctx context.Context) iter.Seq2[*Employee, error] {
			return r.blobs.Find(ctx, indexentities.Global, compoundkey.String("Jones"), nil)
		})},
	} {
		q.without = without
		if err := r.c.ask(ctx, s, q); err != nil {
			return err
		}
	}
	return nil
}

// count reads the lists, and no employee.
func (r *roster) count(ctx context.Context, s *section) error {
	return r.c.act(s, "last names, and how many have each", func() (string, error) {
		names := 0
		for v, err := range r.outside.Values(ctx, indexentities.Global, compoundkey.All()) {
			if err != nil {
				return "", err
			}
			name, err := v.Text()
			if err != nil {
				return "", err
			}
			if n := len(r.named("", name)); v.Count != n {
				return "", fmt.Errorf("the list of %s has %d keys, there should be %d", name, v.Count, n)
			}
			names++
		}
		return counted(names, "name"), nil
	})
}

// changeName takes June Jones out of three lists, and enters her in three others.
func (r *roster) changeName(ctx context.Context, s *section) error {
	e := r.june()
	old := e.LastName
	e.LastName = "Jones-Park"
	if err := r.c.act(s, "her last name changed", func() (string, error) {
		return "1 row and 6 lists", r.repo.Replace(ctx, e)
	}); err != nil {
		return err
	}
	return r.c.act(s, "looked up by the old name and the new", func() (string, error) {
		for _, name := range []string{old, e.LastName} {
			if err := r.compareLists(ctx, name); err != nil {
				return "", err
			}
		}
		return "all three options: not among the old ones, found by the new one", nil
	})
}

// compareLists compares the keys in a name's three lists with the employees. Requests: 3.
func (r *roster) compareLists(ctx context.Context, name string) error {
	for _, x := range []struct {
		list       string
		department string // "" is the organisation, also for the lists
		keys       func(ctx context.Context, group string, value compoundkey.Part) ([]tables.Key, error)
	}{{"option 1", "", r.blobs.Keys}, {"option 2", sales, r.beside.Keys}, {"option 3", "", r.outside.Keys}} {
		got, err := x.keys(ctx, x.department, compoundkey.String(name))
		if err != nil {
			return err
		}
		var want []tables.Key
		for _, e := range r.named(x.department, name) {
			want = append(want, r.repo.KeyOf(e))
		}
		slices.SortFunc(want, func(a, b tables.Key) int {
			return compoundkey.Compare(a.Partition+"\t"+a.Row, b.Partition+"\t"+b.Row)
		})
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: the list of %s is %v, it should be %v", x.list, name, got, want)
		}
	}
	return nil
}

// check compares all lists with all employees.
func (r *roster) check(ctx context.Context, s *section) error {
	return r.c.act(s, "all lists, by Repository.Verify", func() (string, error) {
		if err := r.c.drainIntents(ctx); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s in each, nothing to repair, no intent is left", counted(len(r.staff), "employee")), clean(ctx, r.repo)
	})
}

// clean is an error if something stored is not as the entities have it.
func clean[T any](ctx context.Context, repo *patterns.Repository[T]) error {
	_, err := repo.Verify(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
		return fmt.Errorf("difference found by Verify: %v", f)
	}})
	return err
}
