package patterns_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// oneRow answers every query with a page of one row.
func oneRow(t *testing.T, row string) *tables.Table {
	return harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusOK, `{"odata.metadata":"x","value":[`+row+`]}`, "Content-Type", "application/json;odata=minimalmetadata"), nil
	}).Table("Employees")
}

// TestSelectAnswersNull: Azure answers a property that was selected and that the row does not have with null, where the
// emulator leaves it out. A null is an absence, of the library's own properties as well: the row is an entity, and no copy.
func TestSelectAnswersNull(t *testing.T) {
	const keys = `"odata.etag":"W/\"datetime'1'\"","PartitionKey":"red","RowKey":"person_0007"`
	const plain = `{` + keys + `,"Timestamp":null,"_tpPrimary":null,"_tpShared":null,"_tpCopies":null,"_tpIncarnation":null,"_tpWrite":null,"Name":"Ann","Salary":null}`
	ctx := context.Background()
	table := oneRow(t, plain)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	v := assert.Must[*person](t)(repo.Query().Partition("red").Select("Name", "Salary").First(ctx))
	if v.Name != "Ann" || v.Salary != 0 || v.Key() != (tables.Key{Partition: "red", Row: "person_0007"}) || v.Incarnation() != "" || !v.Timestamp.IsZero() {
		t.Errorf("%+v, key %v, incarnation %q", v, v.Key(), v.Incarnation())
	}
	e := assert.Must[*tables.Entity](t)(table.Entities().Query().Partition("red").Select("Name", "Salary").First(ctx))
	if len(e.Properties) != 1 || e.Get("Name") != tables.String("Ann") || !e.Timestamp.IsZero() {
		t.Errorf("%+v", e)
	}
	for name, row := range map[string]string{
		"a copy":         strings.Replace(plain, `"_tpPrimary":null`, `"_tpPrimary":"person_0007"`, 1),
		"a copy of ''":   strings.Replace(plain, `"_tpPrimary":null`, `"_tpPrimary":""`, 1),
		"a shared row":   strings.Replace(plain, `"_tpShared":null`, `"_tpShared":"list"`, 1),
		"shared, before": strings.Replace(plain, `"_tpPrimary":null,"_tpShared":null`, `"_tpShared":"list","_tpPrimary":null`, 1),
	} {
		repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(oneRow(t, row), personSchema()))
		_, err := repo.Query().Partition("red").Select("Name").First(ctx)
		if harness.WantKind(t, err, tables.ErrNotFound); t.Failed() {
			t.Error(name)
		}
	}
	for name, row := range map[string]string{
		"key": strings.Replace(plain, `"RowKey":"person_0007"`, `"RowKey":null`, 1), "ETag": strings.Replace(plain, `"W/\"datetime'1'\""`, "null", 1),
		"number": strings.Replace(plain, `"_tpPrimary":null`, `"_tpPrimary":7`, 1),
	} {
		if _, err := oneRow(t, row).Entities().Query().Partition("red").First(ctx); err == nil {
			t.Errorf("a row without %s is taken", name)
		} else {
			harness.WantKind(t, err, tables.ErrGarbled)
		}
	}
}

// memo is a struct that keeps what it does not know.
type memo struct {
	tables.Meta
	PartitionKey, RowKey string
	Text                 string
	Rest                 map[string]tables.Value `table:",rest"`
}

// TestLaterVersionsPropertiesAreCarried: what a later version of the library notes in a row is not seen, is not in the
// way, and is not lost.
func TestLaterVersionsPropertiesAreCarried(t *testing.T) {
	ctx := context.Background()
	const later = `"_tpLater@odata.type":"Edm.Int64","_tpLater":"9007199254740993","_tpMore":"x"`
	g := &golden{stored: `{"odata.etag":"W/\"datetime'1'\"","PartitionKey":"p","RowKey":"r",` + later + `,"Text":"a","Other":1}`}
	table := harness.InProcess(t, g.Do).Table("Employees")
	bags, memos := table.Entities(), assert.Must[*tables.Rows[memo]](t)(tables.RowsOf[memo](table))
	key := tables.Key{Partition: "p", Row: "r"}
	e, m := assert.Must[*tables.Entity](t)(bags.Get(ctx, key)), assert.Must[*memo](t)(memos.Get(ctx, key))
	if len(e.Properties) != 2 || len(m.Rest) != 1 || m.Rest["Other"] != tables.Int32(1) {
		t.Fatalf("%v, %v", e.Properties, m.Rest)
	}
	x := table.NewTransaction()
	x.Replace(e.Clone())
	for name, err := range map[string]error{
		"Replace of a bag":    bags.Replace(ctx, e),
		"Replace of a struct": memos.Replace(ctx, m),
		"Upsert of a bag":     bags.Upsert(ctx, e),
		"Transaction":         func() error { _, err := x.Commit(ctx); return err }(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const first, text, other = `{"PartitionKey":"p","RowKey":"r",`, `"Text":"a"`, `"Other":1`
	for _, body := range g.bodies {
		if want := first + text + "," + other + "," + later + `,"_tpWrite":"ID"}`; body != want {
			t.Error(cmp.Diff(want, body))
		}
	}
	if len(g.bodies) != 4 {
		t.Fatalf("%d writes", len(g.bodies))
	}
	g.bodies = nil
	if err := bags.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	e.Set("_tpLater", tables.Int32(1))
	harness.WantKind(t, bags.Upsert(ctx, e), tables.ErrInvalid)
	g.wrote(t, first+text+","+other+`,"_tpWrite":"ID"}`) // a row of its own
	g.stored = strings.Replace(g.stored, later, `"_tpLater":"x","_tpLater@odata.type":"Edm.Guid"`, 1)
	_, err := bags.Get(ctx, key)
	harness.WantKind(t, err, tables.ErrGarbled)
}
