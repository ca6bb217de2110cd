package interop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/interop/jsclient"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// adoptScript is the program whose table is adopted: it inserts orders in transactions of 100, each partition with a note among them, and
// later changes some and deletes some without knowing of any index.
const adoptScript = `
(async () => {
	const { table, verb, partitions, halves } = JSON.parse(require("fs").readFileSync(0, "utf8"));
	const client = open(table);
	const rowOf = (i) => "O-2024-" + String(i).padStart(6, "0");
	const order = (i) => ({ partitionKey: "customer-" + Math.floor(i / 100), rowKey: rowOf(i), kind: "order", email: "c" + i + "@contoso.com",
		status: "status" + i % 5, total: { type: "Int64", value: String(i) }, note: "kept" });
	const each = async (p) => {
		if (verb === "fill") {
			const actions = [];
			for (let i = p * 100; i < p * 100 + 99; i++) {
				const e = order(i);
				if (i === 7) e.total = "much";
				if (i === 8) delete e.status;
				if (i === 9) e.email = "c10@contoso.com";
				if (i === 11 && halves) e.note = "cut \ud83d";
				if (i === 12) e.kind = "offer";
				actions.push(["create", e]);
			}
			actions.push(["create", { partitionKey: "customer-" + p, rowKey: "note", kind: "note", text: "of another type" }]);
			await client.submitTransaction(actions);
			return;
		}
		await client.createEntity({ ...order(p * 100 + 99), email: "late" + p + "@contoso.com" });
		await client.updateEntity({ partitionKey: "customer-" + p, rowKey: rowOf(p * 100 + 20), status: "changed", email: "moved" + p + "@contoso.com" }, "Merge");
		await client.updateEntity({ partitionKey: "customer-" + p, rowKey: rowOf(p * 100 + 50), note: "edited" }, "Merge");
		await client.deleteEntity("customer-" + p, rowOf(p * 100 + 30));
	};
	let next = 0;
	await Promise.all([1, 2, 3, 4].map(async () => { while (next < partitions) await each(next++); }));
})().catch((e) => { console.error(e); process.exit(1); });
`

// adoptedOrder is an order of that program.
type adoptedOrder struct {
	tables.Meta
	PartitionKey, RowKey string
	Kind                 string                  `table:"kind"`
	Email                string                  `table:"email"`
	Status               *string                 `table:"status"` // some orders have none
	Total                int64                   `table:"total"`
	Rest                 map[string]tables.Value `table:",rest"`
}

// TestAdopt: a repository is put over the table of another program, with bad rows in it. It reads, changes, and builds indexes of three
// kinds. The program goes on writing during Rebuild, and Repair then mends what it has done meanwhile.
func TestAdopt(t *testing.T) {
	for name, s := range foreignServices(t) {
		t.Run(name, func(t *testing.T) { adopt(t, s) })
	}
}

func adopt(t *testing.T, s *storagetest.Service) {
	ctx, partitions := t.Context(), 20
	if os.Getenv("TABLEPATTERNS_THOROUGH") == "1" {
		partitions = 100
	}
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	store := assert.Must[*patterns.Store](t)(patterns.Open(s.QueueName(t), &patterns.StoreOptions{Account: a}))
	table := store.Table(s.TableName(t))
	assert.Check(t, table.CreateIfMissing(ctx))
	program := func(verb string) {
		t.Helper()
		jsclient.Run(t, s, adoptScript, assert.Must[[]byte](t)(json.Marshal(map[string]any{"table": table.Name(), "verb": verb, "partitions": partitions, "halves": isAzurite(s)})))
	}
	program("fill")
	notes := otherRows(t, table)

	byStatus := intrapartition.NewUnique("status", func(o *adoptedOrder) compoundkey.Part {
		if o.Status == nil {
			return compoundkey.Part{}
		}
		return compoundkey.Tuple(compoundkey.String(*o.Status), compoundkey.String(o.RowKey))
	}, nil)
	byEmail := interpartition.NewUnique("email", func(o *adoptedOrder) string { return o.Email }, nil)
	byTotal := indexentities.NewInPartition("thousands", func(o *adoptedOrder) compoundkey.Part { return compoundkey.Int(o.Total%10, 1) })
	orders := assert.Must[*patterns.Repository[adoptedOrder]](t)(patterns.NewRepository(table, patterns.Schema[adoptedOrder]{
		Rows: compoundkey.Range("O-", "O."), Mine: func(k tables.Key) bool { return len(k.Row) == len("O-2024-000123") }, Where: tables.Eq("kind", "order"),
	}, byStatus, byEmail, byTotal))
	assert.Check(t, store.Create(ctx))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		assert.Check(t, harness.Settle(ctx, store), table.Drop(ctx))
	})

	read, bad := countOrders(ctx, t, orders)
	if read != partitions*99-2 || bad != 1 { // an offer, and the order whose total is a text
		t.Errorf("%d orders are read, %d do not fit", read, bad)
	}
	type done struct {
		report patterns.RebuildReport
		err    error
	}
	rebuilt := make(chan done, 1)
	go func() { // while the program goes on
		report, err := orders.Rebuild(ctx, nil)
		rebuilt <- done{report, err}
	}()
	program("change")
	first := <-rebuilt
	assert.Check(t, first.err)
	t.Logf("Rebuild beside the other program: %s", first.report)
	for i := range 5 {
		key := tables.Key{Partition: fmt.Sprint("customer-", i), Row: fmt.Sprintf("O-2024-%06d", i*100+40)}
		o := assert.Must[*adoptedOrder](t)(orders.Update(ctx, key, func(o *adoptedOrder) error { o.Total += 10; return nil }))
		assert.Equal(t, o.Rest["note"], tables.String("kept"), "a property without a field is lost: %+v", o)
	}
	options := &patterns.JobOptions{Lag: time.Nanosecond}
	found := map[string]int{}
	options.Found = func(f patterns.Finding) error {
		found[f.Kind.String()+" "+f.Pattern]++
		return nil
	}
	repaired := assert.Must[patterns.RepairReport](t)(orders.Repair(ctx, options))
	t.Logf("Repair: %s, %v", repaired, found)

	// What is left are the bad rows: a total that is a text, half of a surrogate pair, and an email that two orders have.
	left := map[string]bool{}
	options.Found = func(f patterns.Finding) error {
		left[cmp.Or(f.Entity.Row, f.Location)] = true
		return nil
	}
	verified := assert.Must[patterns.VerifyReport](t)(orders.Verify(ctx, options))
	t.Logf("Verify: %s, left %v", verified, left)
	for row := range left {
		assert.Contains(t, "O-2024-000007 O-2024-000009 O-2024-000010 O-2024-000011", row)
	}
	if want := 2; len(left) < want || len(left) > want+1 {
		t.Errorf("left: %v", left)
	}
	if got, err := byEmail.Get(ctx, "moved3@contoso.com"); err != nil || got.RowKey != "O-2024-000320" {
		t.Errorf("by email: %+v, %v", got, err)
	}
	edited, err := byStatus.In("customer-3").Get(ctx, compoundkey.Tuple(compoundkey.String("status0"), compoundkey.String("O-2024-000350")))
	if err != nil || edited.Rest["note"] != tables.String("edited") {
		t.Errorf("by status: %+v, %v", edited, err)
	}
	assert.ErrorIs(t, assert.Err(byEmail.Get(ctx, "c330@contoso.com")), tables.ErrNotFound, "a deleted order has a copy")
	if read, bad := countOrders(ctx, t, orders); read != partitions*99-2 || bad != 1 { // as many were inserted as deleted
		t.Errorf("in the end %d orders are read, %d do not fit", read, bad)
	}
	for key, etag := range otherRows(t, table) {
		assert.Equal(t, notes[key], etag, "%s of another type has changed", key)
	}
}

// countOrders reads all orders.
func countOrders(ctx context.Context, t *testing.T, orders *patterns.Repository[adoptedOrder]) (read, bad int) {
	t.Helper()
	for _, err := range orders.Query().AllowTableScan().AllParallel(ctx, nil) {
		var e *tables.Error
		switch {
		case errors.As(err, &e) && e.OfRow:
			bad++
		case err != nil:
			t.Fatal(err)
		default:
			read++
		}
	}
	return read, bad
}

// otherRows are the ETags of the rows that are neither orders nor the library's.
func otherRows(t *testing.T, table *tables.Table) map[string]string {
	t.Helper()
	etags := map[string]string{}
	for e, err := range table.Entities().Query().Where(tables.Ne("kind", "order")).AllowTableScan().All(t.Context()) {
		assert.Check(t, err)
		etags[e.Key.Partition+" "+e.Key.Row] = string(e.ETag)
	}
	return etags
}
