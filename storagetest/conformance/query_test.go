package conformance

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

func queryCases() []script {
	return []script{
		{"filters", filtering},
		{"invalid filters", badFilters},
		{"query answers", queryAnswers},
		{"pages", paging},
		{"more than a page", longPages},
	}
}

// The rows that filters choose from. Row 5 has nothing but its keys.
var filterRows = []struct{ pk, rk, properties string }{
	{"A", "1", `"S":"apple","I":1,"L":"1","L@odata.type":"Edm.Int64","D":1.5,"B":true,"T":"2026-01-01T00:00:00Z","T@odata.type":"Edm.DateTime","G":"00000000-0000-0000-0000-000000000001","G@odata.type":"Edm.Guid","X":"AQ==","X@odata.type":"Edm.Binary"`},
	{"A", "2", `"S":"Banana","I":-2,"L":"9007199254740993","L@odata.type":"Edm.Int64","D":-0.5,"B":false,"T":"2026-01-01T00:00:00.0000001Z","T@odata.type":"Edm.DateTime","G":"10000000-0000-0000-0000-000000000000","G@odata.type":"Edm.Guid","X":"AQI=","X@odata.type":"Edm.Binary"`},
	{"A", "3", `"S":"","I":2147483647,"L":"-5","L@odata.type":"Edm.Int64","D":3.0,"B":true,"T":"1999-12-31T23:59:59Z","T@odata.type":"Edm.DateTime","G":"c9da6455-213d-42c9-9a79-3e9149a57833","G@odata.type":"Edm.Guid","X":"","X@odata.type":"Edm.Binary"`},
	{"B", "4", `"S":"O'Brien","I":0,"D":"NaN","D@odata.type":"Edm.Double","M":"text"`},
	{"B", "5", ``},
	{"B", "6", `"S":"größer","M":7`},
	{"a", "7", `"S":"zebra","s":"apple"`},
}

func filtering(w *world) {
	name := w.newTable()
	for _, r := range filterRows {
		body := fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,%s`, r.pk, r.rk, r.properties)
		w.must(tables, "POST", "/"+name, strings.TrimSuffix(body, ",")+"}")
	}
	for _, f := range filters {
		w.note(f.filter, f.want, strings.Join(w.rows(name, f.filter), " "))
	}
}

// filters with the rows that they let through.
var filters = []struct{ filter, want string }{
	{"", "1 2 3 4 5 6 7"},
	{"PartitionKey eq 'A'", "1 2 3"}, {"PartitionKey eq 'a'", "7"}, {"PartitionKey gt 'A'", "4 5 6 7"}, {"PartitionKey le 'B' and RowKey ge '3'", "3 4 5 6"},
	{"PartitionKey eq 'A' and RowKey eq '2'", "2"}, {"PartitionKey eq 'A' and RowKey gt '1' and RowKey le '3'", "2 3"}, {"PartitionKey ne 'A'", "4 5 6 7"},
	{"PartitionKey eq 'A' or RowKey eq '7'", "1 2 3 7"}, {"PartitionKey eq 'none'", ""}, {"RowKey lt '3'", "1 2"},
	{"S eq 'apple'", "1"}, {"S ne 'apple'", "2 3 4 6 7"}, {"S gt 'apple'", "6 7"}, {"S ge 'apple'", "1 6 7"}, {"S lt 'apple'", "2 3 4"}, {"S le 'Banana'", "2 3"},
	{"S eq ''", "3"}, {"S eq 'O''Brien'", "4"}, {"S eq 'größer'", "6"}, {"s eq 'apple'", "7"},
	{"I eq 1", "1"}, {"I ne 1", "2 3 4"}, {"I gt -2", "1 3 4"}, {"I ge 2147483647", "3"}, {"I lt 0", "2"}, {"I le 0", "2 4"},
	{"L eq 1L", "1"}, {"L eq 9007199254740993L", "2"}, {"L eq 9007199254740992L", ""}, {"L gt 1L", "2"}, {"L lt 0L", "3"}, {"L ne 1L", "2 3"},
	{"D eq 1.5", "1"}, {"D gt 0.0", "1 3"}, {"D lt 0.0", "2"}, {"D eq 3.0", "3"}, {"D ne 1.5", "2 3 4"},
	{"B eq true", "1 3"}, {"B eq false", "2"}, {"B ne true", "2"},
	{"T eq datetime'2026-01-01T00:00:00Z'", "1"}, {"T gt datetime'2026-01-01T00:00:00Z'", "2"}, {"T le datetime'2026-01-01T00:00:00Z'", "1 3"}, {"T ne datetime'2026-01-01T00:00:00Z'", "2 3"},
	{"G eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "3"}, {"G ne guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "1 2"},
	{"X eq X'0102'", "2"}, {"X eq binary'0102'", "2"}, {"X ne X'0102'", "1 3"}, {"X gt X'01'", "2"},
	{"Timestamp gt datetime'2001-01-01T00:00:00Z'", "1 2 3 4 5 6 7"}, {"Timestamp lt datetime'2001-01-01T00:00:00Z'", ""},
	{"Nothing eq 1", ""}, {"Nothing ne 1", ""}, {"not (Nothing eq 1)", "1 2 3 4 5 6 7"}, {"M eq 'text'", "4"}, {"M eq 7", "6"}, {"M ne 7", ""},
	{"not (B eq true)", "2 4 5 6 7"}, {"not (PartitionKey eq 'A')", "4 5 6 7"}, {"not (I gt 0) and PartitionKey eq 'A'", "2"},
	{"B eq true and I gt 1", "3"}, {"B eq true or I eq -2", "1 2 3"}, {"B eq true or I eq 0 and PartitionKey eq 'B'", "1 3 4"}, {"(B eq true or I eq 0) and PartitionKey eq 'B'", "4"},
	{"B eq true and not (I eq 1)", "3"}, {"((S eq 'apple'))", "1"}, {"1 eq I", "1"}, {"0 gt I", "2"}, {"'B' le PartitionKey", "4 5 6 7"},
	{"I eq 1L", "1"}, {"L eq 1", "1"}, {"I eq 1.0", "1"}, {"D eq 3", "3"}, {"S eq 1", ""},
}

func badFilters(w *world) {
	name := w.newTable()
	w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r","A":1}`)
	for _, f := range []string{"A eq", "A equals 1", "A eq 1 and", "(A eq 1", "A eq 'x", "A eq 1 or or A eq 2", "A eq datetime'never'", "A eq guid'x'", "A eq 1)"} {
		w.do(tables, f, "400 InvalidInput", "GET", "/"+name+"()?$filter="+url.QueryEscape(f), "")
	}
	for _, f := range []string{"startswith(A,'x')", "A add 1 eq 2"} {
		w.do(tables, f, "501 NotImplemented", "GET", "/"+name+"()?$filter="+url.QueryEscape(f), "")
	}
}

// rows returns the RowKeys that a filter finds, through all pages; an error is the one row "error".
func (w *world) rows(table, filter string) []string {
	w.Helper()
	keys, _ := w.pages(table, "$filter="+url.QueryEscape(filter))
	return keys
}

// pages follows a query to its end and returns the RowKeys and the number of pages.
func (w *world) pages(table, options string) (keys []string, pages int) {
	w.Helper()
	token := ""
	for pages < 50 {
		r := w.quiet(tables, "GET", "/"+table+"()?"+options+token, "")
		var page struct{ Value []struct{ RowKey string } }
		if err := json.Unmarshal([]byte(r.body), &page); err != nil || r.StatusCode != 200 {
			return []string{"error", fmt.Sprint(r.StatusCode)}, pages
		}
		pages++
		for _, e := range page.Value {
			keys = append(keys, e.RowKey)
		}
		if token = nextToken(r); token == "" {
			return keys, pages
		}
	}
	return []string{"no end"}, pages
}

// nextToken is the continuation that an answer gives, as options of the next query.
func nextToken(r reply) string {
	token := ""
	for _, name := range []string{"NextPartitionKey", "NextRowKey"} {
		if value := r.Header.Get("x-ms-continuation-" + name); value != "" {
			token += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	return token
}

func queryAnswers(w *world) {
	name := w.newTable()
	w.do(tables, "an empty table", "200", "GET", "/"+name+"()", "")
	for _, rk := range []string{"1", "2"} {
		w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"`+rk+`","Age":39,"Big":"5","Big@odata.type":"Edm.Int64"}`)
	}
	at := "/" + name + "()"
	w.do(tables, "all", "200", "GET", at, "")
	w.do(tables, "all without parentheses", "200", "GET", "/"+name, "")
	w.do(tables, "with full metadata", "200", "GET", at, "", "Accept", "application/json;odata=fullmetadata")
	w.do(tables, "without metadata", "200", "GET", at, "", "Accept", "application/json;odata=nometadata")
	w.do(tables, "$format", "200", "GET", at+"?$format="+url.QueryEscape("application/json;odata=nometadata"), "")
	w.do(tables, "some properties", "200", "GET", at+"?$select=RowKey,Big", "")
	w.do(tables, "a property that is not there", "200", "GET", at+"?$select=Nothing", "")
	w.do(tables, "no properties by name", "200", "GET", at+"?$select=", "")
	w.do(tables, "nothing found", "200", "GET", at+"?$filter="+url.QueryEscape("RowKey eq 'x'"), "")
	w.do(tables, "no table", "404 TableNotFound", "GET", "/"+noTable+"()", "")
	w.do(tables, "$top of 0", "200", "GET", at+"?$top=0", "")
	w.do(tables, "$orderby", "501 NotImplemented", "GET", at+"?$orderby=Name", "")
	w.do(tables, "$top that is no number", "400 InvalidInput", "GET", at+"?$top=x", "")
	w.do(tables, "an invalid continuation", "400 InvalidInput", "GET", at+"?NextPartitionKey=x&NextRowKey=y", "")
}

func paging(w *world) {
	name := w.newTable()
	for i := range 7 {
		w.must(tables, "POST", "/"+name, fmt.Sprintf(`{"PartitionKey":"p%d","RowKey":"r%d","N":%d}`, i/4, i, i))
	}
	token := ""
	for page := 1; page == 1 || token != "" && page < 10; page++ {
		r := w.do(tables, fmt.Sprint("page ", page), "200", "GET", "/"+name+"()?$top=3"+token, "")
		token = nextToken(r)
	}
	r := w.do(tables, "filtered", "200", "GET", "/"+name+"()?$top=1&$filter="+url.QueryEscape("N ge 5"), "")
	w.do(tables, "filtered, page 2", "200", "GET", "/"+name+"()?$top=1&$filter="+url.QueryEscape("N ge 5")+nextToken(r), "")
	w.do(tables, "just one page", "200", "GET", "/"+name+"()?$top=7", "")
	w.do(tables, "one row of a point", "200", "GET", "/"+name+"()?$top=1&$filter="+url.QueryEscape("PartitionKey eq 'p1' and RowKey eq 'r6'"), "")
	keys, _ := w.pages(name, "$top=2")
	w.note("through all pages", "r0 r1 r2 r3 r4 r5 r6", strings.Join(keys, " "))
}

func longPages(w *world) {
	name := w.newTable()
	w.fill(name, 1001)
	r := w.quiet(tables, "GET", "/"+name+"()?$select=RowKey", "")
	w.note("entities of a page", "1000", strings.Count(r.body, `"RowKey"`))
	w.note("goes on", "true", nextToken(r) != "")
	keys, pages := w.pages(name, "$select=RowKey")
	w.note("pages", "2", pages)
	w.note("entities", "1001 r0000 r1000", fmt.Sprint(len(keys), " ", keys[0], " ", keys[len(keys)-1]))
	w.do(tables, "the rest", "200", "GET", "/"+name+"()?$select=RowKey"+nextToken(r), "")
}

// fill puts rows of one partition into a table.
func (w *world) fill(table string, n int) {
	for from := 0; from < n; from += 100 {
		var ops []string
		for i := from; i < min(n, from+100); i++ {
			ops = append(ops, w.changeOp("PUT", table, "p", fmt.Sprintf("r%04d", i), fmt.Sprintf(`"N":%d`, i)))
		}
		w.must(tables, "POST", "/$batch", changeSet(ops...), batchType...)
	}
}
