package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// swept is an operation whose every storage call goes wrong in every way.
type swept struct {
	floor int
	// prepare fills the fresh table.
	prepare func(ctx context.Context, s *storagetest.Service, table string) error
	// operate is one attempt at the operation, by one process.
	operate func(ctx context.Context, s *storagetest.Service, table string) error
	// refusal is the error that the operation ends in when nothing goes wrong; nil for success.
	refusal error
	// states are what the table may hold after no attempt was applied, after one, after two; the last stands for more.
	states []string
	// summary returns the state of a table as text; nil for a table of members.
	summary func(stored) (string, error)
	// checkSuccess checks what the operation promises beyond the table, after a success.
	checkSuccess func(ctx context.Context, s *storagetest.Service, table string) error
	// service is where, nil for the simulator.
	service func(testing.TB) *storagetest.Service
	faults  []storagetest.Fault
	callers []storagetest.Caller
}

// outcomes is what the attempts of one world said.
type outcomes struct {
	mu   sync.Mutex
	errs []error
}

func (o *outcomes) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, err)
}

// bounds is how often the operation was applied, at the least and at the most, if what it said is true.
func (o *outcomes) bounds() (least, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, err := range o.errs {
		switch {
		case err == nil:
			least++
			most++
		case errors.Is(err, tables.ErrUnknownOutcome):
			most++
		}
	}
	return least, most
}

func (c swept) run(t *testing.T) {
	t.Helper()
	if c.summary == nil {
		c.summary = membersText
	}
	every := 1
	if os.Getenv(careless) == "" { // where few points diverge, all are needed to find them
		every = harness.SweepEvery()
	}
	storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, World: c.world, Service: c.service, Faults: c.faults, Callers: c.callers, Every: every})
}

func (c swept) world(t testing.TB, s *storagetest.Service) storagetest.World {
	ctx, name := t.Context(), s.TableName(t)
	table := assert.Must[*tables.Table](t)(openTable(s, name))
	if err := table.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(ctx, s, name); err != nil {
		t.Fatal(err)
	}
	before := assert.Must[stored](t)(readStored(ctx, table, "")).text()
	said := &outcomes{}
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			err := c.operate(ctx, s, name)
			said.add(err)
			if c.refusal != nil && errors.Is(err, c.refusal) && !errors.Is(err, tables.ErrUnknownOutcome) {
				return nil // as it should be
			}
			if err == nil && c.refusal != nil {
				return fmt.Errorf("no error, where there should be %q", c.refusal)
			}
			return err
		},
		Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			rows, err := readStored(ctx, table, "")
			if err != nil {
				return err
			}
			if err := c.check(rows, before, said); err != nil {
				return fmt.Errorf("%w; the attempts said %q", err, said.errs)
			}
			if end.Succeeded() && c.checkSuccess != nil {
				return c.checkSuccess(ctx, s, name)
			}
			return nil
		},
	}
}

// check compares what is there with what the attempts said.
func (c swept) check(rows stored, before string, said *outcomes) error {
	least, most := said.bounds()
	if rows.text() == before {
		if last := c.states[min(least, len(c.states)-1)]; last != c.states[0] {
			return fmt.Errorf("said to be applied, and nothing has changed")
		}
		return nil
	}
	state, err := c.summary(rows)
	if err != nil {
		return err
	}
	for n := max(least, 1); n <= most; n++ {
		if state == c.states[min(n, len(c.states)-1)] {
			return nil
		}
	}
	return fmt.Errorf("between %d and %d attempts were applied, and there is: %s", least, most, state)
}

// sweptMember is the member that most of the sweeps change; its neighbour is to stay as it is.
func sweptMember() *member {
	return &member{Team: "red", ID: 7, Name: "Ann", Email: "ann@contoso.com", Tags: []string{"go", "sql"}, Count: 1}
}

func sweptNeighbour() *member {
	return &member{Team: "red", ID: 8, Name: "Bob", Tags: []string{"go"}}
}

// moved is the member with another key in each index, and more or fewer of them.
func moved(m *member) *member {
	m.Name, m.Email, m.Tags = "Anna", "", []string{"go", "c", "asm"}
	m.Count++
	return m
}

// insertAll prepares a table.
func insertAll(all ...*member) func(context.Context, *storagetest.Service, string) error {
	return func(ctx context.Context, s *storagetest.Service, table string) error {
		repo, err := openMembers(s, table)
		if err != nil {
			return err
		}
		for _, m := range all {
			copied := *m
			if err := repo.Insert(ctx, &copied); err != nil {
				return err
			}
		}
		return nil
	}
}

// onMembers is an attempt through a repository of the process's own.
func onMembers(attempt func(ctx context.Context, repo *members) error) func(context.Context, *storagetest.Service, string) error {
	return func(ctx context.Context, s *storagetest.Service, table string) error {
		repo, err := openMembers(s, table)
		if err != nil {
			return err
		}
		return attempt(ctx, repo)
	}
}

// writing makes an attempt that reads the member, writes it, and has a Meta of it afterwards that is good for the next
// write. The successor of a success proves that, in checkSuccess.
func writing(summary func(ctx context.Context, repo *members) (*member, error), write func(ctx context.Context, repo *members, m *member) error) (operate, checkSuccess func(context.Context, *storagetest.Service, string) error) {
	var mu sync.Mutex
	var last *member // of the point that is run; points come one after the other
	operate = onMembers(func(ctx context.Context, repo *members) error {
		m, err := summary(ctx, repo)
		if err != nil {
			return err
		}
		err = write(ctx, repo, m)
		mu.Lock()
		defer mu.Unlock()
		last = m
		return err
	})
	checkSuccess = onMembers(func(ctx context.Context, repo *members) error {
		mu.Lock()
		defer mu.Unlock()
		if err := repo.Replace(ctx, last); err != nil {
			return fmt.Errorf("the Meta that a success left is of no use: %w", err)
		}
		return nil
	})
	return operate, checkSuccess
}

func fresh(context.Context, *members) (*member, error) { return sweptMember(), nil }

// readEach are the ways to a member: its own row, and its copies whole.
func readEach() map[string]func(ctx context.Context, repo *members) (*member, error) {
	return map[string]func(ctx context.Context, repo *members) (*member, error){
		"own row": func(ctx context.Context, repo *members) (*member, error) {
			return repo.Get(ctx, memberKey("red", 7))
		},
		"by email": func(ctx context.Context, repo *members) (*member, error) {
			return repo.byEmail.In("red").Get(ctx, compoundkey.String("ann@contoso.com"))
		},
	}
}

func TestSweepInsert(t *testing.T) {
	operate, checkSuccess := writing(fresh, func(ctx context.Context, repo *members, m *member) error { return repo.Insert(ctx, m) })
	swept{floor: 56, prepare: insertAll(sweptNeighbour()), operate: operate, checkSuccess: checkSuccess,
		states: []string{textOf(sweptNeighbour()), textOf(sweptMember(), sweptNeighbour())}}.run(t)
}

func TestSweepInsertRefused(t *testing.T) {
	for name, c := range map[string]struct {
		floor   int
		change  func(*member)
		refusal error
	}{
		"taken email": {120, func(m *member) { m.ID = 9 }, tables.ErrDuplicate},
		"taken key":   {56, func(m *member) { m.Email = "other@contoso.com" }, tables.ErrExists},
	} {
		t.Run(name, func(t *testing.T) {
			swept{floor: c.floor, prepare: insertAll(sweptMember()), states: []string{textOf(sweptMember())}, refusal: c.refusal,
				operate: onMembers(func(ctx context.Context, repo *members) error {
					m := sweptMember()
					c.change(m)
					return repo.Insert(ctx, m)
				})}.run(t)
		})
	}
}

func TestSweepReplace(t *testing.T) {
	for name, summary := range readEach() {
		t.Run(name, func(t *testing.T) {
			operate, checkSuccess := writing(summary, func(ctx context.Context, repo *members, m *member) error {
				return repo.Replace(ctx, moved(m))
			})
			swept{floor: map[string]int{"own row": 88, "by email": 120}[name], prepare: insertAll(sweptMember(), sweptNeighbour()), operate: operate, checkSuccess: checkSuccess,
				states: []string{textOf(sweptMember(), sweptNeighbour()), textOf(moved(sweptMember()), sweptNeighbour()),
					textOf(moved(moved(sweptMember())), sweptNeighbour())}}.run(t)
		})
	}
}

func TestSweepMerge(t *testing.T) {
	for name, summary := range readEach() {
		t.Run(name, func(t *testing.T) {
			operate, checkSuccess := writing(summary, func(ctx context.Context, repo *members, m *member) error {
				m.Name, m.Count = "Anna", m.Count+1
				return repo.Merge(ctx, m, "Name", "Count")
			})
			merged, twice := sweptMember(), sweptMember()
			merged.Name, merged.Count, twice.Name, twice.Count = "Anna", 2, "Anna", 3
			swept{floor: 120, prepare: insertAll(sweptMember(), sweptNeighbour()), operate: operate, checkSuccess: checkSuccess,
				states: []string{textOf(sweptMember(), sweptNeighbour()), textOf(merged, sweptNeighbour()), textOf(twice, sweptNeighbour())}}.run(t)
		})
	}
}

func TestSweepOverwrite(t *testing.T) {
	write := map[string]func(ctx context.Context, repo *members, m *member) error{
		"Upsert": func(ctx context.Context, repo *members, m *member) error { return repo.Upsert(ctx, moved(m)) },
		"ReplaceUnconditional": func(ctx context.Context, repo *members, m *member) error {
			return repo.ReplaceUnconditional(ctx, moved(m))
		},
	}
	for name, write := range write {
		t.Run(name, func(t *testing.T) {
			operate, checkSuccess := writing(fresh, write)
			swept{floor: 88, prepare: insertAll(sweptMember(), sweptNeighbour()), operate: operate, checkSuccess: checkSuccess,
				states: []string{textOf(sweptMember(), sweptNeighbour()), textOf(moved(sweptMember()), sweptNeighbour())}}.run(t)
		})
	}
	t.Run("Upsert of a new one", func(t *testing.T) {
		operate, checkSuccess := writing(fresh, write["Upsert"])
		swept{floor: 88, prepare: insertAll(sweptNeighbour()), operate: operate, checkSuccess: checkSuccess,
			states: []string{textOf(sweptNeighbour()), textOf(moved(sweptMember()), sweptNeighbour())}}.run(t)
	})
}

// sweptUpdate counts an update up and moves the member's copies, each time to other keys.
func sweptUpdate() swept {
	step := func(m *member) {
		m.Count++
		m.Name, m.Email = fmt.Sprint("Ann", m.Count), fmt.Sprintf("ann%d@contoso.com", m.Count)
		m.Tags = []string{"go", fmt.Sprint("t", m.Count%2)}
	}
	c := swept{floor: 88, prepare: insertAll(sweptMember(), sweptNeighbour()),
		operate: onMembers(func(ctx context.Context, repo *members) error {
			_, err := repo.Update(ctx, memberKey("red", 7), func(m *member) error { step(m); return nil })
			return err
		})}
	m := sweptMember()
	for range 6 {
		c.states = append(c.states, textOf(m, sweptNeighbour()))
		step(m)
	}
	return c
}

func TestSweepUpdate(t *testing.T) { sweptUpdate().run(t) }

func TestSweepDelete(t *testing.T) {
	deletes := map[string]func(ctx context.Context, repo *members) error{
		"unconditional": func(ctx context.Context, repo *members) error {
			return repo.DeleteUnconditional(ctx, memberKey("red", 7))
		},
		"of a projection": func(ctx context.Context, repo *members) error {
			for m, err := range repo.Query().Partition("red").Row("member_0007").Select("Name").All(ctx) {
				if err != nil {
					return err
				}
				return repo.Delete(ctx, m)
			}
			return errors.New("not there")
		},
	}
	for name, summary := range readEach() {
		deletes[name] = func(ctx context.Context, repo *members) error {
			m, err := summary(ctx, repo)
			if err != nil {
				return err
			}
			return repo.Delete(ctx, m)
		}
	}
	for name, attempt := range deletes {
		t.Run(name, func(t *testing.T) {
			swept{floor: map[string]int{"own row": 88, "unconditional": 88, "by email": 120, "of a projection": 120}[name], prepare: insertAll(sweptMember(), sweptNeighbour()), operate: onMembers(attempt),
				states: []string{textOf(sweptMember(), sweptNeighbour()), textOf(sweptNeighbour())}}.run(t)
		})
	}
}

// An index came to a table with data, and a program without it left copies behind: a change that finds one in its way
// takes it over.
func TestSweepOrphanedCopy(t *testing.T) {
	// The member moves away without the index, so that its copy stays.
	leave := func(ctx context.Context, s *storagetest.Service, table string) error {
		bare, err := openBareMembers(s, table)
		if err != nil {
			return err
		}
		_, err = bare.Update(ctx, memberKey("red", 7), func(m *member) error { m.Email = "moved@contoso.com"; return nil })
		return err
	}
	prepare := func(ctx context.Context, s *storagetest.Service, table string) error {
		return errors.Join(insertAll(&member{Team: "red", ID: 7, Email: "ann@contoso.com"})(ctx, s, table), leave(ctx, s, table))
	}
	left := &member{Team: "red", ID: 7, Email: "moved@contoso.com"}
	t.Run("its own", func(t *testing.T) {
		swept{floor: 240, prepare: prepare, states: []string{"", textOf(&member{Team: "red", ID: 7, Email: "ann@contoso.com", Count: 1})},
			operate: onMembers(func(ctx context.Context, repo *members) error {
				_, err := repo.Update(ctx, left.keyOf(), func(m *member) error { m.Email, m.Count = "ann@contoso.com", 1; return nil })
				return err
			})}.run(t)
	})
	t.Run("another's", func(t *testing.T) {
		taker := &member{Team: "red", ID: 9, Email: "ann@contoso.com"}
		swept{floor: 176, prepare: prepare, states: []string{"", textOf(left, taker)}, summary: withoutNames,
			operate: onMembers(func(ctx context.Context, repo *members) error {
				m := *taker
				return repo.Insert(ctx, &m)
			})}.run(t)
	})
}

func (m *member) keyOf() tables.Key { return memberKey(m.Team, m.ID) }

// withoutNames overlooks the copy by name that the member left behind as well, and that nobody takes over.
func withoutNames(rows stored) (string, error) {
	for key, row := range rows {
		if key.Row == "name_!_0007" && unquoted(row["_tpPrimary"]) == "member_0007" {
			delete(rows, key)
		}
	}
	return membersText(rows)
}

// The same on the other implementation, with fewer faults.
func TestSweepOnAzurite(t *testing.T) {
	storagetest.AzuriteOnly(t)
	azurite := func(t testing.TB) *storagetest.Service { return storagetest.Azurite(t) }
	faults := []storagetest.Fault{storagetest.LostAnswer, storagetest.CutSilentlyAt(0.5)}
	callers := []storagetest.Caller{storagetest.CallerRetries, storagetest.ProcessRestarts}
	onAzurite := func(floor int, c swept) swept {
		c.service, c.faults, c.callers, c.floor = azurite, faults, callers, floor
		return c
	}
	t.Run("Update", onAzurite(12, sweptUpdate()).run)
	t.Run("Transaction", onAzurite(18, sweptTransaction()).run)
	bulk := sweptBulkInsert()
	bulk.service, bulk.faults, bulk.callers, bulk.floor = azurite, faults, callers, 18
	t.Run("BulkNonAtomic", bulk.run)
}
