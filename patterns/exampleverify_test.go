package patterns_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// An index row is deleted behind the library's back. It is found, and written again. The index does not tell upper from lower case.
func ExampleRepository_Verify() {
	ctx := context.Background()
	table := harness.ExampleTable("ExampleVerify")
	byName := intrapartition.NewIndex("name", func(w *Worker) compoundkey.Part { return compoundkey.Fold(w.Name) }, nil)
	staff, err := patterns.NewRepository(table, patterns.Schema[Worker]{
		Key: func(w *Worker) tables.Key {
			return tables.Key{Partition: w.Department, Row: compoundkey.Join("id", compoundkey.Int(w.ID, 6))}
		},
		Rows: compoundkey.Starting("id"),
	}, byName)
	if err != nil {
		log.Fatal(err)
	}
	if err := staff.Insert(ctx, &Worker{Department: "Sales", ID: 223, Name: "June", Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}); err != nil {
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
	report, err = staff.Repair(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Repaired, "repaired")
	w, err := byName.Get(ctx, "Sales", compoundkey.Fold("JUNE"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.ID)
	// Output:
	// missing name name_june
	// 1 read, 1 found
	// 1 repaired
	// 223
}
