package largeentities_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// patient has an X-ray that nobody reads who has the storage account alone.
type patient struct {
	tables.Meta
	Ward string
	ID   int
	XRay []byte
}

// sealedXRays keeps X-rays in blobs, sealed under the registry's data keys.
func sealedXRays(store *patterns.Store, registry *encryption.Registry) (*patterns.Repository[patient], error) {
	sealer, err := encryption.NewStream(registry, nil)
	if err != nil {
		return nil, err
	}
	xray := largeentities.NewProperty[patient]("XRay", blobstorage.Open(store, "xrays"), &largeentities.Options{Sealer: sealer})
	return patterns.NewRepository(store.Table("Patients"), patterns.Schema[patient]{Key: func(p *patient) tables.Key {
		return tables.Key{Partition: p.Ward, Row: compoundkey.Join("patient", compoundkey.Int(p.ID, 6))}
	}}, xray)
}

func ExampleSealer() {
	ctx := context.Background()
	s, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	wrapper, err := encryption.NewLocalKey("local", []byte("32 bytes, in production from a vault"[:32]))
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("hospital", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	registry, err := encryption.NewRegistry(store.Table("DataKeys"), wrapper, nil)
	if err != nil {
		log.Fatal(err)
	}
	patients, err := sealedXRays(store, registry)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // two tables, a container, the queue of intents, and the first data key
		log.Fatal(err)
	}
	if err := patients.Insert(ctx, &patient{Ward: "North", ID: 7, XRay: []byte("a fracture")}); err != nil {
		log.Fatal(err)
	}
	read, err := patients.Get(ctx, tables.Key{Partition: "North", Row: "patient_000007"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", read.XRay)
	// Output: a fracture
}
