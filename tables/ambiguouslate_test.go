package tables_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestLateCreation: the first attempt to create a table is on its way, the second hears that the table is being deleted, and the
// name is free 5 s later. So the table is made after all, and that answer did not say that it will not be.
func TestLateCreation(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	late := &harness.HeldRequest{Network: s.ClientOptions.Transport}
	faulty, _ := s.WithRetries(1).Faulty(storagetest.On(storagetest.CreateTable, storagetest.Once(storagetest.Always(late))))
	concurrentWrite, ours := lateTable(t, s, "Contoso"), lateTable(t, faulty, "Contoso")
	assert.Check(t, errors.Join(concurrentWrite.Create(t.Context()), concurrentWrite.Drop(t.Context())))
	s.Wait(35 * time.Second)
	wantUnknown(t, ours.Create(t.Context()), "TableBeingDeleted")
	s.Wait(5 * time.Second)
	if status := late.Arrive(); status != http.StatusCreated && status != http.StatusNoContent {
		t.Errorf("the first attempt is answered with %d: the test shows nothing", status)
	}
}

func lateTable(t *testing.T, s *storagetest.Service, name string) *tables.Table {
	t.Helper()
	a, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	return a.Table(name)
}
