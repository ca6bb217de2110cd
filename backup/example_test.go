package backup_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// save backs up a table, and goes on with an earlier run that was interrupted. docs/reference/backup.md shows it.
func save(ctx context.Context, vault *backup.Vault, name string, table *tables.Table) error {
	token, err := vault.Unfinished(ctx, name) // "" unless an earlier run was interrupted
	if err != nil {
		return err
	}
	_, err = vault.Backup(ctx, name, []*tables.Table{table}, &backup.Options{Resume: token})
	return err
}

// A table is backed up into a folder, restored under another name, and compared with the backup.
func Example() {
	ctx := context.Background()
	employees, restored := simulatedTable("BackupEmployees"), simulatedTable("BackupEmployeesRestored")
	june := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "empid_000223"}}
	june.Set("Name", tables.String("Jones"))
	if err := employees.Entities().Insert(ctx, june); err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "backup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	vault, err := backup.OpenFolder(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer vault.Close()
	if err := save(ctx, vault, "monday", employees); err != nil {
		log.Fatal(err)
	}
	if _, err := vault.Verify(ctx, "monday", nil); err != nil {
		log.Fatal(err)
	}

	result, err := vault.Restore(ctx, "monday", []backup.Target{{Name: "BackupEmployees", To: restored}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Written, "row written; index copies in other partitions:", result.Outside)

	report, err := vault.Compare(ctx, "monday", "BackupEmployees", restored, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Findings, "differences")
	// Output:
	// 1 row written; index copies in other partitions: 0
	// 0 differences
}

// simulatedAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func simulatedAccount() *tables.Account {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}

// simulatedTable returns a new table on a new simulator.
func simulatedTable(name string) *tables.Table {
	table := simulatedAccount().Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}
