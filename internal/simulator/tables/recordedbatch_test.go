package tables_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// recordedBatch is a whole answer to a transaction: CRLF everywhere, an empty line behind a part without a body, the body
// and a line's end behind one that has one.
func recordedBatch(id string, parts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--batchresponse_%s\r\nContent-Type: multipart/mixed; boundary=changesetresponse_%s\r\n\r\n", id, id)
	for _, p := range parts {
		fmt.Fprintf(&b, "--changesetresponse_%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n%s\r\n", id, p)
	}
	fmt.Fprintf(&b, "--changesetresponse_%s--\r\n--batchresponse_%s--\r\n", id, id)
	return b.String()
}

const careless = "X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"

func TestRecordedTransactions(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	for _, rk := range []string{"1", "2", "3", "4"} {
		accounts.Insert(a, "Sales", rk, "")
	}
	at := func(rk string) string { return "(PartitionKey='Sales',RowKey='" + rk + "')" }
	r := a.Transact(
		probe.Part("POST", "", `{"PartitionKey":"Sales","RowKey":"5"}`, "Content-ID", "1", "Prefer", "return-no-content"),
		probe.Part("DELETE", at("1"), "", "Content-ID", "2", "If-Match", "*"),
		probe.Part("PUT", at("2"), `{"A":1}`, "Content-ID", "3", "If-Match", "*"),
		probe.Part("MERGE", at("3"), `{"A":1}`, "Content-ID", "4", "If-Match", "*"),
		probe.Part("PUT", at("4"), `{"A":1}`, "Content-ID", "5"),
		probe.Part("MERGE", at("6"), `{"A":1}`, "Content-ID", "6"))
	etags := map[string]string{}
	for _, row := range a.Rows("Employees") {
		etags[row.Row] = row.ETag
	}
	const made = "http://contoso.table.sim.test/Employees(PartitionKey='Sales',RowKey='5')"
	changed := func(n int, rk string) string {
		return fmt.Sprintf("HTTP/1.1 204 No Content\r\nContent-ID: %d\r\n%sDataServiceVersion: 1.0;\r\nETag: %s\r\n\r\n", n, careless, etags[rk])
	}
	want := recordedBatch(r.Header.Get("x-ms-request-id"),
		"HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n"+careless+"Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: "+made+
			"\r\nDataServiceId: "+made+"\r\nETag: "+etags["5"]+"\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-ID: 2\r\n"+careless+"DataServiceVersion: 1.0;\r\n\r\n",
		changed(3, "2"), changed(4, "3"), changed(5, "4"), changed(6, "6"))
	if r.StatusCode != 202 || r.Text != want {
		t.Errorf("%d\n%s\nwant\n%s", r.StatusCode, r.Text, want)
	}
	fixtureHeaders(t, r)
}

func TestRecordedRefusalOfATransaction(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "Sales", "1", "")
	const old = `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`
	put := func(rk, id string, headers ...string) string {
		return probe.Part("PUT", "(PartitionKey='Sales',RowKey='"+rk+"')", `{"A":1}`, append([]string{"Content-ID", id}, headers...)...)
	}
	for _, c := range []struct {
		name, index, id string
		parts           []string
	}{
		{"alone", "", "1", []string{put("1", "1", "If-Match", old)}},
		{"the third", "2:", "3", []string{put("2", "1"), put("3", "2"), put("1", "3", "If-Match", old), put("4", "4")}},
	} {
		r := a.Transact(c.parts...)
		id := r.Header.Get("x-ms-request-id")
		body := strings.NewReplacer("{id}", id, "{now}", a.Clock().Now().Format(protocol.TimeFormat)).
			Replace(refusal("UpdateConditionNotSatisfied", c.index+"The update condition specified in the request was not satisfied."))
		want := recordedBatch(id, "HTTP/1.1 412 Precondition Failed\r\nContent-ID: "+c.id+"\r\n"+careless+"DataServiceVersion: 3.0;\r\nContent-Type: "+jsonMinimal+"\r\n\r\n"+body)
		if r.StatusCode != 202 || r.Text != want {
			t.Errorf("%s: %d\n%s\nwant\n%s", c.name, r.StatusCode, r.Text, want)
		}
		fixtureHeaders(t, r)
	}
}

// fixtureHeaders checks the headers around a transaction's answer.
func fixtureHeaders(t *testing.T, r accounts.Reply) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type":  "multipart/mixed; boundary=batchresponse_" + r.Header.Get("x-ms-request-id"),
		"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Preference-Applied": "", "ETag": "",
	} {
		assert.Equal(t, r.Header.Get(name), want, name)
	}
}
