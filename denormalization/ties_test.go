package denormalization_test

import (
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSourcesOfOneTimestamp: two sources that name one holder may have one Timestamp, as all rows of a change set do, and rows
// that were written within a millisecond. Which of them the holder follows must not depend on whose intent is carried out last:
// intents come in any order and more than once.
func TestSourcesOfOneTimestamp(t *testing.T) {
	for _, order := range [][]*employee{{jones(), kwok()}, {kwok(), jones()}} {
		t.Run(order[0].Name+" first", func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := newWorld(t, s, elsewhere)
			p := assert.Must[*process](t)(w.start(s))
			assert.Check(t, p.departments.Insert(ctx, &department{Site: "Sales", Name: "A"}))
			for _, e := range order {
				e.ManagesSite, e.Manages = "Sales", "A"
				assert.Check(t, p.employees.Insert(ctx, e))
			}
			tie(t, p, jones().key(), kwok().key())
			place := "Sales\t" + departmentKey("Sales", "A").Row
			carryOut := func(e *employee) {
				t.Helper()
				assert.Check(t, p.carryOut(ctx, intents.Intent{Members: []intents.Member{{Key: e.key(), Outside: map[string][]string{"manager": {place}}}}}))
			}
			etag := ""
			for range 3 { // again and again
				for _, e := range order {
					carryOut(e)
				}
				d := assert.Must[*department](t)(p.departments.Get(ctx, departmentKey("Sales", "A")))
				if d.ManagerName != "Kwok" {
					t.Errorf("the department has the details of %s; of two managers with one Timestamp it must follow the one whose key is greater", d.ManagerName)
				}
				if now := string(d.ETag); etag != "" && now != etag {
					t.Error("the department was written again, although nothing had changed")
				} else {
					etag = now
				}
			}
			// Whoever stops naming the department does not take it from the other.
			assert.Check(t, p.employees.Replace(ctx, unmanaged(t, p, jones().key())))
			carryOut(jones())
			carryOut(kwok())
			if d := assert.Must[*department](t)(p.departments.Get(ctx, departmentKey("Sales", "A"))); d.ManagerName != "Kwok" {
				t.Errorf("after the other one stopped, the department has the details of %q", d.ManagerName)
			}
		})
	}
}

// tie writes both rows in one change set, as they are, so that they have one Timestamp and ETag.
func tie(t *testing.T, p *process, keys ...tables.Key) {
	t.Helper()
	var actions []aztables.TransactionAction
	for _, key := range keys {
		row := assert.Must[[]byte](t)(json.Marshal(map[string]string{"PartitionKey": key.Partition, "RowKey": key.Row}))
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeUpdateMerge, Entity: row})
	}
	assert.Must[aztables.TransactionResponse](t)(p.employees.Table().Client().SubmitTransaction(t.Context(), actions, nil))
	first := assert.Must[*employee](t)(p.employees.Get(t.Context(), keys[0]))
	for _, key := range keys[1:] {
		if e := assert.Must[*employee](t)(p.employees.Get(t.Context(), key)); !e.Timestamp.Equal(first.Timestamp) || e.ETag != first.ETag {
			t.Fatalf("the rows have the Timestamps %v and %v", first.Timestamp, e.Timestamp)
		}
	}
}

// unmanaged reads an employee, and has them stop.
func unmanaged(t *testing.T, p *process, key tables.Key) *employee {
	t.Helper()
	e := assert.Must[*employee](t)(p.employees.Get(t.Context(), key))
	e.ManagesSite, e.Manages = "", ""
	return e
}
