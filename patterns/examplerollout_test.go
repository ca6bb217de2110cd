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

// workersBy opens the workers with an index by name.
func workersBy(table *tables.Table) (*patterns.Repository[Worker], *intrapartition.Index[Worker, string]) {
	byName := intrapartition.NewIndex("name", func(w *Worker) string { return w.Name }, nil)
	repository, err := patterns.NewRepository(table, patterns.Schema[Worker]{
		Key: func(w *Worker) tables.Key {
			return tables.Key{Partition: w.Department, Row: compoundkey.Join("", compoundkey.Int(w.ID, 6))}
		},
	}, byName)
	if err != nil {
		log.Fatal(err)
	}
	return repository, byName
}

// A new index of a table that is in use: first every writer has it, then Rebuild enters what is there, then Verify finds
// nothing, and only then readers use it.
func ExampleRepository_Rebuild() {
	ctx := context.Background()
	table := rolloutTable("ExampleRebuild")
	hireAll(ctx, staffOf(table), 3) // by programs without the index

	workers, byName := workersBy(table)
	report, err := workers.Rebuild(ctx, &patterns.JobOptions{Progress: func(r tables.Progress) {
		fmt.Println(r.Read, "seen") // keep r.Resume: JobOptions.Resume continues from it
	}, Found: func(f patterns.Finding) error {
		fmt.Println(f) // an entity that cannot be entered, such as one whose key another entity has
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Written, "written,", report.Failed, "failed")
	if report, err := workers.Verify(ctx, nil); err != nil || report.Findings > 0 {
		log.Fatal(report, err)
	}
	for w, err := range byName.In("Sales").Range(ctx, compoundkey.AtLeast("Worker 2")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(w.Name)
	}
	// Output:
	// 3 seen
	// 3 written, 0 failed
	// Worker 2
	// Worker 3
}

// rolloutTable returns a new table on a new simulator in memory.
func rolloutTable(name string) *tables.Table {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}
