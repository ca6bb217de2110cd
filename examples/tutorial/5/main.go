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
	"strings"
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

// program has what the commands use.
type program struct {
	tracer    *tracer
	store     *patterns.Store
	employees *patterns.Repository[Employee]
	byEmail   *interpartition.Index[Employee]
}

func open() (p *program, err error) {
	p = &program{tracer: &tracer{}}
	options := &tables.AccountOptions{}
	options.ClientOptions.PerRetryPolicies = []policy.Policy{p.tracer}
	account, err := tables.NewAccountFromEnv(options)
	if err != nil {
		return nil, err
	}
	intents := eventual.QueueOptions{VisibilityTimeout: 3 * time.Second} // the default, a minute, is long for a tutorial
	p.store, err = patterns.NewStore(account, "contoso", &patterns.StoreOptions{Intents: intents})
	if err != nil {
		return nil, err
	}
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.Fold(e.LastName), compoundkey.Int(e.ID, 6))
	}, nil)
	p.byEmail = interpartition.NewIndex("email", func(e *Employee) compoundkey.Part { return compoundkey.Fold(e.Email) },
		&interpartition.Options[Employee]{Unique: true, Group: func(*Employee) string { return interpartition.Global }})
	p.employees, err = patterns.NewRepository(p.store.Table("Employees"), patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}, byName, p.byEmail)
	return p, err
}

func main() {
	p, err := open()
	if err == nil {
		err = p.run(context.Background(), strings.Join(os.Args[1:], " "))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (p *program) run(ctx context.Context, command string) error {
	if err := p.store.Create(ctx); err != nil {
		return err
	}
	verb, email, _ := strings.Cut(command, " ")
	switch verb {
	case "change":
		return p.change(ctx, email)
	case "look":
		return p.look(ctx)
	case "work":
		return p.work(ctx)
	}
	return errors.New("give one of: change EMAIL, look, work")
}

func (p *program) change(ctx context.Context, email string) error {
	june, err := p.employees.Get(ctx, keyOf("Sales", 223))
	if err != nil {
		return err
	}
	june.Email = email
	p.tracer.on = true
	return p.employees.Replace(ctx, june)
}

func (p *program) look(ctx context.Context) error {
	june, err := p.employees.Get(ctx, keyOf("Sales", 223))
	if err != nil {
		return err
	}
	fmt.Println("employee 223 has", june.Email)
	for _, email := range []string{"june@contoso.com", "jones@contoso.com"} {
		found, err := p.byEmail.Get(ctx, interpartition.Global, compoundkey.Fold(email))
		if err == nil {
			fmt.Println("the index finds", found.ID, "under", email)
		} else if !errors.Is(err, tables.ErrNotFound) {
			return err
		}
	}
	report, err := p.store.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error {
		fmt.Println("Verify:", f.Kind, "in index", f.Pattern)
		return nil
	}})
	fmt.Println("findings:", report.Findings)
	return err
}

func (p *program) work(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- p.store.Run(working, &eventual.WorkerOptions{MaxPoll: time.Second}) }()
	open, err := p.store.Intents().Length(ctx)
	for err == nil && open > 0 {
		time.Sleep(time.Second)
		open, err = p.store.Intents().Length(ctx)
	}
	stop()
	fmt.Println("intents left:", open)
	return errors.Join(err, <-ended)
}
