package patterns_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Clerk is an employee who is found by name.
type Clerk struct {
	tables.Meta
	Department string
	ID         int
	Name       string
}

// An index row is deleted behind the library's back. It is found, and written again. The index does not tell upper from lower case.
func ExampleRepository_Verify() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table("Clerks")
	if err := table.Create(ctx); err != nil {
		log.Fatal(err)
	}
	byName := intrapartition.NewUnique("name", func(c *Clerk) compoundkey.Folded { return compoundkey.Folded(c.Name) }, nil)
	staff, err := patterns.NewRepository(table, patterns.Schema[Clerk]{
		Key: func(c *Clerk) tables.Key {
			return tables.Key{Partition: c.Department, Row: compoundkey.Join("id", compoundkey.Int(c.ID, 6))}
		},
		Prefix: "id",
	}, byName)
	if err != nil {
		log.Fatal(err)
	}
	if err := staff.Insert(ctx, &Clerk{Department: "Sales", ID: 223, Name: "June"}); err != nil {
		log.Fatal(err)
	}
	if err := table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "Sales", Row: "name_june"}); err != nil {
		log.Fatal(err)
	}
	report, err := staff.Verify(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
		fmt.Println(f.Kind, f.Pattern, f.Location)
		return nil // an error would end the run
	}})
	if err != nil {
		log.Fatal(err) // report.Resume continues the run
	}
	fmt.Println(report.Read, "read,", report.Findings, "found")
	repaired, err := staff.Repair(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(repaired.Repaired, "repaired")
	june, err := byName.In("Sales").Get(ctx, "JUNE")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(june.ID)
	// Output:
	// missing name name_june
	// 1 read, 1 found
	// 1 repaired
	// 223
}
