// Step 5 of the tutorial: a process dies in the middle of a change, and the index is right.
//
//	go run . kill EMAIL     gives employee 223 another email, and stops in the middle
//	go run . look           shows what is stored, and what Verify finds
//	go run . change EMAIL   gives employee 223 another email
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
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

// tracer counts requests. If it is on, it prints the POST requests of a change and stops before the third, when the entity is written.
type tracer struct {
	on        bool
	all, sent atomic.Int32
}

func (t *tracer) Do(req *policy.Request) (*http.Response, error) {
	t.all.Add(1)
	if t.on && req.Raw().Method == http.MethodPost {
		sent := t.sent.Add(1)
		if sent == 3 {
			fmt.Println("stopped before request 3: press Ctrl+C")
			time.Sleep(time.Hour)
		}
		fmt.Println("request", sent, "POST", path.Base(req.Raw().URL.Path))
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
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	check(err)
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.LastName) }, nil)
	byEmail := interpartition.NewUnique("email", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.Email) }, nil)
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key:    func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Prefix: "empid",
	}, byName, byEmail)
	check(err)
	stop, err := store.Start(ctx)
	check(err)
	june, err := employees.Get(ctx, keyOf("Sales", 223))
	check(err)

	switch {
	case len(os.Args) == 3 && (os.Args[1] == "kill" || os.Args[1] == "change"):
		june.Email = os.Args[2]
		trace.on = os.Args[1] == "kill"
		check(employees.Replace(ctx, june))
		check(stop()) // waits until the copies are settled
	case len(os.Args) == 2 && os.Args[1] == "look":
		fmt.Println("employee 223 has", june.Email)
		for _, email := range []string{"june@contoso.com", "jones@contoso.com"} {
			before := trace.all.Load()
			found, err := byEmail.Get(ctx, compoundkey.Folded(email))
			id := "nobody"
			if !errors.Is(err, tables.ErrNotFound) {
				check(err)
				id = fmt.Sprint(found.ID)
			}
			fmt.Println("the index finds", id, "under", email, "with", trace.all.Load()-before, "requests")
		}
		report, err := store.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error {
			fmt.Println("Verify:", f.Kind, "in index", f.Pattern)
			return nil
		}})
		check(err)
		fmt.Println("findings:", report.Findings)
	default:
		log.Fatal("give one of: kill EMAIL, look, change EMAIL")
	}
}
