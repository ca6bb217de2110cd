package largeentities_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee has a photo, which is read with her, and a video, which is read when somebody watches it.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Photo      []byte
	Video      largeentities.Stream `table:",omitzero"`
}

func keyOfEmployee(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

// open makes the repository, and creates the table and container that it needs.
func open(ctx context.Context, account *tables.Account) (*patterns.Repository[Employee], error) {
	store, err := patterns.Open("large", &patterns.StoreOptions{Account: account})
	if err != nil {
		return nil, err
	}
	photos := blobstorage.Open(store, "employee-files")
	photo := largeentities.NewProperty[Employee]("Photo", photos, &largeentities.Options{ContentType: "image/jpeg"})
	video := largeentities.NewStream("Video", func(e *Employee) *largeentities.Stream { return &e.Video }, photos, nil)
	employees, err := patterns.NewRepository(store.Table("LargeEmployees"), patterns.Schema[Employee]{
		Key:    func(e *Employee) tables.Key { return keyOfEmployee(e.Department, e.ID) },
		Prefix: "empid",
	}, photo, video)
	if err != nil {
		return nil, err
	}
	return employees, store.Create(ctx)
}

// A photo and a video are written with their employee, and read.
func Example() {
	ctx := context.Background()
	employees, err := open(ctx, simulatedAccount())
	if err != nil {
		log.Fatal(err)
	}
	e := &Employee{Department: "Sales", ID: 223, Name: "Jones", Photo: bytes.Repeat([]byte("jpeg"), 10_000)}
	e.Video = largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return os.Open("doc.go") },
		&largeentities.StreamOptions{ContentType: "video/mp4"})
	if err := employees.Insert(ctx, e); err != nil {
		log.Fatal(err)
	}

	e, err = employees.Get(ctx, keyOfEmployee("Sales", 223))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(e.Photo), "bytes of photo;", e.Video.ContentType(), "in a blob:", e.Video.InBlob())

	r, err := e.Video.OpenRange(ctx, 3, 7)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	part, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", part)

	if err := employees.Delete(ctx, e); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 40000 bytes of photo; video/mp4 in a blob: true
	// "Package"
}

// simulatedAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func simulatedAccount() *tables.Account {
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
