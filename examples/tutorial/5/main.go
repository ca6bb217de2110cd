// Step 5 of the tutorial: a process dies in the middle of a change, and a worker finishes the change.
//
//	go run . change EMAIL   gives employee 223 another email, and stops in the middle
//	go run . look           shows what is stored, and what Verify finds
//	go run . work           runs the worker until nothing is left to do
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the entity: each exported field is a property of its row.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Email      string
}

// keyOf returns where an employee is stored: in the partition of the department, under the id in six digits.
func keyOf(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

// tracer prints the POST requests of a change and stops before the fourth, when the entity is written and the index is not.
type tracer struct {
	on   bool
	sent int
}

func (t *tracer) Do(req *policy.Request) (*http.Response, error) {
	if t.on && req.Raw().Method == http.MethodPost {
		if t.sent++; t.sent == 4 {
			fmt.Println("stopped before request 4: press Ctrl+C")
			time.Sleep(time.Hour)
		}
		fmt.Println("request", t.sent, "POST", path.Base(req.Raw().URL.Path))
	}
	return req.Next()
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, trace := context.Background(), &tracer{}
	account, err := tables.NewAccountFromEnv(&tables.AccountOptions{ClientOptions: policy.ClientOptions{PerRetryPolicies: []policy.Policy{trace}}})
	check(err)
	intents := eventual.IntentQueue(&eventual.QueueOptions{VisibilityTimeout: 3 * time.Second}) // the default, a minute, is long for a tutorial
	store, err := patterns.NewStore(account, "contoso", &patterns.StoreOptions{Intents: intents})
	check(err)
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.Fold(e.LastName), compoundkey.Int(e.ID, 6))
	}, nil)
	byEmail := interpartition.NewIndex("email", func(e *Employee) compoundkey.Part { return compoundkey.Fold(e.Email) },
		&interpartition.Options[Employee]{Unique: true})
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}, byName, byEmail)
	check(err)
	check(store.Create(ctx))
	june, err := employees.Get(ctx, keyOf("Sales", 223))
	check(err)

	switch {
	case len(os.Args) == 3 && os.Args[1] == "change":
		june.Email = os.Args[2]
		trace.on = true
		check(employees.Replace(ctx, june))
	case len(os.Args) == 2 && os.Args[1] == "look":
		fmt.Println("employee 223 has", june.Email)
		for _, email := range []string{"june@contoso.com", "jones@contoso.com"} {
			found, err := byEmail.Get(ctx, compoundkey.Fold(email))
			if !errors.Is(err, tables.ErrNotFound) {
				check(err)
				fmt.Println("the index finds", found.ID, "under", email)
			}
		}
		report, err := store.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error {
			fmt.Println("Verify:", f.Kind, "in index", f.Pattern)
			return nil
		}})
		check(err)
		fmt.Println("findings:", report.Findings)
	case len(os.Args) == 2 && os.Args[1] == "work":
		working, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- eventual.Run(working, store, &eventual.WorkerOptions{MaxPoll: time.Second}) }()
		open := 1
		for open > 0 {
			time.Sleep(time.Second)
			open, err = eventual.Intents(store).Length(ctx)
			check(err)
		}
		stop()
		check(<-ended)
		fmt.Println("intents left:", open)
	default:
		log.Fatal("give one of: change EMAIL, look, work")
	}
}
