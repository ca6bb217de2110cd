package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// company is what the scenarios work on: a store in an account, and the guide's employees in it, with indexes and without.
type company struct {
	options  options
	place    *place
	account  *tables.Account
	store    *patterns.Store
	network  *network // with -chaos, else nil
	kills    int      // of worker processes
	requests *storagetest.RequestCounter
	progress *progress
	repeat   int // how often each way to an answer is measured

	staff         []*Employee                             // as they are stored, in the order of their ids from 1
	staffTable                                            // with indexes
	plain         *patterns.Repository[Employee]          // one row an employee and nothing else, for comparison
	runTimeTables func(context.Context) ([]string, error) // names of tables that Store.Create does not create
	dropped       bool
	resources     []string // of the run, such as "table ContosoEmployees"
}

// openCompany opens the store, with names that nobody else has, and the tables of the employees. It sends nothing.
func openCompany(o options, at *place, p *progress) (c *company, err error) {
	err = attempt("open the store", func() {
		c = &company{options: o, place: at, requests: &storagetest.RequestCounter{}, progress: p, repeat: repetitions, staff: newStaff(o.employees, o.seed),
			runTimeTables: func(context.Context) ([]string, error) { return nil, nil }}
		if o.chaos {
			c.network = newNetwork(at.options.Transport, o.seed)
		}
		c.account = must(tables.NewAccountFromConnectionString(at.connection, &tables.AccountOptions{ClientOptions: c.clientOptions()}))
		// MaxOpen: the summary counts the requests of each change, so none may come after it.
		options := &patterns.StoreOptions{Account: c.account, Prefix: "Contoso" + strings.ToLower(rand.Text()[:12]), MaxOpen: -1}
		if o.chaos {
			options.Intents = eventual.IntentQueue(&eventual.QueueOptions{VisibilityTimeout: chaosVisibility}, nil)
		}
		c.store = must(patterns.Open("contoso", options))
		c.staffTable, c.plain = newStaffTable(c.store.Table("Employees")), newPlain(c.store.Table("Plain"))
	})
	return c, err
}

// clientOptions are for clients whose requests are counted, repetitions among them.
func (c *company) clientOptions() azcore.ClientOptions {
	options := c.place.options
	if c.network != nil {
		options = patient(options)
		options.Transport = c.network
	}
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), c.requests)
	return options
}

// employee returns what is stored of the employee with this id.
func (c *company) employee(id int) *Employee { return c.staff[id-1] }

// in returns those employees who are in a department.
func in(department string, staff []*Employee) []*Employee {
	return slices.DeleteFunc(slices.Clone(staff), func(e *Employee) bool { return e.Department != department })
}

// of returns the employees of a department, in the order of their ids.
func (c *company) of(department string) []*Employee { return in(department, c.staff) }

// some are employees of Sales from number reviewed to number jones, for scenarios that need no more.
func (c *company) some() []*Employee {
	return slices.DeleteFunc(c.of(sales), func(e *Employee) bool { return e.ID < reviewed || e.ID > jones })
}

// dropAll lists the tables, queues and containers of the run, and drops them once, unless they are to be kept.
func (c *company) dropAll(ctx context.Context) error {
	more, failed := c.runTimeTables(ctx)
	c.resources = nil
	for _, r := range c.store.Resources() {
		c.resources = append(c.resources, r.Kind+" "+path.Base(r.Name)) // of a container it is the URL
	}
	for _, name := range more {
		c.resources = append(c.resources, "table "+name)
	}
	if c.dropped || c.options.keep {
		return failed
	}
	c.dropped = true
	for _, what := range c.resources {
		kind, name, _ := strings.Cut(what, " ")
		var err error
		switch kind {
		case "table":
			err = c.account.Table(name).Drop(ctx)
		case "queue":
			_, err = eventual.QueueService(c.account).NewQueueClient(name).Delete(ctx, nil)
		default:
			_, err = blobstorage.Container(c.account, name).Delete(ctx, nil)
		}
		if answer, _ := errors.AsType[*azcore.ResponseError](err); err != nil && (answer == nil || answer.StatusCode != http.StatusNotFound) {
			failed = errors.Join(failed, fmt.Errorf("%s is left on the account: %w", what, err))
		}
	}
	return failed
}

// close drops what is left, also after Ctrl-C, unless it ends with the service.
func (c *company) close() error {
	if !c.place.lasts {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.dropAll(ctx)
}
