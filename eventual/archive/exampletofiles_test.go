package archive_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"log"
	"maps"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Leaver is an employee, who is about to leave.
type Leaver struct {
	tables.Meta
	Department string
	ID         int
	Name       string
}

func leaverKey(l *Leaver) tables.Key {
	return tables.Key{Partition: l.Department, Row: compoundkey.Join("empid", compoundkey.Int(l.ID, 6))}
}

// shelf is a store of files in memory, in place of an object store of another vendor.
type shelf struct {
	mu    sync.Mutex
	files map[string]shelved
	puts  int
	meet  func(put int) error // if set, what Put returns after it has stored the file
}

type shelved struct {
	archive.File
	version string
}

// Put implements archive.Files.
func (s *shelf) Put(_ context.Context, name string, f archive.File, base string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[name].version != base {
		return "", tables.ErrConflict
	}
	s.puts++
	version := fmt.Sprint("v", s.puts)
	s.files[name] = shelved{f, version}
	if s.meet != nil {
		return version, s.meet(s.puts)
	}
	return version, nil
}

// Stat implements archive.Files.
func (s *shelf) Stat(_ context.Context, name string) (*archive.StoredFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, there := s.files[name]
	if !there {
		return nil, nil
	}
	return &archive.StoredFile{Version: f.version, Metadata: maps.Clone(f.Metadata), MD5: md5.Sum(f.Content)}, nil
}

// Delete implements archive.Files.
func (s *shelf) Delete(_ context.Context, name, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[name].version != version {
		return tables.ErrConflict
	}
	delete(s.files, name)
	return nil
}

// Those who have left are moved into files of another system: in the end an employee is in the table or in the file, and not in both.
func ExampleToFiles() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("filing", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	employees, err := patterns.NewRepository(store.Table("FiledEmployees"), patterns.Schema[Leaver]{Key: leaverKey, Prefix: "empid"})
	if err != nil {
		log.Fatal(err)
	}
	files := &shelf{files: map[string]shelved{}} // implements archive.Files
	name := func(e *Leaver) string { return fmt.Sprintf("%s/%d.json", e.Department, e.ID) }
	mover, err := archive.New(eventual.Intents(store), "file-employees", employees, archive.ToFiles(files, name), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	june := &Leaver{Department: "Sales", ID: 223, Name: "June Jones"}
	if err := employees.Insert(ctx, june); err != nil {
		log.Fatal(err)
	}
	if err := mover.Move(ctx, june); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, nil) // a service calls Store.Start
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = employees.Get(ctx, leaverKey(june))
	fmt.Println(errors.Is(err, tables.ErrNotFound))
	filed, err := archive.Decode[Leaver](files.files["Sales/223.json"].Content)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(filed.Name)
	// Output:
	// true
	// June Jones
}
