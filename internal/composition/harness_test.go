package composition

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func open(s *storagetest.Service) (*tables.Account, error) {
	return tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
}

// newRegistry makes a registry of data keys with one key, out of the way of faults.
func newRegistry(t testing.TB) *encryption.Registry {
	t.Helper()
	account := must[*tables.Account](t)(open(storagetest.Simulator(t, nil)))
	keys := account.Table("DataKeys")
	check(t, keys.Create(t.Context()))
	wrapper := must[encryption.LocalKey](t)(encryption.NewLocalKey("local", make([]byte, 32)))
	registry := must[*encryption.Registry](t)(encryption.NewRegistry(keys, wrapper, nil))
	must[encryption.DataKeyID](t)(registry.CreateDataKey(t.Context()))
	return registry
}

func must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func second[V any](_ V, err error) error { return err }

func third[V, W any](_ V, _ W, err error) error { return err }
