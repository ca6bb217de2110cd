package patterns_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// queueless has an effect outside of the partition, and names no queue for it.
type queueless struct{}

func (queueless) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "queueless", Effect: driver.Effect{OutsideKeys: func(context.Context, *driver.Change) ([]string, error) { return nil, nil },
		Reconcile: driver.ReconcileEach(func(context.Context, *driver.Reconciliation) error { return nil })}}, nil
}

// TestPatternWithoutQueue: the author of a pattern, or the program, says where intents go.
func TestPatternWithoutQueue(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	repositoryOf := func(with patterns.StoreOptions) error {
		with.Account = storeAccount(t, s)
		store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &with))
		_, err := patterns.NewRepository(store.Table("People"), personSchema(), patterns.Pattern[person](queueless{}))
		return err
	}
	if e := harness.WantKind(t, repositoryOf(patterns.StoreOptions{}), tables.ErrWiring); !strings.Contains(e.Error(), "Implementation.Intents") {
		t.Error(e)
	}
	if err := repositoryOf(patterns.StoreOptions{Intents: eventual.IntentQueue(nil, nil)}); err != nil {
		t.Error(err)
	}
	_, err := patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, s), OpenRepository: func(string) error { return nil }})
	if e := harness.WantKind(t, err, tables.ErrWiring); !strings.Contains(e.Error(), "set Intents") {
		t.Error(e)
	}
}
