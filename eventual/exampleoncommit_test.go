package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Customer is an entity whose commits others want to know.
type Customer struct {
	tables.Meta
	Region, ID, Email string
}

func customerSchema() patterns.Schema[Customer] {
	return patterns.Schema[Customer]{Key: func(c *Customer) tables.Key { return tables.Key{Partition: c.Region, Row: c.ID} }}
}

// mailer is another system, which sends each mail once if it is told by which ID to know it again.
type mailer struct{ sent map[string]bool }

func (m *mailer) send(id, to string) {
	if !m.sent[id] {
		m.sent[id] = true
		fmt.Println("welcome,", to)
	}
}

// Each new customer gets one mail, although the handler is called twice: the first call fails after it has sent the mail, as if the
// answer of the other system was lost.
func ExampleOnCommit() {
	ctx := context.Background()
	store, err := patterns.Open("welcome", &patterns.StoreOptions{Account: customerAccount()})
	if err != nil {
		log.Fatal(err)
	}
	mails, calls := mailer{map[string]bool{}}, 0
	welcome := eventual.OnCommit("welcome", func(ctx context.Context, c eventual.Commit[Customer]) error {
		mails.send(c.ID, c.Entity.Email) // c.ID: the idempotency key
		if calls++; calls == 1 {
			return errors.New("no answer")
		}
		return nil
	}, nil)
	customers, err := patterns.NewRepository(store.Table("Customers"), customerSchema(), welcome)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	if err := customers.Insert(ctx, &Customer{Region: "north", ID: "ann", Email: "ann@contoso.com"}); err != nil {
		log.Fatal(err) // not for the handler's error: the customer is stored
	}
	if err := handleIntents(ctx, store); err != nil {
		log.Fatal(err)
	}
	fmt.Println(calls, "calls")
	// Output:
	// welcome, ann@contoso.com
	// 2 calls
}

// handleIntents handles what writers have left. A service calls Store.Start instead, whose worker goes on until it is stopped.
func handleIntents(ctx context.Context, store *patterns.Store) error {
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }})
	if err != nil {
		return err
	}
	_, err = worker.Drain(ctx)
	return err
}

// TicketClosed is what support wants to know: a ticket's row does not tell when and by whom it was closed.
type TicketClosed struct{ Ticket, By string }

// A ticket is closed and an event staged in one transaction: either both happen or none.
func ExampleNewEvents() {
	ctx := context.Background()
	store, err := patterns.Open("tickets", &patterns.StoreOptions{Account: customerAccount()})
	if err != nil {
		log.Fatal(err)
	}
	table := store.Table("Tickets")
	customers, err := patterns.NewRepository(table, patterns.Schema[Customer]{
		Key:    func(c *Customer) tables.Key { return tables.Key{Partition: c.Region, Row: "customer_" + c.ID} },
		Prefix: "customer",
	})
	if err != nil {
		log.Fatal(err)
	}
	closed, err := eventual.NewEvents(table, "closed", func(_ context.Context, e eventual.Event[TicketClosed]) error {
		fmt.Println("ticket", e.Body.Ticket, "closed by", e.Body.By) // e.ID: the idempotency key
		return nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	x := table.NewTransaction()
	customers.StageInsert(x, &Customer{Region: "north", ID: "ann"})
	closed.Stage(x, "north", TicketClosed{Ticket: "17", By: "ann"})
	if _, err := x.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stop())
	// Output:
	// ticket 17 closed by ann
	// <nil>
}

// searchIndex is a search index of another service: a document by key.
type searchIndex struct {
	mu        sync.Mutex
	documents map[tables.Key]string
}

// put stores a document, or removes it if it is empty.
func (x *searchIndex) put(key tables.Key, document string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.documents[key] = document; document == "" {
		delete(x.documents, key)
	}
}

// A search index follows a table. The handler stores each entity as it is, and removes what is gone. It is idempotent by the key, and
// the last call for an entity gets its last state, so it needs no Commit.ID.
func ExampleOnCommit_searchIndex() {
	ctx := context.Background()
	store, err := patterns.Open("search", &patterns.StoreOptions{Account: customerAccount()})
	if err != nil {
		log.Fatal(err)
	}
	index := searchIndex{documents: map[tables.Key]string{}}
	search := eventual.OnCommit("search", func(ctx context.Context, c eventual.Commit[Customer]) error {
		if c.Entity == nil {
			index.put(c.Key, "")
			return nil
		}
		index.put(c.Key, c.Entity.Email)
		return nil
	}, &eventual.OutboxOptions{On: eventual.Inserts | eventual.Updates | eventual.Deletes, Ordered: true})
	customers, err := patterns.NewRepository(store.Table("SearchedCustomers"), customerSchema(), patterns.Async(search))
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	ann, bob := &Customer{Region: "north", ID: "ann", Email: "ann@contoso.com"}, &Customer{Region: "north", ID: "bob", Email: "bob@contoso.com"}
	tx := customers.Table().NewTransaction()
	customers.StageInsert(tx, ann)
	customers.StageInsert(tx, bob)
	if _, err := tx.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	if err := handleIntents(ctx, store); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(index.documents), "documents")
	ann, err = customers.Update(ctx, customers.KeyOf(ann), func(c *Customer) error { c.Email = "june@contoso.com"; return nil })
	if err != nil {
		log.Fatal(err)
	}
	if err := customers.DeleteUnconditional(ctx, customers.KeyOf(bob)); err != nil {
		log.Fatal(err)
	}
	if err := handleIntents(ctx, store); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(index.documents), "document:", index.documents[customers.KeyOf(ann)])
	// Output:
	// 2 documents
	// 1 document: june@contoso.com
}

// customerAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func customerAccount() *tables.Account {
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
