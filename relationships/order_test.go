package relationships_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOrderWithLines: a transaction of an order with a unique key outside and 20 lines, which it counts, costs as much as the insert of
// the order alone.
func TestOrderWithLines(t *testing.T) {
	ctx, service, requests := t.Context(), *storagetest.Open(t), &storagetest.RequestCounter{}
	service.ClientOptions.PerRetryPolicies = append(slices.Clip(service.ClientOptions.PerRetryPolicies), requests)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions}))
	s := assert.Must[*shop](t)(openShop(account))
	assert.Check(t, s.store.Create(ctx), harness.Settle(ctx, s.store)) // from here on a change returns when its copies are settled
	var products []string
	for i := range 20 {
		products = append(products, fmt.Sprint("product ", i))
	}
	requests.Reset()
	assert.Check(t, s.orders.Insert(ctx, &Order{Tenant: "contoso", ID: "1", Reference: "A-1"}))
	alone := requests.Count()
	requests.Reset()
	o := &Order{Tenant: "contoso", ID: "2", Reference: "A-2"}
	assert.Check(t, s.place(ctx, o, products...))
	if n := requests.Count(); n != alone || alone != 3 { // mark, transaction, settle
		t.Errorf("an order alone is %d requests, with 20 lines %d", alone, n)
	}
	if o.Lines != 20 {
		t.Errorf("the order given was not updated: %d lines", o.Lines)
	}
	found := assert.Must[*Order](t)(s.byReference.Get(ctx, "A-2"))
	if found.Lines != 20 || found.ID != "2" {
		t.Errorf("%+v", found)
	}

	// The lines leave with the order; the count of what is deleted is not written.
	x := s.orders.Table().NewTransaction()
	s.orders.StageDelete(x, o)
	lines := 0
	for l, err := range s.lines.Query().Partition("contoso").All(ctx) {
		assert.Check(t, err)
		s.lines.StageDelete(x, l)
		lines++
	}
	_, err := x.Commit(ctx)
	assert.Check(t, err)
	if _, err := s.orders.Get(ctx, orderKey("contoso", "2")); lines != 20 || !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("%d lines, %v", lines, err)
	}
	if _, err := s.byReference.Get(ctx, "A-2"); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the key is still taken: %v", err)
	}

	// A line of an order that neither exists nor is staged is refused, and names the line.
	x = s.orders.Table().NewTransaction()
	s.orders.StageInsert(x, &Order{Tenant: "contoso", ID: "3", Reference: "A-3"})
	s.lines.StageInsert(x, &Line{Tenant: "contoso", Order: "4", Number: 1})
	_, err = x.Commit(ctx)
	var e *tables.Error
	if !errors.Is(err, tables.ErrMissingReference) || !errors.As(err, &e) || e.Change != 2 || e.Pattern != "lines" {
		t.Errorf("%+v", err)
	}
}
