package composition

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func open(s *storagetest.Service) (*tables.Account, error) {
	return tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
}

// newRegistry makes a registry of data keys with one key, out of the way of faults.
func newRegistry(t testing.TB) *encryption.Registry {
	t.Helper()
	account := assert.Must[*tables.Account](t)(open(storagetest.Simulator(t, nil)))
	keys := account.Table("DataKeys")
	assert.Check(t, keys.Create(t.Context()))
	wrapper := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("local", make([]byte, 32)))
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(keys, wrapper, nil))
	assert.Must[encryption.DataKeyID](t)(registry.CreateDataKey(t.Context()))
	return registry
}

func second[V any](_ V, err error) error { return err }

func third[V, W any](_ V, _ W, err error) error { return err }
