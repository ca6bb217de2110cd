package logtail_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ExpenseClaim is stored by employee, newest first.
type ExpenseClaim struct {
	tables.Meta
	logtail.Entry
	EmployeeID string
	Amount     int
}

// openClaims opens the log in the guide's table.
func openClaims(store *patterns.Store) (*logtail.Log[ExpenseClaim], error) {
	return logtail.New(store.Table("EmployeeExpense"), logtail.Schema[ExpenseClaim]{
		Partition: func(c *ExpenseClaim) string { return c.EmployeeID },
	})
}

// The ten most recent expense claims of an employee, and a program that follows them.
func Example() {
	ctx := context.Background()
	store, err := patterns.Open("claims", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	claims, err := openClaims(store)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	for amount := 1; amount <= 12; amount++ {
		if err := claims.Append(ctx, &ExpenseClaim{EmployeeID: "000223", Amount: amount}); err != nil { // 1 request
			log.Fatal(err)
		}
	}

	latest, err := claims.Latest(ctx, "000223", 10) // 1 request
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("newest", latest[0].Amount, "of", len(latest))

	cursor := ""                                                                                         // as the last run of the program saved it
	follower, err := claims.Follower("000223", cursor, &logtail.FollowOptions{From: latest[2].LoggedAt}) // or from the oldest
	if err != nil {
		log.Fatal(err)
	}
	for c, err := range follower.Poll(ctx) { // or All, which waits for more
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Amount)
		cursor = follower.Cursor() // save it together with what was done
	}
	// Output:
	// newest 12 of 10
	// 10
	// 11
	// 12
}

// An entry that must not be appended twice, whatever crashes, is stamped and saved first.
func ExampleLog_Stamp() {
	ctx := context.Background()
	store, err := patterns.Open("claims", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	claims, err := openClaims(store)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	c := &ExpenseClaim{EmployeeID: "000007", Amount: 80}
	if err := claims.Stamp(c); err != nil {
		log.Fatal(err)
	}
	for range 3 { // a queue may deliver the message with the stamped claim several times
		if err := claims.Append(ctx, &ExpenseClaim{Entry: c.Entry, EmployeeID: c.EmployeeID, Amount: c.Amount}); err != nil {
			log.Fatal(err)
		}
	}
	latest, err := claims.Latest(ctx, "000007", 10)
	fmt.Println(len(latest), err)
	// Output: 1 <nil>
}

// The guide's inverted ticks, there and back.
func ExampleInvertedTicks() {
	key, err := logtail.InvertedTicks(time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	at, err := logtail.ParseInvertedTicks(key)
	fmt.Println(key, at, err)
	// Output: 2519936321679999999 2014-08-22 00:50:32 +0000 UTC <nil>
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
