package interpartition_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestForgedIndexRows: rows of an index that name other entities and other values have no job write another entity or delete one, in either
// kind of index, and Repair removes them.
func TestForgedIndexRows(t *testing.T) {
	type person struct {
		tables.Meta
		PartitionKey, RowKey, Email string
	}
	key := func(p *person) string { return p.Email }
	for name, index := range map[string]patterns.Pattern[person]{
		"in the partition": intrapartition.NewUnique("email", key, nil),
		"elsewhere":        interpartition.NewUnique("email", key, nil),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			table := account.Table(s.TableName(t))
			people := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, patterns.Schema[person]{Rows: compoundkey.Range("p", "q")}, index))
			assert.Check(t, table.Create(ctx))
			assert.Check(t, people.Insert(ctx, &person{PartitionKey: "Works", RowKey: "p1", Email: "june"}), people.Insert(ctx, &person{PartitionKey: "Attacker", RowKey: "p2", Email: "mallory"}))
			var copies []map[string]any
			read := func() (etags map[string]string) {
				etags, copies = map[string]string{}, nil
				for pager := table.Client().NewListEntitiesPager(nil); pager.More(); {
					for _, raw := range assert.Must[aztables.ListEntitiesResponse](t)(pager.NextPage(ctx)).Entities {
						var row map[string]any
						assert.Check(t, json.Unmarshal(raw, &row))
						switch row["RowKey"] {
						case "p1", "p2":
							etags[row["RowKey"].(string)] = row["odata.etag"].(string)
						default:
							copies = append(copies, row)
						}
					}
				}
				return etags
			}
			entities := read()
			stored := len(copies)
			for _, row := range copies {
				if row["_tpPrimary"] != "p2" {
					continue
				}
				for property, value := range map[string]any{"RowKey": row["RowKey"].(string) + "x", "_tpPrimary": "p1", "_tpPartition": "Works", "Email": "june"} {
					forged := maps.Clone(row)
					delete(forged, "odata.etag")
					delete(forged, "Timestamp")
					if forged[property] == nil {
						continue
					}
					forged[property] = value
					text := assert.Must[[]byte](t)(json.Marshal(forged))
					_, err := table.Client().UpsertEntity(ctx, text, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
					assert.Check(t, err)
				}
			}
			for range 2 {
				_, err := harness.Findings(lease.Waive(ctx, lease.Terms), people.Repair, &patterns.JobOptions{Lag: 1})
				assert.Check(t, err)
			}
			if after := read(); entities["p1"] != after["p1"] || len(after) != 2 {
				t.Errorf("entities before %v, after %v", entities, after)
			}
			if found, err := harness.Findings(ctx, people.Verify, &patterns.JobOptions{Lag: 1}); err != nil || len(found) != 0 || len(copies) != stored {
				t.Errorf("%v, %v; %d rows of the index, want %d", found, err, len(copies), stored)
			}
		})
	}
}
