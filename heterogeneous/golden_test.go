package heterogeneous_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGolden: what is stored is read by later versions, and by other programs.
func TestGolden(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s, byVisits())
	bare := heterogeneous.NewType[employeeV1]("Worker", 1, &heterogeneous.TypeOptions{ByKey: true})
	workers := assert.Must[*patterns.Repository[employeeV1]](t)(patterns.NewRepository(p.table, patterns.Schema[employeeV1]{Prefix: "worker",
		Key: func(*employeeV1) tables.Key { return tables.Key{Partition: "Sales", Row: "worker_1"} }}, bare))
	assert.Check(t, p.employees.Insert(ctx, current(1)), assert.Must[*program](t)(startOld(s, name)).v1.Insert(ctx, old(2)), workers.Insert(ctx, old(3)))
	for row, want := range map[string]string{
		"empid_000001":         `{"Department":"Sales","Email":"jones1@contoso.com","EntityType":"Employee@3","FirstName":"June","ID":"1","ID@odata.type":"Edm.Int64","LastName":"Jones1","PartitionKey":"Sales","RowKey":"empid_000001","Visits":"1","Visits@odata.type":"Edm.Int64","_tpCopies":"visits"}`,
		"visits_000001_000001": `{"Department":"Sales","Email":"jones1@contoso.com","EntityType":"Employee@3","FirstName":"June","ID":"1","ID@odata.type":"Edm.Int64","LastName":"Jones1","PartitionKey":"Sales","RowKey":"visits_000001_000001","Visits":"1","Visits@odata.type":"Edm.Int64","_tpCopies":"visits","_tpPrimary":"empid_000001"}`,
		"empid_000002":         `{"Department":"Sales","EntityType":"Employee@1","FullName":"June Jones2","ID":"2","ID@odata.type":"Edm.Int64","PartitionKey":"Sales","RowKey":"empid_000002","Visits":"1","Visits@odata.type":"Edm.Int64"}`,
		"worker_1":             `{"Department":"Sales","FullName":"June Jones3","ID":"3","ID@odata.type":"Edm.Int64","PartitionKey":"Sales","RowKey":"worker_1","Visits":"1","Visits@odata.type":"Edm.Int64"}`,
	} {
		assert.Equal(t, stored(t, p.table, tables.Key{Partition: "Sales", Row: row}), want, "stored")
	}
	registry := assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(p.table, p.employee, bare))
	if v := assert.Must[any](t)(registry.Get(ctx, tables.Key{Partition: "Sales", Row: "worker_1"})); text(v) != "first 3 June Jones3 1" {
		t.Errorf("a type that is known by its keys reads as %s", text(v))
	}
	assert.Check(t, registry.Modify(ctx, tables.Key{Partition: "Sales", Row: "worker_1"}, visit))
	if report := assert.Must[patterns.RewriteReport](t)(bare.Upgrade(ctx, nil)); report.Read != 0 {
		t.Errorf("there is no other version, and %+v", report)
	}
}
