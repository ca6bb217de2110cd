package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// employee has an encrypted property of every type.
type employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Number     string    `encrypt:"true"`
	Salary     int64     `encrypt:"true"`
	Grade      int32     `encrypt:"true"`
	Rating     float64   `encrypt:"true"`
	Born       time.Time `encrypt:"true"`
	Photo      []byte    `encrypt:"true"`
	Abroad     bool      `encrypt:"true"`
	Badge      uuid.UUID `encrypt:"true"`
	Phone      *string   `encrypt:"true"`
}

func employeeKey(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func june(department string, id int) *employee {
	return &employee{Department: department, ID: id, Name: "June Jones", Number: "078-05-1120", Salary: 71_000, Grade: 7, Rating: 0.75,
		Born: time.Date(1980, 2, 29, 0, 0, 0, 100, time.UTC), Photo: []byte{0xff, 0xd8, 0x00}, Abroad: true, Badge: uuid.UUID{1, 2, 3}}
}

// world is a table of entities and one of data keys.
type world struct {
	s        *storagetest.Service
	account  *tables.Account
	keys     *tables.Table
	registry *encryption.Registry
	wrapper  encryption.KeyWrapper
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOn(t, storagetest.Open(t))
}

func worldOn(t testing.TB, s *storagetest.Service) *world {
	t.Helper()
	w := &world{s: s, account: open(t, s), wrapper: localKey(t, "local", 1)}
	w.keys = w.account.Table(s.TableName(t))
	assert.Check(t, w.keys.Create(t.Context()))
	w.registry = w.open(t, w.wrapper, nil)
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(t.Context()))
	return w
}

func open(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

func localKey(t testing.TB, id string, seed byte) encryption.LocalKey {
	t.Helper()
	return assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey(id, bytes.Repeat([]byte{seed}, 32)))
}

// open opens the registry as another process would.
func (w *world) open(t testing.TB, wrapper encryption.KeyWrapper, o *encryption.RegistryOptions) *encryption.Registry {
	t.Helper()
	return assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, wrapper, o))
}

// employees opens a table of employees, which is made if its name is new.
func (w *world) employees(t testing.TB, table string, o *encryption.Options, others ...patterns.Pattern[employee]) *patterns.Repository[employee] {
	t.Helper()
	r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(w.account.Table(table), w.registry, o, others...))
	assert.Check(t, r.Table().CreateIfMissing(t.Context()))
	return r
}

func employeesOf(table *tables.Table, registry *encryption.Registry, o *encryption.Options, others ...patterns.Pattern[employee]) (*patterns.Repository[employee], error) {
	return patterns.NewRepository(table, patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return employeeKey(e.Department, e.ID) }, Prefix: "empid",
	}, append([]patterns.Pattern[employee]{encryption.New[employee]("encryption", registry, o)}, others...)...)
}

// bags are the rows of a table as they are stored.
func bag(t testing.TB, table *tables.Table, key tables.Key) *tables.Entity {
	t.Helper()
	return assert.Must[*tables.Entity](t)(table.Entities().Get(t.Context(), key))
}

// put stores a row behind the library's back.
func put(t testing.TB, table *tables.Table, e *tables.Entity) {
	t.Helper()
	plain := &tables.Entity{Key: e.Key, Properties: e.Properties}
	assert.Check(t, table.Entities().Upsert(t.Context(), plain))
}

// refusedBy checks that an error is the one error, and returns its text.
func refusedBy(t testing.TB, err error, what string) string {
	t.Helper()
	if !errors.Is(err, encryption.ErrNotAuthentic) || !errors.Is(err, tables.ErrGarbled) {
		t.Fatalf("%s: %v", what, err)
	}
	return err.Error()
}

func sameEmployee(a, b *employee) error {
	x, y := *a, *b
	x.Meta, y.Meta = tables.Meta{}, tables.Meta{}
	if fmt.Sprintf("%+v", x) != fmt.Sprintf("%+v", y) {
		return fmt.Errorf("read %+v, and wrote %+v", x, y)
	}
	return nil
}

func background() context.Context { return context.Background() }
