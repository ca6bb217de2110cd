package tables_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FuzzAnswer gives any body as an entity and as a page: an error of a kind, or rows that can be written and then read
// back equal.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{garbledRow, garbledPage, "{}", "[]", `{"value":[]}`, `{"value":[{}]}`, `{"value":[],"value":[]}`, "null", "", `{"PartitionKey":"p","RowKey":"r"}`,
		`{"PartitionKey":"p","RowKey":"r","A":null,"B":[1],"C":{"D":1},"E@odata.type":"Edm.Int64","E":5,"F":"x","F@odata.type":"Edm.Binary"}`,
		`{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Double","A":"NaN","B":1e400,"C":123456789012345678901234567890,"D@odata.type":"Edm.DateTime","D":"0001-01-01T00:00:00Z"}`,
		`{"Partition\u004bey":"p","RowKey":"r","A":1,"\u0041":2}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		ctx := context.Background()
		service := func(req *http.Request) (*http.Response, error) {
			return harness.Reply(req, http.StatusOK, body, "Content-Type", "application/json", "ETag", garbledETag), nil
		}
		table := harness.InProcess(t, service).Table("Employees")
		view := assert.Must[*tables.Rows[everything]](t)(tables.RowsOf[everything](table))
		key := tables.Key{Partition: "p", Row: "r"}
		e, err := table.Entities().Get(ctx, key)
		page, pageErr := table.Entities().Query().Partition("p").Page(ctx, "")
		_, typedErr := view.Get(ctx, key)
		_, typedPageErr := view.Query().Partition("p").Page(ctx, "")
		for _, err := range []error{err, pageErr, typedErr, typedPageErr} {
			if err != nil && !errors.Is(err, tables.ErrGarbled) {
				t.Fatalf("%v", err)
			}
		}
		if err == nil {
			page.Items = append(page.Items, e)
		}
		for _, e := range page.Items {
			writeBack(t, e)
		}
	})
}

// writeBack writes what was read and reads it again. An answer may hold what no write may: it is refused then.
func writeBack(t *testing.T, e *tables.Entity) {
	ctx := context.Background()
	bags := harness.InProcess(t, echo()).Table("Employees").Entities()
	if err := bags.Upsert(ctx, e.Clone()); err != nil {
		if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
			t.Fatal(err)
		}
		return
	}
	got := assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key))
	assert.Slices(assert.Fatal(t), got.Properties, e.Properties, "read back")
}

// FuzzValues writes any text, number and name: refused, or read back equal.
func FuzzValues(f *testing.F) {
	f.Add("Name", "text", int64(1), 1.5, "p", "r")
	f.Add("a-b", "\xff", int64(-1), math.Copysign(0, -1), "/", "")
	f.Add("Größe", "\u2028'\"\\", int64(1<<53+1), 1e300, "O'Brien", "..")
	f.Fuzz(func(t *testing.T, name, text string, n int64, d float64, partition, row string) {
		ctx := context.Background()
		bags := harness.InProcess(t, echo()).Table("Employees").Entities()
		e := harness.Row(partition, row, property(name, tables.String(text)), property(name+"N", tables.Int64(n)), property(name+"D", tables.Double(d)), property(name+"B", tables.Binary([]byte(text))))
		if err := bags.Upsert(ctx, e); err != nil {
			if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		got := assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key))
		assert.Slices(assert.Fatal(t), got.Properties, e.Properties, "read back")
		if _, err := bags.Query().Where(tables.Eq("PartitionKey", partition), tables.Eq(name, text)).Plan(); err != nil {
			t.Fatalf("no filter for what could be written: %.300v", strings.ToValidUTF8(err.Error(), "?"))
		}
	})
}
