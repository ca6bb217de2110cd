package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func tablesOf(t testing.TB, s *storagetest.Service) *aztables.ServiceClient {
	t.Helper()
	c, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	return c
}

func entityOf(pk, rk, properties string) []byte {
	if properties != "" {
		properties = "," + properties
	}
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q%s}`, pk, rk, properties)
}

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
