package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// put writes rows.
func put(t testing.TB, table *tables.Table, all ...*tables.Entity) {
	t.Helper()
	_, err := table.Entities().BulkNonAtomic(t.Context(), func(yield func(*tables.Entity, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
}

func property(name string, v tables.Value) tables.Property {
	return tables.Property{Name: name, Value: v}
}

// TestTable: rows, partitions, properties and sizes of a table that other programs have filled.
func TestTable(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	var all []*tables.Entity
	for i := range 30 {
		e := harness.Row(fmt.Sprintf("p%d", i%3), fmt.Sprintf("%03d", i), property("N", tables.Int32(int32(i))))
		if i%3 == 0 && i > 0 {
			e.Key.Partition = "p2"
		}
		if i%2 == 0 {
			e.Set("Text", tables.String(strings.Repeat("x", 100)))
		}
		all = append(all, e)
	}
	all = append(all, harness.Row("p9", "big", property("N", tables.String("many")), property("Blob", tables.Binary(make([]byte, 5000)))))
	put(t, table, all...)
	progress := int64(0)
	r := assert.Must[*inspect.Report](t)(inspect.Table(t.Context(), table, &inspect.Options{Progress: func(p tables.Progress) { progress = p.Rows }}))
	if !r.Complete || r.Rows != 31 || r.Entities != 31 || progress != 31 || r.Requests < 1 {
		t.Errorf("%+v, progress %d", r, progress)
	}
	p := r.Partitions
	if want := (inspect.Partition{Partition: "p2", Rows: 19, Bytes: p.Largest[0].Bytes}); p.Count != 4 || !p.Exact || p.Largest[0] != want || p.Largest[1].Rows != 10 {
		t.Errorf("partitions %+v", p)
	}
	if want := []inspect.Bucket{{From: 1, To: 2, Count: 2}, {From: 2, To: 4}, {From: 4, To: 8}, {From: 8, To: 16, Count: 1}, {From: 16, To: 32, Count: 1}}; !slices.Equal(p.Rows, want) {
		t.Errorf("partitions by rows %+v", p.Rows)
	}
	big := int64(4 + 2*len("p9big") + 8 + 2*1 + 4 + 2*4 + 8 + 2*4 + 4 + 5000) // by the service's formula; the bulk write adds its ID
	if got := r.LargestRows[0]; got.Key != (inspect.Key{Partition: "p9", Row: "big"}) || got.Bytes < big || got.Bytes > big+80 {
		t.Errorf("largest row %+v, want %d bytes", got, big)
	}
	sum := int64(0)
	for _, b := range r.RowSizes {
		sum += b.Count
	}
	if sum != 31 || r.Bytes < 31*20 || len(r.LargestRows) != 10 {
		t.Errorf("sizes %+v, %d bytes", r.RowSizes, r.Bytes)
	}
	want := []inspect.Property{
		{Name: "Blob", Rows: 1, Absent: 30, Types: []inspect.TypeCount{{Type: "Edm.Binary", Rows: 1}}},
		{Name: "N", Rows: 31, Types: []inspect.TypeCount{{Type: "Edm.Int32", Rows: 30}, {Type: "Edm.String", Rows: 1}}},
		{Name: "Text", Rows: 15, Absent: 16, Types: []inspect.TypeCount{{Type: "Edm.String", Rows: 15}}},
	}
	for i, p := range r.Properties {
		if p.Bytes < p.Largest || p.Largest == 0 {
			t.Errorf("%+v", p)
		}
		r.Properties[i].Bytes, r.Properties[i].Largest = 0, 0
	}
	if !reflect.DeepEqual(r.Properties, want) {
		t.Errorf("properties %+v", r.Properties)
	}
	r, err := inspect.Table(t.Context(), table, &inspect.Options{Partitions: []string{"p9", "none"}})
	if err != nil || r.Rows != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestJSON: the names of the report's JSON are part of its interface.
func TestJSON(t *testing.T) {
	data := assert.Must[[]byte](t)(json.Marshal(inspect.Report{
		Partitions:  inspect.Partitions{Largest: make([]inspect.Partition, 1), Rows: make([]inspect.Bucket, 1)},
		LargestRows: make([]inspect.LargeRow, 1), Properties: []inspect.Property{{Types: make([]inspect.TypeCount, 1)}},
		Type:   &inspect.Type{Problems: make([]inspect.Problem, 1), Zero: make([]inspect.ZeroField, 1), Unknown: make([]inspect.UnknownProperty, 1)},
		Schema: &inspect.Schema{Refused: make([]inspect.RefusedEntity, 1), TakenKeys: make([]inspect.TakenKey, 1)},
	}))
	var v any
	assert.Check(t, json.Unmarshal(data, &v))
	const want = "began bytes complete elapsedSeconds entities garbled garbledExamples largestRows largestRows.bytes largestRows.partition largestRows.row " +
		"library library.copies library.entities library.furtherRows library.outsideCopies library.shared lossy lossyExamples newest oldest otherProperties " +
		"partitions partitions.count partitions.exact partitions.largest partitions.largest.bytes partitions.largest.partition partitions.largest.rows partitions.largest.uncertain " +
		"partitions.rows partitions.rows.count partitions.rows.from partitions.rows.to properties properties.absent properties.bytes properties.largest properties.name properties.rows " +
		"properties.types properties.types.rows properties.types.type requests rowSizes rows schema schema.keysNotCompared schema.library schema.neither schema.otherKeys schema.otherKeysExamples " +
		"schema.otherTakenKeys schema.own schema.rebuild schema.rebuild.fill schema.rebuild.least schema.rebuild.least.price schema.rebuild.least.queue schema.rebuild.least.table " +
		"schema.rebuild.most schema.rebuild.most.price schema.rebuild.most.queue schema.rebuild.most.table schema.rebuild.prices schema.rebuild.prices.currency " +
		"schema.rebuild.prices.queue schema.rebuild.prices.source schema.rebuild.prices.table schema.refused schema.refused.examples schema.refused.pattern schema.refused.reason schema.refused.rows " +
		"schema.repository schema.sealed schema.takenKeys schema.takenKeys.by schema.takenKeys.key schema.takenKeys.key.partition schema.takenKeys.key.row schema.takenKeys.patterns schema.takenKeys.table " +
		"schema.takenKeys.wanted table type type.name type.otherProblems type.problems type.problems.examples type.problems.property type.problems.reason type.problems.rows type.problems.stored type.read " +
		"type.refused type.rest type.unknown type.unknown.property type.unknown.rows type.zero type.zero.absent type.zero.field type.zero.property type.zero.refused version warnings"
	assert.Equal(t, strings.Join(names(v, ""), " "), want)
}

// names lists the members of JSON, with those of the first element of each array.
func names(v any, path string) (all []string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return names(v[0], path)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			all = append(append(all, at), names(v[key], at)...)
		}
	}
	return all
}

type level int

// UnmarshalText accepts few texts.
func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return fmt.Errorf("no level %q", text)
	}
	*l = 1
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (l level) MarshalText() ([]byte, error) { return []byte("high"), nil }

type inner struct{ City string }

type customer struct {
	tables.Meta
	Name    string
	Small   int32
	Level   level
	At      time.Time
	Tags    []string `table:",json"`
	Note    *string
	Photo   []byte
	Since   time.Time `table:",omitzero"`
	Comment string    `table:"Remark,omitempty"`
	*inner  `table:"-"`
}

// TestAs: what a struct does not read, what it would make a zero value, and what it would drop. No value is in the report.
func TestAs(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	at := assert.Must[tables.Value](t)(tables.DateTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)))
	good := func(row string) *tables.Entity {
		return harness.Row("p", row, property("Name", tables.String("n")), property("Small", tables.Int32(1)), property("Level", tables.String("high")), property("At", at),
			property("Tags", tables.String(`["a"]`)))
	}
	wrong, large, garbled, lacking, more := good("1"), good("2"), good("3"), harness.Row("p", "4"), good("5")
	wrong.Set("Name", tables.Int32(7))
	large.Set("Small", tables.Int64(1<<40))
	garbled.Set("Level", tables.String("secret-low"))
	garbled.Set("Tags", tables.String("{secret"))
	more.Set("Extra", tables.Boolean(true))
	put(t, table, good("0"), wrong, large, garbled, lacking, more)
	r := assert.Must[*inspect.Report](t)(inspect.As[customer](t.Context(), table, nil))
	var reasons []string
	for _, p := range r.Type.Problems {
		reasons = append(reasons, fmt.Sprint(p.Property, " ", p.Stored, " ", p.Rows, " ", p.Examples))
	}
	want := []string{`Level Edm.String 1 [("p", "3")]`, `Name Edm.Int32 1 [("p", "1")]`, `Small Edm.Int64 1 [("p", "2")]`, `Tags Edm.String 1 [("p", "3")]`}
	if !slices.Equal(reasons, want) || r.Type.Read != 3 || r.Type.Refused != 3 {
		t.Errorf("%q, %+v", reasons, r.Type)
	}
	zero := []inspect.ZeroField{{Field: "Name", Property: "Name", Absent: 1}, {Field: "Small", Property: "Small", Absent: 1}, {Field: "Level", Property: "Level", Absent: 1},
		{Field: "At", Property: "At", Absent: 1, Refused: true}, {Field: "Tags", Property: "Tags", Absent: 1}}
	if !slices.Equal(r.Type.Zero, zero) || !slices.Equal(r.Type.Unknown, []inspect.UnknownProperty{{Property: "Extra", Rows: 1}}) {
		t.Errorf("%+v", r.Type)
	}
	var text strings.Builder
	assert.Check(t, r.WriteText(&text))
	asJSON := assert.Must[[]byte](t)(json.Marshal(r))
	for _, shown := range []string{text.String(), string(asJSON)} {
		if strings.Contains(shown, "secret") || strings.Contains(shown, "1099511627776") {
			t.Errorf("a value is shown: %s", shown)
		}
	}
	for _, part := range []string{"reads 3 entities, and refuses 3", `such as ("p", "2")`, "no field for Extra, in 1 entity", "which cannot be stored"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in\n%s", part, &text)
		}
	}
	type withRest struct {
		Name string
		Rest map[string]tables.Value `table:",rest"`
	}
	if r, err := inspect.As[withRest](t.Context(), table, nil); err != nil || len(r.Type.Unknown) != 0 || !r.Type.Rest || r.Type.Read != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRefusedCalls: what a run refuses before its first request.
func TestRefusedCalls(t *testing.T) {
	a, requests := harness.Counted(t)
	table := a.Table("Any")
	type wrong struct{ F func() }
	for name, call := range map[string]func() (*inspect.Report, error){
		"no table": func() (*inspect.Report, error) { return inspect.Table(t.Context(), nil, nil) },
		"negative": func() (*inspect.Report, error) {
			return inspect.Table(t.Context(), table, &inspect.Options{MaxKeys: -1})
		},
		"rows": func() (*inspect.Report, error) {
			return inspect.Table(t.Context(), table, &inspect.Options{RowsPerSecond: -1})
		},
		"type":        func() (*inspect.Report, error) { return inspect.As[wrong](t.Context(), table, nil) },
		"bag":         func() (*inspect.Report, error) { return inspect.As[tables.Entity](t.Context(), table, nil) },
		"typed, none": func() (*inspect.Report, error) { return inspect.As[customer](t.Context(), nil, nil) },
		"repository":  func() (*inspect.Report, error) { return inspect.Repository[customer](t.Context(), nil, nil) },
		"bad name":    func() (*inspect.Report, error) { return inspect.Table(t.Context(), a.Table("no table"), nil) },
	} {
		harness.RefusedUnsent(t, requests, tables.ErrWiring, name, func() error { _, err := call(); return err })
	}
	harness.WantKind(t, assert.Err(inspect.Table(t.Context(), a.Table("Missing"), nil)), tables.ErrMissingResource)
}

// TestFailingPages: a page that fails is an error beside an incomplete report, never a shorter report.
func TestFailingPages(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	assert.Must[tables.BulkReport](t)(table.Entities().BulkNonAtomic(t.Context(), harness.Bags(1_200, 5), nil))
	whole := assert.Must[*inspect.Report](t)(inspect.Table(t.Context(), table, nil))
	if whole.Rows != 1_200 || !whole.Complete {
		t.Fatalf("%+v", whole)
	}
	s := storagetest.Open(t)
	failed := 0
	for i := range 6 {
		faulty, _ := s.Faulty(storagetest.OnIndex(i, storagetest.DiesAfter))
		a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(faulty.ConnectionString, &tables.AccountOptions{ClientOptions: faulty.ClientOptions}))
		r, err := inspect.Table(t.Context(), a.Table(table.Name()), nil)
		switch {
		case err == nil && (!r.Complete || r.Rows != 1_200):
			t.Errorf("failure %d: no error, complete %v, %d rows", i, r.Complete, r.Rows)
		case err != nil && (r == nil || r.Complete):
			t.Errorf("failure %d: %v, and a complete report", i, err)
		case err != nil:
			failed++
		}
	}
	if failed < 2 { // so many pages each run reads at least
		t.Errorf("only %d runs failed", failed)
	}
}

// TestCanceled: a run that is canceled returns what it has read.
func TestCanceled(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	assert.Must[tables.BulkReport](t)(table.Entities().BulkNonAtomic(t.Context(), harness.Bags(1_200, 5), nil))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := inspect.Table(ctx, table, &inspect.Options{Concurrency: 1, Progress: func(tables.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || r == nil || r.Complete || r.Rows == 0 || r.Rows >= 1_200 {
		t.Fatalf("%+v, %v", r, err)
	}
	var text strings.Builder
	if assert.Check(t, r.WriteText(&text)); !strings.Contains(text.String(), "NOT COMPLETE") {
		t.Error(text.String())
	}
}

// page is a service with one page of rows, each given by its members.
func page(t *testing.T, rows ...string) *tables.Table {
	t.Helper()
	for i, row := range rows {
		rows[i] = `{"odata.etag":"W/\"datetime'2024-05-06T07%3A08%3A09.1234567Z'\"","Timestamp":"2024-05-06T07:08:09.1234567Z",` + row + "}"
	}
	body := `{"odata.metadata":"x","value":[` + strings.Join(rows, ",") + `]}`
	return harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusOK, body, "Content-Type", "application/json;odata=minimalmetadata"), nil
	}).Table("Hostile")
}

// TestHostileRows: names and keys that no client writes are bounded, quoted, and in no struct; garbled rows are an error.
func TestHostileRows(t *testing.T) {
	var members strings.Builder
	for i := range 3_000 {
		fmt.Fprintf(&members, `,"P%04d":%d`, i, i)
	}
	long := strings.Repeat("é", 255)
	table := page(t, `"PartitionKey":"p\u001b[31m","RowKey":"r\n\u202e","N`+"`"+`\u001b]0;x":1,"a,rest\"":2,"`+long+`":3`+members.String(),
		`"PartitionKey":"p","RowKey":"r","_tpPrimary":"x","_tpOld":"nonsense","_tpNew":1,"_tpShared":""`)
	r := assert.Must[*inspect.Report](t)(inspect.Table(t.Context(), table, &inspect.Options{MaxProperties: 50}))
	if len(r.Properties) != 50 || r.OtherProperties != 2_953 || r.Rows != 2 || r.Library.Shared != 1 {
		t.Errorf("%d properties, others %d, %+v", len(r.Properties), r.OtherProperties, r.Library)
	}
	var text strings.Builder
	assert.Check(t, r.WriteText(&text))
	if strings.ContainsAny(text.String(), "\x1b\u202e\r") || !strings.Contains(text.String(), `"r\n\u202e"`) {
		t.Errorf("%q", text.String())
	}
	for line := range strings.Lines(text.String()) {
		if len([]rune(line)) > 300 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	compiles(t, r.Struct("main"))
	r, err := inspect.Table(t.Context(), page(t, `"PartitionKey":"","RowKey":"","At@odata.type":"Edm.DateTime","At":"soon","X":1`,
		`"PartitionKey":"p","RowKey":"2","At":"\ud83d"`, `"PartitionKey":"p","RowKey":"3"`), nil)
	if err != nil || r.Rows != 3 || r.Garbled != 1 || r.Lossy != 1 || !slices.Equal(r.LossyExamples, []inspect.Key{{Partition: "p", Row: "2"}}) || !strings.Contains(strings.Join(r.Warnings, " "), "surrogate") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, garbled := range []string{`"PartitionKey":"p"`, `"PartitionKey":"p","RowKey":"r","X":1,"X":2`} {
		r, err := inspect.Table(t.Context(), page(t, garbled), nil)
		if harness.WantKind(t, err, tables.ErrGarbled); r.Complete {
			t.Errorf("%s: complete", garbled)
		}
	}
}

// compiles compiles a file, and makes a codec of its struct.
func compiles(t *testing.T, source string) {
	t.Helper()
	dir := t.TempDir()
	_, after, _ := strings.Cut(source, "\ntype ")
	typ, _, _ := strings.Cut(after, " ")
	use := "package main\n\nimport \"github.com/tablepatterns/tablepatterns/tables\"\n\nfunc main() {\n\t_, _ = tables.NewCodec[" + typ + "]()\n}\n"
	assert.Check(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600), os.WriteFile(filepath.Join(dir, "b.go"), []byte(use), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "vet", filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, source)
	}
}

// TestStruct: the suggested struct compiles, and reads every row of the table it is made from.
func TestStruct(t *testing.T) {
	r := inspect.Report{Table: "orders2", Entities: 3}
	for name, types := range map[string][]string{"Name": {"Edm.String"}, "name": {"Edm.String"}, "1st": {"Edm.Int32"}, "unit_price": {"Edm.Double"}, "At": {"Edm.DateTime"}, "ID": {"Edm.Guid"}, "Photo": {"Edm.Binary"},
		"Mixed": {"Edm.String", "Edm.Int32"}, "Number": {"Edm.Int32", "Edm.Int64"}, "Paid": {"Edm.Boolean"}, "Rest": {"Edm.String"}, "Meta": {"Edm.Int64"}, "名前": {"Edm.String"}, "_x": {"Edm.Int32"}, "ETag": {"Edm.String"}} {
		p := inspect.Property{Name: name, Rows: 2, Absent: int64(len(name) % 2)}
		for _, each := range types {
			p.Types = append(p.Types, inspect.TypeCount{Type: each, Rows: 1})
		}
		r.Properties = append(r.Properties, p)
	}
	slices.SortFunc(r.Properties, func(a, b inspect.Property) int { return strings.Compare(a.Name, b.Name) })
	source := r.Struct("")
	compiles(t, source)
	for _, line := range []string{"type Orders2 struct {", "UnitPrice float64 `table:\"unit_price\"`", "Name2 string `table:\"name\"`", "Number int64 // 1 Edm.Int32, 1 Edm.Int64", "Paid bool",
		"Mixed tables.Value", "Photo []byte", "ID uuid.UUID", "Rest2 string `table:\"Rest\"`"} {
		plain := strings.Join(strings.Fields(source), " ")
		if !strings.Contains(plain, line) {
			t.Errorf("no %q in\n%s", line, source)
		}
	}
}

// TestCosmos: a table that returns rows in no order is read by one reader, page by page, in the table and in partitions.
func TestCosmos(t *testing.T) {
	row := func(partition, row string) string {
		return `{"odata.etag":"W/\"datetime'2024-05-06T07%3A08%3A09.1234567Z'\"","Timestamp":"2024-05-06T07:08:09.1234567Z","PartitionKey":"` + partition + `","RowKey":"` + row + `","N":1}`
	}
	var filters []string
	transport := harness.Transport(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		filters = append(filters, query.Get("$filter"))
		if query.Get("NextPartitionKey") == "" {
			return harness.Reply(req, http.StatusOK, `{"value":[`+row("q", "1")+","+row("p", "1")+`]}`, "Content-Type", "application/json",
				"x-ms-continuation-NextPartitionKey", "more", "x-ms-continuation-NextRowKey", "more"), nil
		}
		return harness.Reply(req, http.StatusOK, `{"value":[`+row("p", "0")+`]}`, "Content-Type", "application/json"), nil
	})
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: transport}}))
	pages := 0
	r, err := inspect.Table(t.Context(), a.Table("Orders"), &inspect.Options{Progress: func(tables.Progress) { pages++ }})
	if err != nil || r.Rows != 3 || r.Requests != 1 || len(filters) != 2 || r.Partitions.Count != 2 || pages != 1 || !r.Complete {
		t.Errorf("%+v, %d pages, %v", r, pages, err)
	}
	filters = nil
	r, err = inspect.Table(t.Context(), a.Table("Orders"), &inspect.Options{Partitions: []string{"p", "q"}})
	if err != nil || r.Requests != 2 || len(filters) != 4 || filters[0] != "PartitionKey eq 'p'" || filters[2] != "PartitionKey eq 'q'" {
		t.Errorf("%+v, %q, %v", r, filters, err)
	}
}
