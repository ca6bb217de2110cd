package tables_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// The fixtures of this file hold what recorded answers of the service say and its documentation does not. The requests are made
// up. docs/explanation/azurite.md lists the source of each rule.

const (
	jsonNone = "application/json;odata=nometadata;streaming=true;charset=utf-8"
	jsonFull = "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
)

// TestRecordedErrorsFollowAccept holds that a refusal is written at the level of metadata that the request accepts, alone and in a
// transaction's part, and at the minimal level where the request says nothing.
func TestRecordedErrorsFollowAccept(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	gone := refusal("ResourceNotFound", "The specified resource does not exist.")
	for accept, contentType := range map[string]string{
		"": jsonMinimal, "application/json": jsonMinimal, "application/json;odata=minimalmetadata": jsonMinimal,
		"application/json;odata=nometadata": jsonNone, "application/json;odata=fullmetadata": jsonFull,
	} {
		says := careful(map[string]string{"Content-Type": contentType})
		var headers []string
		if accept != "" {
			headers = []string{"Accept", accept}
		}
		fixture{"a table, " + accept, "GET", "/Tables('Nobody')", "", headers, 404, says, gone}.check(t, a)
		fixture{"a row, " + accept, "GET", "/Employees(PartitionKey='p',RowKey='r')", "", headers, 404, says, gone}.check(t, a)
		fixture{"a delete, " + accept, "DELETE", "/Employees(PartitionKey='p',RowKey='r')", "", append(headers, "If-Match", "*"), 404, says, gone}.check(t, a)
	}
	for accept, contentType := range map[string]string{"application/json;odata=minimalmetadata": jsonMinimal, "application/json;odata=nometadata": jsonNone} {
		r := a.Transact(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{"A":1}`, "If-Match", "*", "Accept", accept))
		assert.Contains(t, r.Text, "\r\nContent-Type: "+contentType+"\r\n", "a part that accepts %s", accept)
	}
}

// TestRecordedEmptyChangeSet holds that a change set without operations is carried out and answered like any other.
func TestRecordedEmptyChangeSet(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	r := a.Transact()
	if want := recordedBatch(r.Header.Get("x-ms-request-id")); r.StatusCode != 202 || r.Text != want {
		t.Errorf("%d\n%s\nwant 202\n%s", r.StatusCode, r.Text, want)
	}
	fixtureHeaders(t, r)
}

// TestRecordedEscapes holds that characters beyond ASCII come back as \u and four lower-case hexadecimal digits, in names and in
// values; one beyond the basic plane as two of them.
func TestRecordedEscapes(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const stored = `"\u90e8\u9580":"\ua015","Nachname":"Gr\u00f6\u00dfe \ud83d\ude00 ~"`
	for _, f := range []fixture{
		{"insert", "POST", "/Employees", `{"PartitionKey":"Sales","RowKey":"000123","部門":"ꀕ","Nachname":"Größe 😀 ~"}`, nil, 201,
			careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}", "Location": atContoso + "/Employees(PartitionKey='Sales',RowKey='000123')"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.etag":"{\etag}",` + keysAndTime + stored + `}`},
		{"get", "GET", "/Employees(PartitionKey='Sales',RowKey='000123')", "", nil, 200, careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}"}),
			`{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element","odata.etag":"{\etag}",` + keysAndTime + stored + `}`},
		{"query", "GET", "/Employees()", "", []string{"Accept", "application/json;odata=nometadata"}, 200, careful(map[string]string{"Content-Type": jsonNone}),
			`{"value":[{` + keysAndTime + stored + `}]}`},
	} {
		f.check(t, a)
	}
	accounts.Insert(a, "Vertrieb Süd", "1", "")
	if r := a.Want("GET", "/Employees(PartitionKey='Vertrieb%20S%C3%BCd',RowKey='1')", "", 200, ""); !strings.Contains(r.Text, `"PartitionKey":"Vertrieb S\u00fcd"`) {
		t.Errorf("a key: %s", r.Text)
	}
}

// TestRecordedOrderOfProperties holds that an inserted row keeps the order in which its properties were sent, that one that was
// upserted has them by name from the first time on, and that selected properties come by name, too, behind the keys.
func TestRecordedOrderOfProperties(t *testing.T) {
	const sent, asSent, byName = `{"b":1,"_c":2,"a":3,"B":4}`, `"b":1,"_c":2,"a":3,"B":4}`, `"B":4,"_c":2,"a":3,"b":1}`
	for _, c := range []struct{ method, target, body, want string }{
		{"POST", "/Employees", `{"PartitionKey":"p","RowKey":"r",` + sent[1:], asSent},
		{"PUT", "/Employees(PartitionKey='p',RowKey='r')", sent, byName},
		{"MERGE", "/Employees(PartitionKey='p',RowKey='r')", sent, byName},
	} {
		a := accounts.WithTable(t, simulator.Options{})
		a.Send(c.method, c.target, c.body)
		if r := a.Want("GET", "/Employees(PartitionKey='p',RowKey='r')", "", 200, ""); !strings.HasSuffix(r.Text, `Z",`+c.want) {
			t.Errorf("after %s: %s, want %s", c.method, r.Text, c.want)
		}
	}
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", `,`+sent[1:len(sent)-1])
	for _, target := range []string{"/Employees()?$select=b,RowKey,a,PartitionKey,_c", "/Employees(PartitionKey='p',RowKey='r')?$select=b,RowKey,a,PartitionKey,_c"} {
		r := a.Want("GET", target, "", 200, "")
		if !strings.Contains(r.Text, `&$select=b,RowKey,a,PartitionKey,_c"`) || !strings.Contains(r.Text, `,"PartitionKey":"p","RowKey":"r","_c":2,"a":3,"b":1}`) {
			t.Errorf("%s: %s", target, r.Text)
		}
	}
}

// TestRecordedSelectOfOneEntity holds that a point read names the selected properties in its odata.metadata.
func TestRecordedSelectOfOneEntity(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "Sales", "000123", `,"Name":"Jun Cao","Level":7`)
	const row, context = "/Employees(PartitionKey='Sales',RowKey='000123')", `{"odata.metadata":"` + atContoso + `/$metadata#Employees/@Element`
	says := careful(map[string]string{"Content-Type": jsonMinimal, "ETag": "{etag}"})
	for _, f := range []fixture{
		{"two that are there", "GET", row + "?%24select=Level%2CName", "", nil, 200, says, context + `&$select=Level,Name","odata.etag":"{\etag}","Level":7,"Name":"Jun Cao"}`},
		{"one that is not", "GET", row + "?$select=Name,Salary", "", nil, 200, says, context + `&$select=Name,Salary","odata.etag":"{\etag}","Name":"Jun Cao","Salary":null}`},
		{"without metadata", "GET", row + "?$select=Name", "", []string{"Accept", "application/json;odata=nometadata"}, 200,
			careful(map[string]string{"Content-Type": jsonNone, "ETag": "{etag}"}), `{"Name":"Jun Cao"}`},
	} {
		f.check(t, a)
	}
}

// TestRecordedPolicies holds how a table's policies come back: nothing at all, a policy without content, and times in full.
func TestRecordedPolicies(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const head = "\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`
	one := func(inside string) string {
		return `<SignedIdentifiers><SignedIdentifier><Id>auditors</Id>` + inside + `</SignedIdentifier></SignedIdentifiers>`
	}
	isXML := map[string]string{"Content-Type": "application/xml"}
	for _, c := range []struct{ name, sent, want string }{
		{"no policy was ever set", "-", `<SignedIdentifiers />`},
		{"no body", "", `<SignedIdentifiers />`},
		{"no policies", `<SignedIdentifiers />`, `<SignedIdentifiers />`},
		{"a policy without content", one(`<AccessPolicy />`), one("")},
		{"a policy that says nothing", one(`<AccessPolicy><Start></Start><Expiry /><Permission></Permission></AccessPolicy>`), one("")},
		{"a policy of times alone", one(`<AccessPolicy><Start>2026-03-01</Start><Expiry>2026-04-01T10:00Z</Expiry></AccessPolicy>`),
			one(`<AccessPolicy><Start>2026-03-01T00:00:00.0000000Z</Start><Expiry>2026-04-01T10:00:00.0000000Z</Expiry></AccessPolicy>`)},
		{"a policy of rights alone", one(`<AccessPolicy><Permission>rad</Permission></AccessPolicy>`), one(`<AccessPolicy><Permission>rad</Permission></AccessPolicy>`)},
	} {
		if c.sent != "-" {
			fixture{"set: " + c.name, "PUT", "/Employees?comp=acl", c.sent, nil, 204, nil, ""}.check(t, a)
		}
		fixture{"get: " + c.name, "GET", "/Employees?comp=acl", "", nil, 200, isXML, head + c.want}.check(t, a)
	}
}

// TestRecordedMessages holds the words of a refusal that clients have come to know, a slip of the pen in it.
func TestRecordedMessages(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	fixture{"a table's name beyond ASCII", "POST", "/Tables", `{"TableName":"Größe"}`, nil, 400, careful(map[string]string{"Content-Type": jsonMinimal}),
		refusal("InvalidResourceName", "The specifed resource name contains invalid characters.")}.check(t, a)
}

// TestRecordedTimesOfAChangeSet holds that all inserts of a change set have one timestamp and ETag, and all its other changes one,
// upserts of rows that were not there among these.
func TestRecordedTimesOfAChangeSet(t *testing.T) {
	for _, orderless := range []bool{false, true} {
		a := accounts.WithTable(t, simulator.Options{})
		if orderless {
			a.Simulator.Clock().Stand()
		}
		at := func(rk string) string { return "(PartitionKey='p',RowKey='" + rk + "')" }
		put := func(rk string) string { return probe.Part("PUT", at(rk), `{"A":1}`) }
		r := a.Transact(put("1"), put("2"), put("3"))
		if tags := partETags(r.Text); len(tags) != 3 || len(distinct(tags)) != 1 {
			t.Fatalf("three upserts: %q", tags)
		}
		r = a.Transact(put("2"), probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"4"}`, "Prefer", "return-no-content"), probe.Part("MERGE", at("3"), `{"B":1}`, "If-Match", "*"),
			probe.Part("DELETE", at("1"), "", "If-Match", "*"), put("6"), probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"5"}`, "Prefer", "return-no-content"))
		byRow := map[string]string{}
		for _, row := range a.Rows("Employees") {
			byRow[row.Row] = row.ETag
		}
		tags := partETags(r.Text)
		if want := []string{byRow["2"], byRow["4"], byRow["3"], byRow["6"], byRow["5"]}; !slices.Equal(tags, want) || len(byRow) != 5 {
			t.Fatalf("the answer says %q, the rows %q", tags, want)
		}
		if byRow["4"] != byRow["5"] || byRow["2"] != byRow["3"] || !orderless && (byRow["2"] != byRow["6"] || byRow["2"] == byRow["4"]) {
			t.Errorf("orderless %v: %v", orderless, byRow)
		}
	}
}

// TestETagsOfOneRowDiffer holds what conditions rely on: however rows share their ETags, none has the same one twice.
func TestETagsOfOneRowDiffer(t *testing.T) {
	for _, orderless := range []bool{false, true} {
		a := accounts.WithTable(t, simulator.Options{})
		if orderless {
			a.Simulator.Clock().Stand()
		}
		seen := map[string]bool{}
		for i := range 20 {
			rows := []string{"1", "2", "3"}[:1+i%3]
			var parts []string
			for _, rk := range rows {
				if i%4 == 3 && seen["made "+rk] {
					parts = append(parts, probe.Part("DELETE", "(PartitionKey='p',RowKey='"+rk+"')", "", "If-Match", "*"))
					delete(seen, "made "+rk)
					continue
				}
				parts = append(parts, probe.Part("PUT", "(PartitionKey='p',RowKey='"+rk+"')", `{"A":1}`))
				seen["made "+rk] = true
			}
			a.Transact(parts...)
			for _, row := range a.Rows("Employees") {
				if !slices.Contains(rows, row.Row) {
					continue
				}
				if key := row.Row + " " + row.ETag; seen[key] {
					t.Fatalf("orderless %v: row %s has the ETag %s again", orderless, row.Row, row.ETag)
				} else {
					seen[key] = true
				}
			}
		}
	}
}

// partETags are the ETags of a transaction's answer, in the order of its parts.
func partETags(text string) (tags []string) {
	for line := range strings.SplitSeq(text, "\r\n") {
		if tag, ok := strings.CutPrefix(line, "ETag: "); ok {
			tags = append(tags, tag)
		}
	}
	return tags
}

func distinct(all []string) []string {
	set := map[string]bool{}
	for _, one := range all {
		set[one] = true
	}
	return slices.Collect(maps.Keys(set))
}
