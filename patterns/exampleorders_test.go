package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Buyer, Order and Event are in the partition of their tenant.
type Buyer struct {
	tables.Meta
	Tenant, ID, Name, Email string
	TaxID                   string `encrypt:"true"`
}

type Order struct {
	tables.Meta
	Tenant, ID, Status string
	Buyer, BuyerName   string // BuyerName is a copy
	Invoice            []byte // a PDF
}

type Event struct {
	tables.Meta
	logtail.Entry
	Tenant, Text string
}

// orderService has what the order service stores.
type orderService struct {
	store    *patterns.Store
	buyers   *patterns.Repository[Buyer]
	orders   *patterns.Repository[Order]
	events   *logtail.Log[Event]
	archive  *archive.Mover[Order]
	byEmail  *interpartition.Unique[Buyer, compoundkey.Folded]
	byStatus *indexentities.Index[Order, string]
}

func buyerKey(tenant, id string) tables.Key {
	return tables.Key{Partition: tenant, Row: compoundkey.Join("buyer", compoundkey.String(id))}
}

func orderKey(o *Order) tables.Key {
	return tables.Key{Partition: o.Tenant, Row: compoundkey.Join("order", compoundkey.String(o.ID))}
}

// openOrderService declares everything. It makes no request.
func openOrderService(account *tables.Account, wrapper encryption.KeyWrapper) (s *orderService, err error) {
	s = &orderService{}
	if s.store, err = patterns.Open("orders", &patterns.StoreOptions{Account: account}); err != nil {
		return nil, err
	}
	keys, err := encryption.NewRegistry(s.store.Table("Keys"), wrapper, nil)
	if err != nil {
		return nil, err
	}
	s.byEmail = interpartition.NewUnique("email", func(b *Buyer) compoundkey.Folded { return compoundkey.Folded(b.Email) }, nil)
	s.byStatus = indexentities.NewInPartition("status", func(o *Order) string { return o.Status })
	names := denormalization.New("buyer", denormalization.Link[Buyer, Order]{
		Properties: []string{"BuyerName"},
		SourceOf:   func(o *Order) (tables.Key, bool) { return buyerKey(o.Tenant, o.Buyer), true },
		Find: func(orders tables.Query[Order], buyer tables.Key) tables.Query[Order] {
			return orders.Partition(buyer.Partition)
		},
		Copy: func(b *Buyer, o *Order) {
			if o.BuyerName = ""; b != nil {
				o.BuyerName = b.Name
			}
		},
	}, nil)
	if s.buyers, err = patterns.NewRepository(s.store.Table("Buyers"), patterns.Schema[Buyer]{Prefix: "buyer",
		Key: func(b *Buyer) tables.Key { return buyerKey(b.Tenant, b.ID) },
	}, s.byEmail, patterns.Async(names.Source()), encryption.New[Buyer]("seal", keys, nil)); err != nil {
		return nil, err
	}
	invoice := largeentities.NewProperty[Order]("Invoice", blobstorage.Open(s.store, "invoices"), nil)
	if s.orders, err = patterns.NewRepository(s.store.Table("Orders"), patterns.Schema[Order]{Key: orderKey, Prefix: "order"},
		s.byStatus, names.Holder(), invoice); err != nil {
		return nil, err
	}
	archived, err := patterns.NewRepository(s.store.Table("ArchivedOrders"), patterns.Schema[Order]{Key: orderKey, Prefix: "order"},
		largeentities.NewProperty[Order]("Invoice", blobstorage.Open(s.store, "archived-invoices"), nil))
	if err != nil {
		return nil, err
	}
	if s.archive, err = archive.New(eventual.Intents(s.store), "archive-orders", s.orders, archive.ToRepository(archived, nil), nil); err != nil {
		return nil, err
	}
	s.events, err = logtail.New(s.store.Table("Events"), logtail.Schema[Event]{Partition: func(e *Event) string { return e.Tenant }})
	return s, err
}

// An order service: a unique email, orders by status and with their buyer's name, an encrypted tax number, invoices in blobs, an
// audit log, an archive, and the worker of them all.
func Example_orderService() {
	ctx := context.Background()
	s, err := openOrderService(exampleAccount())
	if err != nil {
		log.Fatal(err)
	}
	stop, err := s.store.Start(ctx) // creates what is missing, and runs the worker
	if err != nil {
		log.Fatal(err)
	}

	ann := &Buyer{Tenant: "contoso", ID: "7", Name: "Ann", Email: "Ann@contoso.com", TaxID: "DE 123"}
	order := &Order{Tenant: "contoso", ID: "2024-1", Status: "placed", Buyer: "7", Invoice: []byte("%PDF")}
	if err := errors.Join(s.buyers.Insert(ctx, ann), s.orders.Insert(ctx, order), s.events.Append(ctx, &Event{Tenant: "contoso", Text: "placed 2024-1"})); err != nil {
		log.Fatal(err)
	}
	for o, err := range s.byStatus.In("contoso").Find(ctx, "placed", nil) {
		fmt.Println(o.ID, o.BuyerName, err)
	}
	found, err := s.byEmail.Get(ctx, "ann@contoso.com")
	fmt.Println(found.TaxID, err)
	fmt.Println(s.archive.Move(ctx, order))

	fmt.Println(stop())
	// Output:
	// 2024-1 Ann <nil>
	// DE 123 <nil>
	// <nil>
	// <nil>
}

// exampleAccount is an account on a simulator, and a key that a program would keep in a vault.
func exampleAccount() (*tables.Account, encryption.KeyWrapper) {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	key, err := encryption.NewLocalKey("local", make([]byte, 32))
	if err != nil {
		log.Fatal(err)
	}
	return account, key
}
