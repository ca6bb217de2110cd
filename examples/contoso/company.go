package main

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// company is what the scenarios work on.
type company struct {
	options  options
	place    *place
	account  *tables.Account
	store    *patterns.Store
	network  *network // with -chaos
	kills    int      // of worker processes
	requests *storagetest.RequestCounter
	progress *progress
	staff    []*Employee // as they are stored, in the order of their ids from 1

	// employees has the indexes; plain has one row an employee and nothing else, for comparison.
	employees *patterns.Repository[Employee]
	plain     *patterns.Repository[Employee]
	indexes   *indexes

	prefix string // of all names
	resources
}

// openCompany makes the tables for employees at the place.
func openCompany(ctx context.Context, o options, at *place, p *progress) (*company, error) {
	c := &company{options: o, place: at, requests: &storagetest.RequestCounter{}, progress: p, prefix: "Contoso" + strings.ToLower(rand.Text()[:12])}
	err := c.open(ctx)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *company) open(ctx context.Context) (err error) {
	if c.options.chaos {
		c.network = newNetwork(c.place.options.Transport, c.options.seed)
	}
	if c.account, err = c.client(); err != nil {
		return err
	}
	if c.store, err = c.openStore(); err != nil {
		return err
	}
	if err := c.make(ctx, c.store.Intents()); err != nil {
		return err
	}
	indexed, err := c.table(ctx, "Employees")
	if err != nil {
		return err
	}
	if c.employees, c.indexes, err = newEmployees(indexed); err != nil {
		return err
	}
	plain, err := c.table(ctx, "Plain")
	if err != nil {
		return err
	}
	c.plain, err = newPlain(plain)
	return err
}

// clientOptions are for clients whose requests are counted, repetitions among them. The policies see each of their calls once.
func (c *company) clientOptions(policies ...policy.Policy) azcore.ClientOptions {
	options := c.place.options
	if c.network != nil {
		options = patient(options)
		options.Transport = c.network
	}
	options.PerCallPolicies = append(slices.Clip(options.PerCallPolicies), policies...)
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), c.requests)
	return options
}

// openStore opens the company's store, as each program with its repositories would.
func (c *company) openStore() (*patterns.Store, error) {
	options := &patterns.StoreOptions{Prefix: c.prefix, MaxOpenIntents: -1} // the summary counts the requests of each change, so none may come later
	if c.options.chaos {
		options.Intents.VisibilityTimeout = chaosVisibility
	}
	return patterns.NewStore(c.account, "contoso", options)
}

// client opens the account once more, as a program of its own would.
func (c *company) client(policies ...policy.Policy) (*tables.Account, error) {
	return tables.NewAccountFromConnectionString(c.place.connection, &tables.AccountOptions{ClientOptions: c.clientOptions(policies...)})
}

// employee returns what is stored of the employee with this id.
func (c *company) employee(id int) *Employee { return c.staff[id-1] }

// of returns the employees of a department, in the order of their ids.
func (c *company) of(department string) []*Employee {
	var staff []*Employee
	for _, e := range c.staff {
		if e.Department == department {
			staff = append(staff, e)
		}
	}
	return staff
}
