package highvolumedelete_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// LoginRequest is stored by user and time, in a table for each day.
type LoginRequest struct {
	tables.Meta
	UserID  string
	At      time.Time
	Address string
}

// openRequests is all that is said about tables.
func openRequests(account *tables.Account, name string, now func() time.Time) (*highvolumedelete.Tables[LoginRequest], error) {
	return highvolumedelete.New(account, highvolumedelete.Schema[LoginRequest]{
		Name:     name,
		Unit:     highvolumedelete.Day,
		Time:     func(r *LoginRequest) time.Time { return r.At },
		RowOrder: highvolumedelete.OldestFirst,
		Now:      now,
		Open: func(table *tables.Table) (*patterns.Repository[LoginRequest], error) {
			return patterns.NewRepository(table, patterns.Schema[LoginRequest]{
				Key: func(r *LoginRequest) tables.Key {
					return tables.Key{Partition: r.UserID, Row: compoundkey.Join("at", compoundkey.Time(r.At))}
				},
				Prefix: "at",
			})
		},
	})
}

// The guide's login requests: inserts think of no table, and what is older than 60 days goes with one request a day.
func Example() {
	ctx, account := context.Background(), simulatedAccount()
	today := time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)
	requests, err := openRequests(account, "LoginRequests", func() time.Time { return today })
	if err != nil {
		log.Fatal(err)
	}
	for _, days := range []int{0, 1, 59, 60, 61, 75} {
		r := &LoginRequest{UserID: "june", At: today.AddDate(0, 0, -days), Address: "10.0.0.7"}
		if err := requests.Insert(ctx, r); err != nil {
			log.Fatal(err)
		}
	}

	report, err := requests.Drop(ctx, today.AddDate(0, 0, -60), grace())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("dropped", report.Tables)

	err = requests.Insert(ctx, &LoginRequest{UserID: "june", At: today.AddDate(0, 0, -70)})
	fmt.Println("late:", errors.Is(err, highvolumedelete.ErrLate))

	newest := &highvolumedelete.ReadOptions[LoginRequest]{Newest: true, Partitions: []string{"june"}}
	for r, err := range requests.Between(ctx, time.Time{}, time.Time{}, newest) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.At.Format(time.DateOnly))
	}
	// Output:
	// dropped [LoginRequestsD20140608 LoginRequestsD20140622]
	// late: true
	// 2014-08-22
	// 2014-08-21
	// 2014-06-24
	// 2014-06-23
}

// grace is for an example: nobody else writes. A job of the real world passes nil, and Drop waits for 40 s.
func grace() *highvolumedelete.DropOptions {
	return &highvolumedelete.DropOptions{UnsafeGrace: -1}
}

// What a job would drop, and what that saves, is told without dropping it.
func ExampleTables_Drop_dryRun() {
	ctx, account := context.Background(), simulatedAccount()
	today := time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)
	requests, err := openRequests(account, "PlannedRequests", func() time.Time { return today })
	if err != nil {
		log.Fatal(err)
	}
	for user := range 20 {
		for days := range 3 {
			if err := requests.Insert(ctx, &LoginRequest{UserID: fmt.Sprint(user), At: today.AddDate(0, 0, -days)}); err != nil {
				log.Fatal(err)
			}
		}
	}
	report, err := requests.Drop(ctx, today, &highvolumedelete.DropOptions{DryRun: true, Count: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(report.Tables), "tables with", report.Rows, "rows, which take", report.Instead, "requests to find and delete")
	// Output: 2 tables with 40 rows, which take 42 requests to find and delete
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
