package simulator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/tables"
)

// libraryTable is a table of a simulator as the library sees it.
func libraryTable(t *testing.T, o simulator.Options) (*simulator.Simulator, *tables.Table) {
	t.Helper()
	sim := assert.Must[*simulator.Simulator](t)(simulator.New(o))
	account, err := tables.NewAccountWithSharedKey(tables.Endpoints{Table: sim.TableEndpoint(), Queue: sim.QueueEndpoint(), Blob: sim.BlobEndpoint()},
		sim.Account(), sim.Key(), &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: sim,
			Retry: policy.RetryOptions{MaxRetries: 20, RetryDelay: time.Microsecond, MaxRetryDelay: time.Microsecond}}})
	assert.Check(t, err)
	table := account.Table("Employees")
	assert.Check(t, table.Create(t.Context()))
	return sim, table
}

func row(pk, rk string, n int) *tables.Entity {
	return &tables.Entity{Key: tables.Key{Partition: pk, Row: rk}, Properties: tables.Properties{{Name: "N", Value: tables.Int32(int32(n))}}}
}

func TestTheLibraryOnASimulator(t *testing.T) {
	sim, table := libraryTable(t, simulator.Options{})
	ctx := t.Context()
	rows := table.Entities()
	assert.Check(t, rows.Insert(ctx, row("O'Brien", "it's", 1)))
	assert.ErrorIs(t, rows.Insert(ctx, row("O'Brien", "it's", 1)), tables.ErrExists)
	got, err := rows.Get(ctx, tables.Key{Partition: "O'Brien", Row: "it's"})
	if err != nil || string(got.ETag) != sim.Rows("Employees")[0].ETag {
		t.Fatalf("%+v %v", got, err)
	}
	x := table.NewTransaction()
	x.Insert(row("O'Brien", "new", 2))
	x.Insert(row("O'Brien", "it's", 3))
	_, err = x.Commit(ctx)
	var failed *tables.Error
	if !errors.As(err, &failed) || !errors.Is(err, tables.ErrExists) || failed.Change != 2 || failed.Code != "EntityAlreadyExists" {
		t.Errorf("error %+v", err)
	}
	assert.Check(t, table.Drop(ctx))
	assert.ErrorIs(t, table.Create(ctx), tables.ErrBeingDeleted)
	sim.Clock().Advance(simulator.DefaultTableDeletion)
	assert.Check(t, table.Create(ctx))
}

// TestTheLibraryInChaos: whatever fails before or after it was applied, and however pages are cut, what was written is
// there once and is read once.
func TestTheLibraryInChaos(t *testing.T) {
	for seed := range uint64(5) {
		sim, table := libraryTable(t, simulator.Options{Seed: seed})
		sim.SetChaos(environment.Chaos{Busy: 0.1, Internal: 0.1, Applied: 0.5, ShortPages: 0.5, EmptyPages: 0.3, PartitionPages: 0.3, NoNextRowKey: 0.5})
		rows := table.Entities()
		for i := range 60 {
			x := table.NewTransaction()
			for j := range 3 {
				x.Insert(row(fmt.Sprint("p", i%4), fmt.Sprintf("r%03d-%d", i, j), i))
			}
			assert.NoError(assert.Fatal(t), assert.Err(x.Commit(t.Context())), "seed %d, transaction %d", seed, i)
		}
		seen := map[tables.Key]bool{}
		for e, err := range rows.Query().AllowTableScan().All(t.Context()) {
			assert.Check(t, err)
			if seen[e.Key] {
				t.Errorf("%v was read twice", e.Key)
			}
			seen[e.Key] = true
		}
		if len(seen) != 180 || len(sim.Rows("Employees")) != 180 {
			t.Errorf("seed %d: %d rows read, %d stored, want 180", seed, len(seen), len(sim.Rows("Employees")))
		}
	}
}
