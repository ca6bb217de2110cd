package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// This file is a user's package and its tests. They need no Node and no network.

// hire adds an employee to a department and counts them, in one transaction.
func hire(ctx context.Context, table *tables.Table, department, id string) error {
	for {
		count, err := table.Entities().Get(ctx, tables.Key{Partition: department, Row: "department"})
		if err != nil {
			return err
		}
		n, _ := count.Get("Employees").Int()
		count.Set("Employees", tables.Int64(n+1))
		x := table.NewTransaction()
		x.Merge(count)
		x.Insert(&tables.Entity{Key: tables.Key{Partition: department, Row: "employee_" + id}})
		if _, err = x.Commit(ctx); !errors.Is(err, tables.ErrConflict) {
			return err
		}
	}
}

// openStaff is how the package gets at its table, in tests and elsewhere.
func openStaff(s *storagetest.Service, table string) (*tables.Table, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return account.Table(table), nil
}

// newStaff creates the table with one department that has no employees.
func newStaff(ctx context.Context, s *storagetest.Service, table string) (*tables.Table, error) {
	staff, err := openStaff(s, table)
	if err != nil {
		return nil, err
	}
	if err := staff.CreateIfMissing(ctx); err != nil {
		return nil, err
	}
	sales := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "department"}}
	sales.Set("Employees", tables.Int64(0))
	return staff, staff.Entities().Insert(ctx, sales)
}

// checkStaff holds what must be true whatever happens: a department counts the employees that it has.
func checkStaff(ctx context.Context, s *storagetest.Service, table string) (employees int, err error) {
	staff, err := openStaff(s, table)
	if err != nil {
		return 0, err
	}
	counted := int64(0)
	for e, err := range staff.Entities().Query().Partition("Sales").All(ctx) {
		if err != nil {
			return 0, err
		}
		if e.Key.Row == "department" {
			counted, _ = e.Get("Employees").Int()
		} else {
			employees++
		}
	}
	if int(counted) != employees {
		return 0, fmt.Errorf("%d employees, and the department counts %d", employees, counted)
	}
	return employees, nil
}

// A test asks for a simulator and has an account, empty and of its own.
func TestHire(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	staff, err := newStaff(t.Context(), s, "Staff")
	check(t, err)
	check(t, hire(t.Context(), staff, "Sales", "1"))
	check(t, hire(t.Context(), staff, "Sales", "2"))
	if n, err := checkStaff(t.Context(), s, "Staff"); err != nil || n != 2 {
		t.Error(n, err)
	}
}

// One answer is lost: the employee is hired once, and the caller hears of it.
func TestHireAnswerLost(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	_, err := newStaff(t.Context(), s, "Staff")
	check(t, err)
	faulty, calls := s.Faulty(storagetest.On(storagetest.Batch, storagetest.Once(storagetest.LostAnswer)))
	staff, err := openStaff(faulty, "Staff")
	check(t, err)
	check(t, hire(t.Context(), staff, "Sales", "1"))
	if n, err := checkStaff(t.Context(), s, "Staff"); err != nil || n != 1 {
		t.Error(n, err, calls.Calls())
	}
}

// Every call of hire goes wrong in every way, and the count is right after each.
func TestHireSweep(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 88, World: hireWorld})
}

func hireWorld(t testing.TB, s *storagetest.Service) storagetest.World {
	table := s.TableName(t)
	_, err := newStaff(t.Context(), s, table)
	check(t, err)
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			staff, err := openStaff(s, table)
			if err != nil {
				return err
			}
			return hire(ctx, staff, "Sales", "1")
		},
		Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			n, err := checkStaff(ctx, s, table)
			if err == nil && end.Succeeded() && n != 1 {
				return errors.New("the caller was told that the employee is hired, who is not")
			}
			return err
		},
	}
}

// The simulator runs without a test, too.
func ExampleNewSimulator() {
	ctx := context.Background()
	s, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	staff, err := newStaff(ctx, s, "Staff")
	if err != nil {
		log.Fatal(err)
	}
	if err := staff.Drop(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(staff.Create(ctx), tables.ErrBeingDeleted))
	s.Clock.Advance(time.Minute)
	fmt.Println(staff.Create(ctx))
	// Output:
	// true
	// <nil>
}

// An injector says which calls a fault befalls.
func ExampleFaults() {
	ctx := context.Background()
	s, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := newStaff(ctx, s, "Staff"); err != nil {
		log.Fatal(err)
	}
	faulty, calls := s.WithRetries(0).Faulty(storagetest.OnIndex(1, storagetest.Throttled))
	staff, err := openStaff(faulty, "Staff")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(hire(ctx, staff, "Sales", "1"), tables.ErrUnavailable))
	fmt.Println(calls.Met())
	// Output:
	// true
	// [Throttled at call 1: Batch Staff]
}
