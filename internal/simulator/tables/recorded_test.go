package tables_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// The tests of this file pin answers byte by byte, headers included, to the form that recorded answers of the service have.
// The requests and what they hold are made up. Only the framing differs: the service sends bodies in chunks, and the
// simulator, which sends nothing, says their length.

// fixture is one request and the answer to it. In wanted text, {id} is the request's id, {now} the time of a refusal, {at}
// and {etag} the timestamp and the ETag of the row Sales, 000123.
type fixture struct {
	name, method, target, body string
	headers                    []string
	status                     int
	want                       map[string]string // headers beside those that all answers have
	text                       string
}

const (
	atContoso   = "http://contoso.table.sim.test"
	jsonMinimal = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
	quiet       = "return-no-content"
)

// always are the headers of every answer of the table service; those that say something every time are checked for that.
var always = []string{"Date", "Server", "X-Ms-Request-Id", "X-Ms-Version"}

// careful are the two more of all but those about policies.
func careful(more map[string]string) map[string]string {
	h := map[string]string{"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
	maps.Copy(h, more)
	return h
}

func refusal(code, message string) string {
	return `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"` + message + `\nRequestId:{id}\nTime:{now}"}}}`
}

func (f fixture) check(t *testing.T, a accounts.Account) {
	t.Helper()
	r := a.Send(f.method, f.target, f.body, append(f.headers, "x-ms-version", "2019-02-02")...)
	fill := func(text string) string { return text }
	for _, row := range a.Rows("Employees") {
		if row.Partition == "Sales" && row.Row == "000123" {
			stamp := strings.Trim(string(edm.AppendValue(nil, row.Timestamp)), `"`)
			fill = strings.NewReplacer("{at}", stamp, "{etag}", row.ETag, `{\etag}`, strings.ReplaceAll(row.ETag, `"`, `\"`)).Replace
		}
	}
	now := a.Clock().Now().Format("2006-01-02T15:04:05.0000000Z")
	want := strings.NewReplacer("{id}", r.Header.Get("x-ms-request-id"), "{now}", now).Replace(fill(f.text))
	if r.StatusCode != f.status || r.Text != want {
		t.Errorf("%s: %d\n%s\nwant %d\n%s", f.name, r.StatusCode, r.Text, f.status, want)
	}
	names := slices.Concat(always, []string{"Content-Length"}, slices.Collect(maps.Keys(f.want)))
	for i := range names {
		names[i] = http.CanonicalHeaderKey(names[i])
	}
	slices.Sort(names)
	assert.Slices(t, slices.Sorted(maps.Keys(r.Header)), names, "%s: headers", f.name)
	for name, value := range f.want {
		assert.Equal(t, r.Header.Get(name), fill(value), "%s: %s", f.name, name)
	}
	if f.text == "" && r.Header.Get("Content-Length") != "0" {
		t.Errorf("%s: Content-Length is %q", f.name, r.Header.Get("Content-Length"))
	}
	assert.Equal(t, r.Header.Get("Server"), "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "%s: Server", f.name)
}

func TestRecordedTables(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	const made = atContoso + "/Tables('Employees')"
	policies := `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>auditors</Id><AccessPolicy><Start>2026-03-01</Start>` +
		`<Expiry>2026-04-01</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`
	for _, f := range []fixture{
		{"create", "POST", "/Tables", `{"TableName": "Employees"}`, []string{"Prefer", quiet}, 204,
			careful(map[string]string{"Location": made, "DataServiceId": made, "Preference-Applied": quiet}), ""},
		{"create again", "POST", "/Tables", `{"TableName": "Employees"}`, []string{"Prefer", quiet}, 409,
			careful(map[string]string{"Content-Type": jsonMinimal, "Preference-Applied": quiet}), refusal("TableAlreadyExists", "The table specified already exists.")},
		{"set policies", "PUT", "/Employees?comp=acl", policies, nil, 204, nil, ""},
		{"get policies", "GET", "/Employees?comp=acl", "", nil, 200, map[string]string{"Content-Type": "application/xml"},
			"\ufeff" + strings.NewReplacer("2026-03-01", "2026-03-01T00:00:00.0000000Z", "2026-04-01", "2026-04-01T00:00:00.0000000Z").Replace(policies)},
	} {
		f.check(t, a)
	}
}

// employee has a property of each type, in an order of its own, and a null; stored is how the service gives it back.
const (
	employee = `{"PartitionKey": "Sales", "RowKey": "000123", "Level": "7", "Level@odata.type": "Edm.Int64", "Name": "Jun Cao", "Active": true, "Left": false, "Nick": null, "Share": 2.0, "Rate": 0.5,` +
		` "Hired": "2014-08-22T00:50:32Z", "Hired@odata.type": "Edm.DateTime", "hired": "2014-08-22T00:50:32.1234567Z", "hired@odata.type": "Edm.DateTime", "Photo": "Q29udG9zbw==", "Photo@odata.type": "Edm.Binary",` +
		` "Age": 34, "Badge": "0f8fad5b-d9cb-469f-a165-70867728950e", "Badge@odata.type": "Edm.Guid"}`
	stored = `"Level@odata.type":"Edm.Int64","Level":"7","Name":"Jun Cao","Active":true,"Left":false,"Share":2.0,"Rate":0.5,` +
		`"Hired@odata.type":"Edm.DateTime","Hired":"2014-08-22T00:50:32Z","hired@odata.type":"Edm.DateTime","hired":"2014-08-22T00:50:32.1234567Z","Photo@odata.type":"Edm.Binary","Photo":"Q29udG9zbw==",` +
		`"Age":34,"Badge@odata.type":"Edm.Guid","Badge":"0f8fad5b-d9cb-469f-a165-70867728950e"}`
	keysAndTime = `"PartitionKey":"Sales","RowKey":"000123","Timestamp":"{at}",`
)

func TestRecordedEntities(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const row, made = "(PartitionKey='Sales',RowKey='000123')", atContoso + "/Employees(PartitionKey='Sales',RowKey='000123')"
	const old = `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`
	changed := refusal("UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied.")
	gone := refusal("ResourceNotFound", "The specified resource does not exist.")
	for _, f := range []fixture{
		{"insert", "POST", "/Employees", employee, []string{"Prefer", quiet}, 204,
			careful(map[string]string{"ETag": "{etag}", "Location": made, "DataServiceId": made, "Preference-Applied": quiet}), ""},
		{"insert again", "POST", "/Employees", employee, []string{"Prefer", quiet}, 409,
			careful(map[string]string{"Content-Type": jsonMinimal, "Preference-Applied": quiet}), refusal("EntityAlreadyExists", "The specified entity already exists.")},
		{"get", "GET", "/Employees" + row, "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.etag":"{\etag}",` + keysAndTime + stored},
		{"get with full metadata", "GET", "/Employees" + row, "", []string{"Accept", "application/json;odata=fullmetadata"}, 200,
			careful(map[string]string{"Content-Type": strings.Replace(jsonMinimal, "minimal", "full", 1), "ETag": "{etag}"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.type":"contoso.Employees","odata.id":"` + made + `","odata.etag":"{\etag}",` +
				`"odata.editLink":"Employees` + row + `","PartitionKey":"Sales","RowKey":"000123","Timestamp@odata.type":"Edm.DateTime","Timestamp":"{at}",` + stored},
		{"query", "GET", "/Employees()", "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees","value":[{"odata.etag":"{\etag}",` + keysAndTime + stored + `]}`},
		{"query for some properties", "GET", "/Employees()?%24select=Level%2CName", "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees&$select=Level,Name","value":[{"odata.etag":"{\etag}","Level@odata.type":"Edm.Int64","Level":"7","Name":"Jun Cao"}]}`},
		{"query for no properties by name", "GET", "/Employees()?%24filter=PartitionKey+eq+%27Sales%27&%24select=", "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees&$select=","value":[{"odata.etag":"{\etag}",` + keysAndTime + stored + `]}`},
		{"delete for another ETag", "DELETE", "/Employees" + row, "", []string{"If-Match", old}, 412, careful(map[string]string{"Content-Type": jsonMinimal}), changed},
		{"replace", "PUT", "/Employees" + row, `{"PartitionKey": "Sales", "RowKey": "000123", "Name": "Ken Kwok", "Email": "kenk@contoso.com", "Zone": "X", "Email2": "k@contoso.com"}`,
			[]string{"If-Match", "*"}, 204, careful(map[string]string{"ETag": "{etag}"}), ""},
		{"properties by name after it", "GET", "/Employees" + row, "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.etag":"{\etag}",` + keysAndTime + `"Email":"kenk@contoso.com","Email2":"k@contoso.com","Name":"Ken Kwok","Zone":"X"}`},
		{"doubles that are no numbers", "PUT", "/Employees" + row, `{"A": "Infinity", "A@odata.type": "Edm.Double", "B": "-Infinity", "B@odata.type": "Edm.Double", "C": "NaN", "C@odata.type": "Edm.Double"}`,
			nil, 204, careful(map[string]string{"ETag": "{etag}"}), ""},
		{"given back", "GET", "/Employees" + row, "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.etag":"{\etag}",` + keysAndTime +
				`"A@odata.type":"Edm.Double","A":"Infinity","B@odata.type":"Edm.Double","B":"-Infinity","C@odata.type":"Edm.Double","C":"NaN"}`},
		{"delete", "DELETE", "/Employees" + row, "", []string{"If-Match", "*"}, 204, careful(nil), ""},
		{"get after it", "GET", "/Employees" + row, "", nil, 404, careful(map[string]string{"Content-Type": jsonMinimal}), gone},
	} {
		f.check(t, a)
	}
}

// A quote in a key stands twice in an address, once for each quote.
func TestRecordedQuotes(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const twice = "(PartitionKey='d''''Arc',RowKey='O''Neill')"
	r := a.Want("POST", "/Employees", `{"PartitionKey":"d''Arc","RowKey":"O'Neill"}`, 204, "", "Prefer", quiet)
	if want := atContoso + "/Employees" + twice; r.Header.Get("Location") != want || r.Header.Get("DataServiceId") != want {
		t.Errorf("%q and %q, want %q", r.Header.Get("Location"), r.Header.Get("DataServiceId"), want)
	}
	r = a.Want("GET", "/Employees"+twice, "", 200, "")
	assert.Contains(t, r.Text, `"PartitionKey":"d''Arc","RowKey":"O'Neill"`)
}

// A continuation holds keys in base64 with their length before them.
func TestRecordedContinuation(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	for _, rk := range []string{"1", "12", "123", "1234", "12345"} {
		accounts.Insert(a, "Sales", rk, "")
	}
	token, pages := "", []string{}
	for range 5 {
		r := a.Want("GET", "/Employees()?%24top=2"+token, "", 200, "")
		next := r.Header.Get("x-ms-continuation-NextPartitionKey") + " " + r.Header.Get("x-ms-continuation-NextRowKey")
		pages = append(pages, next)
		if next == " " {
			break
		}
		pk, rk, _ := strings.Cut(next, " ")
		token = "&NextPartitionKey=" + strings.ReplaceAll(pk, "!", "%21") + "&NextRowKey=" + strings.ReplaceAll(rk, "!", "%21")
	}
	if want := []string{"1!8!U2FsZXM- 1!4!MTIz", "1!8!U2FsZXM- 1!8!MTIzNDU-", " "}; !slices.Equal(pages, want) {
		t.Errorf("%q, want %q", pages, want)
	}
}

// A timestamp ends with its last digit that is no nought, in the ETag as in the body.
func TestRecordedTimes(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{Start: time.Date(2026, 1, 5, 9, 0, 0, 123_000_000-100, time.UTC)})
	r := a.Want("PUT", "/Employees(PartitionKey='p',RowKey='r')", "{}", 204, "")
	if want := `W/"datetime'2026-01-05T09%3A00%3A00.123Z'"`; r.Header.Get("ETag") != want {
		t.Errorf("%s, want %s", r.Header.Get("ETag"), want)
	}
	r = a.Want("GET", "/Employees(PartitionKey='p',RowKey='r')", "", 200, "")
	assert.Contains(t, r.Text, `"Timestamp":"2026-01-05T09:00:00.123Z"`)
}
