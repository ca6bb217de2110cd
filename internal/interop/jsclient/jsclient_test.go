package jsclient

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/internal/npm"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// writer inserts the rows that it is given, in transactions of 100, and prints how many.
const writer = `
(async () => {
	const { table, rows } = JSON.parse(require("fs").readFileSync(0, "utf8"));
	const client = open(table);
	for (let i = 0; i < rows; i += 100) {
		const transaction = new TableTransaction();
		for (let j = i; j < Math.min(rows, i + 100); j++) {
			transaction.createEntity({ partitionKey: "js", rowKey: String(j).padStart(6, "0"), Number: j });
		}
		await client.submitTransaction(transaction.actions);
	}
	console.log(rows);
})().catch((e) => { console.error(e); process.exit(1); });
`

// TestRun: a script writes rows of the service's account, on Azurite and on the simulator.
func TestRun(t *testing.T) {
	for name, s := range map[string]*storagetest.Service{"the service of the run": storagetest.Open(t), "a simulator": storagetest.Simulator(t, nil)} {
		a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
		table := a.Table(s.TableName(t))
		assert.Check(t, table.Create(t.Context()))
		assert.Equal(t, string(Run(t, s, writer, []byte(`{"table":"`+table.Name()+`","rows":250}`))), "250\n", "%s: the output", name)
		n := 0
		for v, err := range table.Entities().Query().Partition("js").All(t.Context()) {
			assert.Check(t, err)
			if got, ok := v.Get("Number").Int(); !ok || int(got) != n {
				t.Errorf("%s: row %d has %v", name, n, v.Get("Number"))
			}
			n++
		}
		assert.Equal(t, n, 250, "%s: rows", name)
	}
}

// TestFailures: a script that ends with an error, and a machine without Node.js, are errors that say what to do.
func TestFailures(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	assert.ErrorContains(t, assert.Err(run(t.Context(), s, `throw new Error("by order")`, nil, func(string) {})), "by order")
	t.Setenv("PATH", t.TempDir())
	assert.ErrorContains(t, assert.Err(run(t.Context(), s, "", nil, func(string) {})), "install Node.js")
}

// TestLock: the lock pins every package by its hash, and @azure/data-tables exactly.
func TestLock(t *testing.T) {
	assert.Check(t, npm.CheckLock(lock))
	assert.Contains(t, string(manifest), `"@azure/data-tables": "13.3.2"`, "the version is not pinned: %s", manifest)
}
