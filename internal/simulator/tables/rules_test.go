package tables_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// TestRulesAtTheLimitAndOneOver sends every rule its largest right value and its smallest wrong one, by insert, by upsert
// and in a transaction.
func TestRulesAtTheLimitAndOneOver(t *testing.T) {
	for _, c := range []struct{ name, properties, code string }{
		{"252 properties", manyProperties(252), ""},
		{"253 properties", manyProperties(253), "TooManyProperties"},
		{"252 properties and nulls", manyProperties(252) + `,"N1":null,"N2":null`, ""},
		{"32768 units", `,"A":"` + strings.Repeat("é", 32768) + `"`, ""},
		{"32769 units", `,"A":"` + strings.Repeat("é", 32769) + `"`, "PropertyValueTooLarge"},
		{"16384 characters of two units", `,"A":"` + strings.Repeat("😀", 16384) + `"`, ""},
		{"16385 characters of two units", `,"A":"` + strings.Repeat("😀", 16385) + `"`, "PropertyValueTooLarge"},
		{"64 KiB of binary", `,"A@odata.type":"Edm.Binary","A":"` + base64Of(64<<10) + `"`, ""},
		{"64 KiB and one byte of binary", `,"A@odata.type":"Edm.Binary","A":"` + base64Of(64<<10+1) + `"`, "PropertyValueTooLarge"},
		{"a name of 255", `,"` + strings.Repeat("a", 255) + `":1`, ""},
		{"a name of 256", `,"` + strings.Repeat("a", 256) + `":1`, "PropertyNameTooLong"},
		{"an identifier", `,"_Straße1":1`, ""},
		{"a dash in a name", `,"a-b":1`, "PropertyNameInvalid"},
		{"a digit first", `,"1a":1`, "PropertyNameInvalid"},
		{"a dot in a name", `,"a.b":1`, "PropertyNameInvalid"},
		{"a space in a name", `,"a b":1`, "PropertyNameInvalid"},
		{"an empty name", `,"":1`, "PropertyNameInvalid"},
		{"a bad name of a null", `,"a-b":null`, "PropertyNameInvalid"},
		{"1 MiB", mebibyte(0), ""},
		{"1 MiB and one byte", mebibyte(1), "EntityTooLarge"},
		{"a name twice", `,"A":1,"A":2`, "DuplicatePropertiesSpecified"},
		{"names that differ in case", `,"A":1,"a":2`, ""},
	} {
		a := accounts.WithTable(t, simulator.Options{})
		status, change := 204, 204
		if c.code != "" {
			status, change = 400, 400
		}
		a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r1"`+c.properties+`}`, status, c.code, "Prefer", "return-no-content")
		const address = "(PartitionKey='p',RowKey='r2')"
		a.Want(http.MethodPut, "/Employees"+address, `{"PartitionKey":"p"`+c.properties+`}`, change, c.code)
		r := a.Transact(probe.Part("PUT", address, `{"PartitionKey":"p"`+c.properties+`}`))
		if failed := strings.Contains(r.Text, `"code":"`+c.code+`"`); r.StatusCode != 202 || failed != (c.code != "") {
			t.Errorf("%s in a transaction: %d %s", c.name, r.StatusCode, accounts.Clip(r.Text))
		}
		if rows := len(a.Rows("Employees")); (rows == 2) != (c.code == "") {
			t.Errorf("%s: %d rows", c.name, rows)
		}
		if t.Failed() {
			t.Fatal(c.name)
		}
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"P%d":%d`, i, i)
	}
	return b.String()
}

func base64Of(n int) string {
	v := edm.Binary(make([]byte, n))
	return strings.Trim(string(edm.AppendValue(nil, v)), `"`)
}

// mebibyte makes an entity of 1 MiB and the given number of bytes more, with the keys p and r1 (or r2).
func mebibyte(more int) string {
	left := edm.MaxEntitySize - edm.KeySize("p", "r1") + more
	var b strings.Builder
	for i := 0; left > 0; i++ {
		name := fmt.Sprintf("B%02d", i)
		size := min(left-edm.PropertySize(name, edm.Binary(nil)), 60<<10)
		left -= edm.PropertySize(name, edm.Binary(make([]byte, size)))
		fmt.Fprintf(&b, `,"%s@odata.type":"Edm.Binary","%s":"%s"`, name, name, base64Of(size))
	}
	return b.String()
}

func TestAMergeMayNotOutgrowTheLimits(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r1", manyProperties(252))
	const address = "/Employees(PartitionKey='p',RowKey='r1')"
	a.Want(http.MethodPatch, address, `{"P1":"changed"}`, 204, "")
	a.Want(http.MethodPatch, address, `{"Q":1}`, 400, "TooManyProperties")
	accounts.Insert(a, "p", "r2", mebibyte(0))
	a.Want(http.MethodPatch, "/Employees(PartitionKey='p',RowKey='r2')", `{"Q":true}`, 400, "EntityTooLarge")
	if rows := a.Rows("Employees"); len(rows[0].Properties) != 252 || rows[1].Get("Q") != (edm.Value{}) {
		t.Error("a refused merge was carried out")
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ key, code string }{
		{"", ""}, {strings.Repeat("k", 512), ""}, {strings.Repeat("k", 513), "KeyValueTooLarge"}, {strings.Repeat("é", 512), ""},
		{strings.Repeat("😀", 256), ""}, {strings.Repeat("😀", 257), "KeyValueTooLarge"},
		{"a b+c%d&e=f:g@h(i)j'k,l;m\"n", ""}, {"\u00A0\uFFFD😀", ""}, {"\x7E", ""}, {"\u00AD", ""},
		{"a/b", "OutOfRangeInput"}, {`a\b`, "OutOfRangeInput"}, {"a#b", "OutOfRangeInput"}, {"a?b", "OutOfRangeInput"},
		{"\x00", "OutOfRangeInput"}, {"\t", "OutOfRangeInput"}, {"\x1F", "OutOfRangeInput"}, {"\x7F", "OutOfRangeInput"}, {"\u0080", "OutOfRangeInput"}, {"\u009F", "OutOfRangeInput"},
	} {
		quoted := string(edm.AppendQuoted(nil, c.key))
		address := func(pk, rk string) string {
			escape := func(key string) string { return url.PathEscape(strings.ReplaceAll(key, "'", "''")) }
			return "/Employees(PartitionKey='" + escape(pk) + "',RowKey='" + escape(rk) + "')"
		}
		status, read, change := 201, 200, 204
		if c.code != "" {
			status, read, change = 400, 400, 400
		}
		a := accounts.WithTable(t, simulator.Options{})
		a.Want(http.MethodPost, "/Employees", `{"PartitionKey":`+quoted+`,"RowKey":"r"}`, status, c.code)
		a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":`+quoted+`}`, status, c.code)
		a.Want(http.MethodGet, address(c.key, "r"), "", read, c.code)
		a.Want(http.MethodGet, address("p", c.key), "", read, c.code)
		a.Want(http.MethodPut, address(c.key, c.key), `{}`, change, c.code)
		a.Want(http.MethodDelete, address(c.key, c.key), "", change, c.code, "If-Match", "*")
		if t.Failed() {
			t.Fatalf("key %q", c.key)
		}
	}
	a := accounts.WithTable(t, simulator.Options{})
	for body, code := range map[string]string{
		`{"RowKey":"r"}`: "PropertiesNeedValue", `{"PartitionKey":"p"}`: "PropertiesNeedValue", `{"PartitionKey":null,"RowKey":"r"}`: "PropertiesNeedValue",
		`{"PartitionKey":1,"RowKey":"r"}`: "InvalidInput", `{"PartitionKey":"p","RowKey":"r","RowKey@odata.type":"Edm.Guid"}`: "InvalidInput",
		`[]`: "InvalidInput", `{"PartitionKey":"p","RowKey":"r"}x`: "InvalidInput", `{"PartitionKey":"p","RowKey":"r"`: "InvalidInput", "{\"PartitionKey\":\"\xff\",\"RowKey\":\"r\"}": "InvalidInput",
	} {
		a.Want(http.MethodPost, "/Employees", body, 400, code)
	}
	a.Want(http.MethodGet, "/Employees(PartitionKey='%FF',RowKey='r')", "", 400, "InvalidInput")
}

func TestRequestSize(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	body := func(size int) string {
		text := `{"PartitionKey":"p","RowKey":"r"}`
		return text + strings.Repeat(" ", size-len(text))
	}
	a.Want(http.MethodPost, "/Employees", body(4<<20), 201, "")
	a.Want(http.MethodPost, "/Employees", body(4<<20+1), 413, "RequestBodyTooLarge")
}
