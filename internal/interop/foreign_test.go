package interop

import (
	"context"
	_ "embed"
	"encoding/json"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/interop/jsclient"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

//go:embed foreign.js
var foreignScript string

// staffMember is what the foreign writer writes.
type staffMember struct {
	tables.Meta
	Department string `table:"PartitionKey"`
	Row        string `table:"RowKey"`
	Name       string
	Email      string
	Badge      string
	Salary     float64
}

// foreignAction is what the foreign writer does to one entity.
type foreignAction struct {
	Table      string         `json:"table"`
	Index      string         `json:"index"` // near or outside
	Verb       string         `json:"verb"`
	Partition  string         `json:"partition"`
	Row        string         `json:"row"`
	Properties map[string]any `json:"properties,omitempty"`
	OwnOnly    bool           `json:"ownOnly,omitempty"` // it dies when it has written the own row
}

// foreignWorld is a table that a repository and the foreign writer share.
type foreignWorld struct {
	s     *storagetest.Service
	store *patterns.Store
	table *tables.Table
	repo  *patterns.Repository[staffMember]
	email *intrapartition.Unique[staffMember, string]
	badge *interpartition.Unique[staffMember, string]
}

const foreignRow = "empid_000223"

var foreignKey = tables.Key{Partition: "Sales", Row: foreignRow}

// newForeignWorld opens a repository with one index: "near" in the partition, or "outside", global and in the same table.
func newForeignWorld(t *testing.T, s *storagetest.Service, index string) *foreignWorld {
	t.Helper()
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	w := &foreignWorld{s: s}
	w.store = assert.Must[*patterns.Store](t)(patterns.Open(s.QueueName(t), &patterns.StoreOptions{Account: a}))
	w.table = w.store.Table(s.TableName(t))
	schema := patterns.Schema[staffMember]{
		Key:    func(e *staffMember) tables.Key { return tables.Key{Partition: e.Department, Row: e.Row} },
		Prefix: "empid",
	}
	var pattern patterns.Pattern[staffMember]
	if index == "near" {
		w.email = intrapartition.NewUnique("email", func(e *staffMember) string { return e.Email }, nil)
		pattern = w.email
	} else {
		w.badge = interpartition.NewUnique("badge", func(e *staffMember) string { return e.Badge }, nil)
		pattern = w.badge
	}
	w.repo = assert.Must[*patterns.Repository[staffMember]](t)(patterns.NewRepository(w.table, schema, pattern))
	assert.Check(t, w.store.Create(t.Context()))
	t.Cleanup(func() { assert.Check(t, harness.Settle(context.WithoutCancel(t.Context()), w.store)) })
	return w
}

// write has the foreign writer do something.
func (w *foreignWorld) write(t *testing.T, action foreignAction) {
	t.Helper()
	action.Table, action.Partition, action.Row = w.table.Name(), foreignKey.Partition, foreignKey.Row
	jsclient.Run(t, w.s, foreignScript, assert.Must[[]byte](t)(json.Marshal([]foreignAction{action})))
}

// clean checks that nothing is wrong with the table, which has this many rows.
func (w *foreignWorld) clean(t *testing.T, rows int) {
	t.Helper()
	report, err := w.repo.Verify(t.Context(), &patterns.JobOptions{Lag: time.Nanosecond, Found: func(f patterns.Finding) error {
		t.Errorf("Verify has found %v", f)
		return nil
	}})
	if err != nil || int(report.Rows) != rows {
		t.Errorf("Verify has read %d rows, want %d: %v", report.Rows, rows, err)
	}
}

// same checks what is read by key and by index, and that the index has only this key.
func (w *foreignWorld) same(t *testing.T, want staffMember) *staffMember {
	t.Helper()
	ctx := t.Context()
	own := assert.Must[*staffMember](t)(w.repo.Get(ctx, foreignKey))
	found, n := (*staffMember)(nil), 0
	if w.email != nil {
		found = assert.Must[*staffMember](t)(w.email.In(foreignKey.Partition).Get(ctx, want.Email))
		for range w.email.In(foreignKey.Partition).Range(ctx) {
			n++
		}
	} else {
		found = assert.Must[*staffMember](t)(w.badge.Get(ctx, want.Badge))
		for range w.badge.Range(ctx) {
			n++
		}
	}
	want.Department, want.Row = foreignKey.Partition, foreignKey.Row
	for how, e := range map[string]*staffMember{"key": own, "index": found} {
		plain := *e
		plain.Meta = tables.Meta{}
		assert.Equal(t, plain, want, "by %s", how)
	}
	if n != 1 || own.Incarnation() == "" || own.Incarnation() != found.Incarnation() {
		t.Errorf("the index has %d entries; incarnations %q and %q", n, own.Incarnation(), found.Incarnation())
	}
	return found
}

// gone checks that neither the entity nor a copy of it is there.
func (w *foreignWorld) gone(t *testing.T) {
	t.Helper()
	assert.ErrorIs(t, assert.Err(w.repo.Get(t.Context(), foreignKey)), tables.ErrNotFound, "the deleted entity is read")
	w.clean(t, 0)
}

// addLater adds a property of a later version of the library to the entity's own row.
func (w *foreignWorld) addLater(t *testing.T) {
	t.Helper()
	_, err := w.table.Client().UpdateEntity(t.Context(), []byte(`{"PartitionKey":"Sales","RowKey":"`+foreignRow+`","_tpLater":"kept"}`), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	assert.Check(t, err)
}

func (w *foreignWorld) hasLater(t *testing.T) {
	t.Helper()
	answer := assert.Must[aztables.GetEntityResponse](t)(w.table.Client().GetEntity(t.Context(), foreignKey.Partition, foreignKey.Row, nil))
	var stored map[string]any
	if err := json.Unmarshal(answer.Value, &stored); err != nil || stored["_tpLater"] != "kept" {
		t.Errorf("the property of a later version is %v: %v", stored["_tpLater"], err)
	}
}

// TestForeignNear: a program for Node.js without the library inserts, replaces and deletes an entity with an index in its partition, by the
// steps of docs/reference/storage-format.md. The repository reads it, finds nothing wrong, and writes it.
func TestForeignNear(t *testing.T) {
	for name, s := range foreignServices(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w := newForeignWorld(t, s, "near")
			w.write(t, foreignAction{Index: "near", Verb: "insert", Properties: map[string]any{"Name": "June", "Email": "june@contoso.com", "Badge": "B-1", "Salary": 3}})
			incarnation := w.same(t, staffMember{Name: "June", Email: "june@contoso.com", Badge: "B-1", Salary: 3}).Incarnation()
			w.clean(t, 2)

			w.addLater(t)
			w.write(t, foreignAction{Index: "near", Verb: "replace", Properties: map[string]any{"Name": "June Jones"}})
			w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-1", Salary: 3})
			w.hasLater(t)
			w.write(t, foreignAction{Index: "near", Verb: "replace", Properties: map[string]any{"Email": "jones@contoso.com"}})
			e := w.same(t, staffMember{Name: "June Jones", Email: "jones@contoso.com", Badge: "B-1", Salary: 3})
			assert.Equal(t, e.Incarnation(), incarnation, "the incarnation has changed")
			w.clean(t, 2)

			e.Name, e.Email = "J. Jones", "j@contoso.com"
			assert.Check(t, w.repo.Replace(ctx, e))
			w.same(t, staffMember{Name: "J. Jones", Email: "j@contoso.com", Badge: "B-1", Salary: 3})
			w.hasLater(t)
			w.clean(t, 2)
			w.write(t, foreignAction{Index: "near", Verb: "replace", Properties: map[string]any{"Salary": 3.5}}) // the library's row
			w.same(t, staffMember{Name: "J. Jones", Email: "j@contoso.com", Badge: "B-1", Salary: 3.5})

			w.write(t, foreignAction{Index: "near", Verb: "delete"})
			w.gone(t)
		})
	}
}

// TestForeignOutside is TestForeignNear with a global index. A foreign writer that dies when it has written the entity's own row leaves marked
// copies, which readers follow.
func TestForeignOutside(t *testing.T) {
	for name, s := range foreignServices(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w := newForeignWorld(t, s, "outside")
			w.write(t, foreignAction{Index: "outside", Verb: "insert", Properties: map[string]any{"Name": "June", "Email": "june@contoso.com", "Badge": "B-1", "Salary": 3}})
			w.same(t, staffMember{Name: "June", Email: "june@contoso.com", Badge: "B-1", Salary: 3})
			w.clean(t, 2)

			w.write(t, foreignAction{Index: "outside", Verb: "replace", Properties: map[string]any{"Name": "June Jones"}})
			w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-1", Salary: 3})
			w.write(t, foreignAction{Index: "outside", Verb: "replace", Properties: map[string]any{"Badge": "B-2"}})
			e := w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-2", Salary: 3})
			w.clean(t, 2)

			e.Badge, e.Salary = "B-3", 4
			assert.Check(t, w.repo.Replace(ctx, e))
			w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-3", Salary: 4})

			w.write(t, foreignAction{Index: "outside", Verb: "replace", Properties: map[string]any{"Badge": "B-4"}, OwnOnly: true})
			w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-4", Salary: 4})
			assert.Check(t, harness.Clean(ctx, w.repo.Verify, nil)) // the row of B-3 is still there, and marked
			w.write(t, foreignAction{Index: "outside", Verb: "replace", Properties: map[string]any{"Badge": "B-5"}})
			w.same(t, staffMember{Name: "June Jones", Email: "june@contoso.com", Badge: "B-5", Salary: 4})

			w.write(t, foreignAction{Index: "outside", Verb: "delete", OwnOnly: true})
			assert.ErrorIs(t, assert.Err(w.badge.Get(ctx, "B-5")), tables.ErrNotFound, "a deleted entity is read")
			assert.Check(t, harness.Clean(ctx, w.repo.Verify, nil))
		})
	}
}

// foreignServices are the service of the run and, if that is another, a simulator.
func foreignServices(t *testing.T) map[string]*storagetest.Service {
	t.Helper()
	all := map[string]*storagetest.Service{"run": storagetest.Open(t)}
	if simulated := assert.Must[bool](t)(storagetest.Simulated()); !simulated {
		all["sim"] = storagetest.Simulator(t, nil)
	}
	return all
}
