package archive_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// errOffline is what a store says that has done nothing.
var errOffline = errors.New("the store is offline")

// TestToFiles: each Put of a move gets no answer, or fails, and a worker completes the move. A file that somebody has changed is left, with
// the entity.
func TestToFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		meet    func(*shelf) func(put int) error
		foreign bool // another file has the name
	}{
		{name: "no fault", meet: func(*shelf) func(int) error { return nil }},
		{name: "no answer to the pending file", meet: func(*shelf) func(int) error { return onPut(1, tables.ErrUnknownOutcome) }},
		{name: "no answer to the content", meet: func(*shelf) func(int) error { return onPut(2, tables.ErrUnknownOutcome) }},
		{name: "a failure after the pending file", meet: func(*shelf) func(int) error { return onPut(1, errOffline) }},
		{name: "another file", meet: func(*shelf) func(int) error { return nil }, foreign: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			store := assert.Must[*patterns.Store](t)(patterns.Open("files", &patterns.StoreOptions{Account: account}))
			employees := assert.Must[*patterns.Repository[Employee]](t)(patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{Key: employeeKey, Prefix: "empid"}))
			files := &shelf{files: map[string]shelved{}}
			files.meet = c.meet(files)
			mover := assert.Must[*archive.Mover[Employee]](t)(archive.New(eventual.Intents(store), "m", employees, archive.ToFiles(files, func(e *Employee) string { return e.Name }), nil))
			assert.Check(t, store.Create(t.Context()))
			if c.foreign {
				files.files["June"] = shelved{archive.File{Content: []byte("mine")}, "v0"}
			}
			june := &Employee{Department: "Sales", ID: 223, Name: "June"}
			assert.Check(t, employees.Insert(t.Context(), june), mover.Move(t.Context(), june))
			if c.foreign {
				assert.Check(t, harness.PoisonAll(t.Context(), s, eventual.Intents(store)))
			}
			for range 3 {
				assert.Check(t, harness.DrainNow(t.Context(), eventual.Intents(store)))
				s.Wait(2 * time.Minute)
			}
			_, err := employees.Get(t.Context(), employeeKey(june))
			if c.foreign {
				if err != nil || string(files.files["June"].Content) != "mine" {
					t.Errorf("%s: %v, and the file is %s", c.name, err, files.files["June"].Content)
				}
				entries := assert.Must[[]eventual.PoisonMessage](t)(eventual.Intents(store).Poison().Peek(t.Context(), 2))
				if len(entries) != 1 {
					t.Errorf("%+v", entries)
				}
				return
			}
			filed, decodeErr := archive.Decode[Employee](files.files["June"].Content)
			if !errors.Is(err, tables.ErrNotFound) || decodeErr != nil || filed.Name != "June" {
				t.Errorf("%s: %v, %v, %+v", c.name, err, decodeErr, filed)
			}
			if n := assert.Must[int](t)(eventual.Intents(store).Length(t.Context())); n != 0 {
				t.Errorf("%s: %d messages are left", c.name, n)
			}
		})
	}
	var none *shelf
	employees := assert.Must[*patterns.Repository[Employee]](t)(patterns.NewRepository(harness.ExampleTable("NoFiles"), patterns.Schema[Employee]{Key: employeeKey}))
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(employees.Table().Account(), "nofiles", nil))
	for _, files := range []archive.Files{nil, none} {
		if _, err := archive.New(queue, "m", employees, archive.ToFiles(files, func(e *Employee) string { return e.Name }), nil); err == nil || !strings.Contains(err.Error(), "Files are nil") {
			t.Error(err)
		}
	}
	if _, err := archive.Decode[Employee]([]byte("mine")); !errors.Is(err, tables.ErrGarbled) {
		t.Error(err)
	}
}

// onPut is an error of one Put.
func onPut(n int, err error) func(int) error {
	return func(put int) error {
		if put == n {
			return err
		}
		return nil
	}
}
