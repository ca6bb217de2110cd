package denormalization_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type link = denormalization.Link[employee, department]

// linked makes repositories of both ends of a link on the tables of a world.
func linked(p *process, copies *denormalization.Copies[employee, department], attached ...patterns.Pattern[department]) (*patterns.Repository[employee], *patterns.Repository[department], error) {
	departments, err := patterns.NewRepository(harness.In(p.departments.Table(), p.queue),
		patterns.Schema[department]{Name: "other departments", Key: p.departments.KeyOf}, append(attached, copies.Holder())...)
	if err != nil {
		return nil, nil, err
	}
	employees, err := patterns.NewRepository(harness.In(p.employees.Table(), p.queue),
		patterns.Schema[employee]{Name: "other employees", Key: p.employees.KeyOf}, copies.Source())
	return employees, departments, err
}

func wantWiring(t testing.TB, err error, want string) {
	t.Helper()
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestRefusedLinks: a link that does not fit is refused when the repositories are made.
func TestRefusedLinks(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, c := range []struct {
		name    string
		where   placement
		in      bool
		edit    func(l *link)
		options *denormalization.Options
		want    string
	}{
		{"no holders", anywhere, false, func(l *link) { l.Holders = nil }, nil, "Link.Holders and Link.Find"},
		{"no copy", anywhere, false, func(l *link) { l.Copy = nil }, nil, "Link.Copy or Link.SourceOf"},
		{"no properties", anywhere, false, func(l *link) { l.Properties = nil }, nil, "Link.Properties is empty"},
		{"unknown property", anywhere, false, func(l *link) { l.Properties = []string{"Boss"} }, nil, "property Boss"},
		{"limit", anywhere, false, nil, &denormalization.Options{Limit: -1}, "Options.Limit is -1"},
		{"another table", elsewhere, true, nil, nil, "needs one table"},
		{"Find in the partition", anywhere, true, func(l *link) {
			l.Holders, l.Find = nil, func(q tables.Query[department], _ tables.Key) tables.Query[department] { return q }
		}, nil, "NewInPartition needs Link.Holders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := assert.Must[*process](t)(newWorld(t, s, c.where).start(s))
			l := managing()
			if c.edit != nil {
				c.edit(&l)
			}
			made := denormalization.New[employee, department]
			if c.in {
				made = denormalization.NewInPartition[employee, department]
			}
			_, _, err := linked(p, made("other", l, c.options))
			wantWiring(t, err, c.want)
		})
	}
}

// TestBothEndsAreNeeded: a link whose other end is in no repository refuses each change that needs it.
func TestBothEndsAreNeeded(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)(newWorld(t, s, anywhere).start(s))
	for _, made := range []func(string, link, *denormalization.Options) *denormalization.Copies[employee, department]{
		denormalization.New[employee, department], denormalization.NewInPartition[employee, department],
	} {
		source := &seen[employee]{pattern: made("other", managing(), nil).Source()}
		employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(p.employees.Table(), p.queue), patterns.Schema[employee]{Key: p.employees.KeyOf}, source))
		wantWiring(t, employees.Insert(ctx, jones()), "give Copies.Holder to NewRepository")
		_, err := source.Effect.Expected(jones())
		if err == nil {
			t.Error("an audit of half a link")
		}
		_, queue, err := connect(s, p.queue.Name())
		assert.Check(t, err)
		departments := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(harness.In(p.departments.Table(), queue), patterns.Schema[department]{Key: p.departments.KeyOf}, made("other", managing(), nil).Holder()))
		wantWiring(t, departments.Insert(ctx, &department{Site: "Sales", Name: "X"}), "give Copies.Source to NewRepository")
		p = assert.Must[*process](t)(newWorld(t, s, anywhere).start(s))
	}
}

// TestLinkOfOneRepository: each end belongs to one repository, and stays free where that did not come to be.
func TestLinkOfOneRepository(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)(newWorld(t, s, anywhere).start(s))
	for _, made := range []*denormalization.Copies[employee, department]{denormalization.New("other", managing(), nil), denormalization.NewInPartition("other", managing(), nil)} {
		departments := patterns.Schema[department]{Name: "strangers", Key: p.departments.KeyOf}
		_, err := patterns.NewRepository(p.departments.Table(), departments, made.Holder(), &broken{})
		wantWiring(t, err, "broken")
		employees, _, err := linked(p, made)
		assert.Check(t, err)
		_, err = patterns.NewRepository(p.departments.Table(), departments, made.Holder())
		wantWiring(t, err, "already")
		_, err = patterns.NewRepository(harness.In(employees.Table(), &recorder{}), patterns.Schema[employee]{Name: "third", Key: p.employees.KeyOf}, made.Source())
		wantWiring(t, err, "already")
		p = assert.Must[*process](t)(newWorld(t, s, anywhere).start(s))
	}
}

// broken is a pattern that no repository takes.
type broken struct{}

func (*broken) Attach(driver.Host, *department) (driver.Implementation, error) {
	return driver.Implementation{Name: "broken"}, errors.New("broken on purpose")
}

// TestRefusedChanges: what a link does not allow is refused before anything is sent.
func TestRefusedChanges(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	for _, c := range []struct {
		name string
		in   bool
		edit func(l *link)
		want string
	}{
		{"a holder elsewhere", true, func(l *link) {
			l.Holders = func(*employee) []tables.Key { return []tables.Key{departmentKey("Marketing", "A")} }
		}, "are in two partitions"},
		{"itself", false, func(l *link) {
			l.Holders = func(e *employee) []tables.Key { return []tables.Key{employeeKey(e.Site, e.ID)} }
		}, "the holder of its own copy"},
		{"no key", false, func(l *link) {
			l.Holders = func(*employee) []tables.Key { return []tables.Key{{Partition: "a/b"}} }
		}, "Link.Holders returned an invalid key"},
		{"another property", false, func(l *link) {
			l.Copy = func(_ *employee, d *department) { d.Budget = 7 }
		}, "property Budget"},
		{"too many", false, func(l *link) {
			l.Holders = func(*employee) []tables.Key {
				return []tables.Key{departmentKey("Sales", "A"), departmentKey("Sales", "B")}
			}
		}, "more than 1 holders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, s, anywhere)
			counter := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
			p := assert.Must[*process](t)(w.start(&counted))
			l := managing()
			c.edit(&l)
			copies := denormalization.New("other", l, &denormalization.Options{Limit: 1})
			if c.in {
				copies = denormalization.NewInPartition("other", l, nil)
			}
			repo, _, err := linked(p, copies)
			assert.Check(t, err)
			err = repo.Insert(ctx, jones())
			if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v", err)
			}
			if counter.Count() != 0 {
				t.Fatalf("%d requests", counter.Count())
			}
		})
	}
}
