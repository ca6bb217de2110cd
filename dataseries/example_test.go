package dataseries_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// messagesOf is the key of an employee's series of one day.
func messagesOf(employee int, day time.Time) tables.Key {
	return tables.Key{Partition: compoundkey.Join("empid", compoundkey.Int(employee, 6)), Row: compoundkey.Join("messages", compoundkey.String(day.Format("20060102")))}
}

// The messages that each employee sends every hour, a row a day.
func Example() {
	ctx := context.Background()
	store, err := patterns.Open("messages", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := dataseries.NewCounter[int64](store.Table("ExampleMessages"), "Count_", 24, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	friday := messagesOf(223, time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	if err := messages.SetMany(ctx, friday, map[int]int64{9: 4, 10: 7, 11: 0}); err != nil {
		log.Fatal(err)
	}
	if err := messages.Add(ctx, friday, 9, 1); err != nil {
		log.Fatal(err)
	}
	for range 2 { // as by a queue that delivers a message twice
		if _, err := messages.AddOnce(ctx, friday, 10, 1, "message b8a5e8a0"); err != nil {
			log.Fatal(err)
		}
	}
	day, err := messages.Read(ctx, friday) // one request
	if err != nil {
		log.Fatal(err)
	}
	for hour, count := range day.Slots {
		if count.Present {
			fmt.Printf("%02d:00 %d\n", hour, count.Value)
		}
	}
	// Output:
	// 09:00 5
	// 10:00 8
	// 11:00 0
}

// A year of days takes two rows. Those of several years are one request.
func ExampleSeries_ReadMany() {
	ctx := context.Background()
	store, err := patterns.Open("years", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	years, err := dataseries.New[float64](store.Table("ExampleYears"), "Day_", 366, &dataseries.Options{SlotsPerRow: 200})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	for year := 2024; year <= 2026; year++ {
		key := tables.Key{Partition: "Sales", Row: compoundkey.Join("year", compoundkey.Int(year, 4))}
		if err := years.SetMany(ctx, key, map[int]float64{0: 1.5, 364: float64(year)}); err != nil {
			log.Fatal(err)
		}
	}
	for v, err := range years.ReadMany(ctx, "Sales", compoundkey.Between(compoundkey.Int(2025, 4), compoundkey.Int(2027, 4)).Under("year")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Key.Row, v.Fill(0)[0], v.Fill(0)[364])
	}
	// Output:
	// year_2025 1.5 2025
	// year_2026 1.5 2026
}

// A count that moves with a row of the caller's own, or not at all.
func ExampleCounter_StageAddOnce() {
	ctx := context.Background()
	store, err := patterns.Open("staged", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	table := store.Table("ExampleStaged")
	messages, err := dataseries.NewCounter[int64](table, "Count_", 24, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	friday := messagesOf(223, time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	send := func(id, text string) error {
		x := table.NewTransaction()
		staged, err := messages.StageAddOnce(ctx, x, friday, 9, 1, id)
		if err != nil || !staged {
			return err // it was sent before, and counted
		}
		x.Insert(&tables.Entity{Key: tables.Key{Partition: friday.Partition, Row: compoundkey.Join("sent", compoundkey.String(id))},
			Properties: tables.Properties{{Name: "Text", Value: tables.String(text)}}})
		_, err = x.Commit(ctx)
		return err
	}
	for range 2 {
		if err := send("b8a5e8a0", "Lunch?"); err != nil {
			log.Fatal(err)
		}
	}
	day, err := messages.Read(ctx, friday)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(day.Slots[9].Value)
	// Output: 1
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
