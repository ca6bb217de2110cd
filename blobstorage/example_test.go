package blobstorage_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A container of a Store: Create makes it, and patterns such as largeentities.NewProperty take the client.
func Example() {
	s, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account, Prefix: "Test"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	photos := blobstorage.Open(store, "photos")
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = photos.NewBlockBlobClient("1").UploadBuffer(ctx, []byte("picture"), nil)
	fmt.Println(store.Resources()[0].Role, err)
	// Output: Storage Blob Data Contributor <nil>
}
