package scatter_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Event is an access that was logged.
type Event struct {
	tables.Meta
	At       time.Time
	ID       int
	User     string
	Resource string
}

func rowOfEvent(at time.Time, id int) string {
	return compoundkey.Join("event", compoundkey.Time(at), compoundkey.Int(id, 8))
}

// openEvents opens the events of a table. Every program that writes or reads them does this.
func openEvents(table *tables.Table, options *scatter.Options) (*scatter.Spread[Event], error) {
	return scatter.New(table, scatter.Schema[Event]{
		Order:      scatter.ByTime("event", time.Minute),
		Row:        func(e *Event) string { return rowOfEvent(e.At, e.ID) },
		Partitions: 4,
	}, options)
}

// Events are named by their time, so that all new ones come last; and yet no partition takes them all. Another n holds from
// the next minute on, and reads do not show the difference.
func Example() {
	ctx := context.Background()
	now := time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC)
	store, err := patterns.Open("events", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	events, err := openEvents(store.Table("ExampleEvents"), &scatter.Options{Now: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	log4 := func(from int) {
		for id := from; id < from+4; id++ {
			now = now.Add(time.Second)
			if err := events.Insert(ctx, &Event{At: now, ID: id, User: "jonesj", Resource: "printer"}); err != nil { // 1 request
				log.Fatal(err)
			}
		}
	}
	log4(1)
	epoch, err := events.Resize(ctx, 16)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("16 partitions from", epoch.Time.Format(time.TimeOnly))
	now = now.Add(time.Minute)
	log4(5)

	from := compoundkey.Time(time.Date(2014, 8, 22, 9, 0, 3, 0, time.UTC))
	for e, err := range events.Range(ctx, compoundkey.AtLeast(from).Span, &scatter.ReadOptions{Limit: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.At.Format(time.TimeOnly), e.ID, e.Key().Partition)
	}
	// Output:
	// 16 partitions from 09:01:00
	// 09:00:03 3 event_002
	// 09:00:04 4 event_002
	// 09:01:05 5 event_011
	// 09:01:06 6 event_006
}

// access is an employee's access to something, as in the guide.
type access struct {
	tables.Meta
	Department string
	Employee   int
	At         time.Time
	ID         int
	Resource   string
}

func (a *access) row() string {
	return compoundkey.Join("access", compoundkey.Time(a.At), compoundkey.Int(a.ID, 8))
}

// A program that logs for the employees of a department spreads by them, as the guide does: what one of them did is one query.
func ExampleNewNatural() {
	ctx := context.Background()
	employee := func(id int) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String("Sales"), compoundkey.Int(id, 6))
	}
	store, err := patterns.Open("accesses", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	accesses, err := scatter.NewNatural(store.Table("ExampleAccesses"), scatter.NaturalSchema[access]{
		Name:      "event",
		Prefix:    "access",
		Partition: func(a *access) compoundkey.Part { return employee(a.Employee) },
		Row:       func(a *access) string { return a.row() },
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	nine := time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC)
	for i := range 6 {
		if err := accesses.Insert(ctx, &access{Department: "Sales", Employee: 223 + i%3, At: nine.Add(time.Duration(i) * time.Hour), ID: i}); err != nil {
			log.Fatal(err)
		}
	}
	for a, err := range accesses.Range(ctx, []compoundkey.Part{employee(223), employee(225)}, compoundkey.All(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.At.Format("15:04"), a.Employee, a.Key().Partition)
	}
	// Output:
	// 09:00 223 event_Sales!_000223
	// 11:00 225 event_Sales!_000225
	// 12:00 223 event_Sales!_000223
	// 14:00 225 event_Sales!_000225
}

// A meter tells which partitions are near the service's target, and how many would do.
func ExampleMeter() {
	now := time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC)
	meter, err := scatter.NewMeter(&scatter.MeterOptions{Now: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	meter.Add("event_000", 1900)
	meter.Add("event_001", 1300)
	for _, load := range meter.Hot() {
		fmt.Printf("%s: %d in a second, %.0f %% of the target\n", load.Partition, load.Peak, 100*load.Share)
	}
	fmt.Println("enough:", meter.Enough())
	// Output:
	// event_000: 1900 in a second, 95 % of the target
	// enough: 3
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
