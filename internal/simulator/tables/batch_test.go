package tables_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestTransactionsThroughTheSDK(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	ctx := probe.Context(t)
	client := a.Client().NewClient("Employees")
	entity := func(row string, age int) []byte {
		return fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q,"Age":%d}`, row, age)
	}
	_, err := client.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: entity("1", 1)}, {ActionType: aztables.TransactionTypeInsertReplace, Entity: entity("2", 2)},
		{ActionType: aztables.TransactionTypeInsertMerge, Entity: entity("3", 3)}}, nil)
	assert.Check(t, err)
	_, err = client.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeDelete, Entity: entity("1", 0)}, {ActionType: aztables.TransactionTypeUpdateReplace, Entity: entity("2", 22)},
		{ActionType: aztables.TransactionTypeAdd, Entity: entity("3", 0)}}, nil)
	assert.Error(t, err, "a transaction that must fail did not")
	if rows := a.Rows("Employees"); len(rows) != 3 || rows[0].Get("Age") != edm.Int32(1) || rows[1].Get("Age") != edm.Int32(2) {
		t.Errorf("a failed transaction changed something: %#v", rows)
	}
}

func TestTransactionAnswersAsRecorded(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "old", "")
	r := a.Transact(
		probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"new"}`, "Content-ID", "1", "Prefer", "return-no-content"),
		probe.Part("DELETE", "(PartitionKey='p',RowKey='old')", "", "Content-ID", "2", "If-Match", "*"),
		probe.Part("MERGE", "(PartitionKey='p',RowKey='more')", `{"A":1}`, "Content-ID", "3"))
	id := r.Header.Get("x-ms-request-id")
	const head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nContent-ID: %d\r\n" +
		"X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"
	const address = "http://contoso.table.sim.test/Employees(PartitionKey='p',RowKey='new')"
	rows := a.Rows("Employees")
	inner := "--changesetresponse_" + id
	want := "--batchresponse_" + id + "\r\nContent-Type: multipart/mixed; boundary=changesetresponse_" + id + "\r\n\r\n" +
		inner + "\r\n" + fmt.Sprintf(head, 1) + "Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: " + address +
		"\r\nDataServiceId: " + address + "\r\nETag: " + rows[1].ETag + "\r\n\r\n\r\n" +
		inner + "\r\n" + fmt.Sprintf(head, 2) + "DataServiceVersion: 1.0;\r\n\r\n\r\n" +
		inner + "\r\n" + fmt.Sprintf(head, 3) + "DataServiceVersion: 1.0;\r\nETag: " + rows[0].ETag + "\r\n\r\n\r\n" +
		inner + "--\r\n--batchresponse_" + id + "--\r\n"
	if r.StatusCode != 202 || r.Text != want || r.Header.Get("Content-Type") != "multipart/mixed; boundary=batchresponse_"+id {
		t.Errorf("%d %q\n%s\nwant\n%s", r.StatusCode, r.Header.Get("Content-Type"), r.Text, want)
	}
}

func TestFailedTransactions(t *testing.T) {
	put := func(pk, rk, body string) string {
		return probe.Part("PUT", "(PartitionKey='"+pk+"',RowKey='"+rk+"')", body)
	}
	many := func(n int) (parts string) {
		for i := range n {
			parts += put("p", fmt.Sprint("r", i), "{}")
		}
		return parts
	}
	for _, c := range []struct{ name, parts, want, message string }{
		{"taken", put("p", "1", "{}") + probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"taken"}`), "409 EntityAlreadyExists", "1:The specified"},
		{"taken alone", probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"taken"}`), "409 EntityAlreadyExists", "The specified"},
		{"lost", put("p", "1", "{}") + put("p", "2", "{}") + probe.Part("PATCH", "(PartitionKey='p',RowKey='0')", "{}", "If-Match", "*"), "404 ResourceNotFound", "2:The specified"},
		{"changed", probe.Part("DELETE", "(PartitionKey='p',RowKey='taken')", "", "If-Match", `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`) + put("p", "2", "{}"), "412 UpdateConditionNotSatisfied", "0:The update"},
		{"twice", put("p", "1", "{}") + probe.Part("DELETE", "(PartitionKey='p',RowKey='1')", "", "If-Match", "*"), "400 InvalidDuplicateRow", "1:The batch"},
		{"partitions", put("p", "1", "{}") + put("p", "2", "{}") + put("q", "3", "{}"), "400 CommandsInBatchActOnDifferentPartitions", "2:All"},
		{"tables", put("p", "1", "{}") + strings.ReplaceAll(put("p", "2", "{}"), "Employees", "Departments"), "400 CommandsInBatchActOnDifferentPartitions", "1:All"},
		{"names of tables in another case", put("p", "1", "{}") + strings.ReplaceAll(put("p", "2", "{}"), "Employees", "EMPLOYEES"), "", ""},
		{"100", many(100), "", ""},
		{"101", many(101), "400 InvalidInput", "99:The batch request operation exceeds"},
		{"no table", strings.ReplaceAll(put("p", "1", "{}"), "Employees", "Departments"), "404 TableNotFound", "The table"},
		{"value", put("p", "1", "{}") + put("p", "2", `{"A@odata.type":"Edm.Int64","A":"abc"}`), "400 InvalidInput", "1:An error"},
		{"no condition", probe.Part("DELETE", "(PartitionKey='p',RowKey='1')", ""), "400 MissingRequiredHeader", "An HTTP"},
		{"an undoubled quote", put("p", "O'Brien", "{}"), "400 InvalidInput", "Bad Request"},
		{"a doubled quote", put("p", "O%27%27Brien", "{}"), "", ""},
		{"another method", probe.Part("HEAD", "(PartitionKey='p',RowKey='1')", ""), "405 MethodNotAllowed", "The requested"},
	} {
		a := accounts.WithTable(t, simulator.Options{})
		a.Want(http.MethodPost, "/Tables", `{"TableName":"Other"}`, 201, "")
		accounts.Insert(a, "p", "taken", "")
		before := a.Rows("Employees")[0].ETag
		r := a.Transact(c.parts)
		if c.want == "" {
			if r.StatusCode != 202 || strings.Contains(r.Text, "odata.error") || len(a.Rows("Employees")) == 1 {
				t.Errorf("%s: %d %s", c.name, r.StatusCode, accounts.Clip(r.Text))
			}
			continue
		}
		status, code, _ := strings.Cut(c.want, " ")
		if r.StatusCode != 202 || strings.Count(r.Text, "HTTP/1.1 ") != 1 || !strings.Contains(r.Text, "HTTP/1.1 "+status) ||
			!strings.Contains(r.Text, `"code":"`+code+`","message":{"lang":"en-US","value":"`+c.message) {
			t.Errorf("%s: %d %s, want %s %s", c.name, r.StatusCode, accounts.Clip(r.Text), c.want, c.message)
		}
		if rows := a.Rows("Employees"); len(rows) != 1 || rows[0].ETag != before {
			t.Errorf("%s: the failed transaction changed something", c.name)
		}
	}
}

func TestMalformedTransactions(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	good := probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", "{}"))
	const contentType = "multipart/mixed; boundary=b"
	for name, c := range map[string]struct{ contentType, body string }{
		"no boundary": {"multipart/mixed", good}, "another type": {"application/json", good}, "another boundary": {"multipart/mixed; boundary=x", good},
		"empty": {contentType, ""}, "cut in half": {contentType, good[:len(good)/2]}, "no end": {contentType, strings.TrimSuffix(good, "--b--\r\n")},
		"no inner end": {contentType, strings.Replace(good, "--c--\r\n", "", 1)}, "more after the end": {contentType, good + "more"},
		"two change sets": {contentType, strings.Replace(good, "--b--", strings.TrimSuffix(good, "\r\n"), 1)},
		"no request line": {contentType, strings.Replace(good, "PUT /Employees(PartitionKey='p',RowKey='r') HTTP/1.1", "PUT", 1)},
		"no method":       {contentType, strings.Replace(good, "PUT /", "/", 1)}, "no slash": {contentType, strings.Replace(good, "/Employees", "Employees", 1)},
		"a part of another type": {contentType, strings.Replace(good, "application/http", "application/json", 1)},
		"a header without colon": {contentType, strings.Replace(good, "Content-Transfer-Encoding: binary", "nonsense", 1)},
		"a query in the set":     {contentType, probe.Batch(probe.Part("GET", "()", ""))},
		"a body cut short":       {contentType, probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", "{}", "Content-Length", "3"))},
		"a body grown longer":    {contentType, probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", "{}", "Content-Length", "1"))},
	} {
		r := a.Send(http.MethodPost, "/$batch", c.body, "Content-Type", c.contentType)
		if r.Code(t) != "400 InvalidInput" {
			t.Errorf("%s: %d %s", name, r.StatusCode, accounts.Clip(r.Text))
		}
	}
	assert.Equal(t, len(a.Rows("Employees")), 0, "rows were written")
	a.Want(http.MethodGet, "/$batch", "", 405, "MethodNotAllowed")
	big := probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", "{}") + strings.Repeat(" ", 4<<20))
	a.Want(http.MethodPost, "/$batch", big, 413, "RequestBodyTooLarge", "Content-Type", contentType)
}

func TestTransactionsOfOtherShapes(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	body := probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{"A":1}`, "Content-Length", "7") + probe.Part("POST", "(PartitionKey='p',RowKey='s')", "{}", "X-HTTP-Method", "MERGE"))
	for name, text := range map[string]string{
		"CRLF": body, "LF": strings.ReplaceAll(body, "\r\n", "\n"), "preamble": "hello\r\n" + body, "no last line ending": strings.TrimRight(body, "\r\n"),
		"absolute": strings.ReplaceAll(body, " /Employees", " http://contoso.table.sim.test/Employees"),
		"format":   strings.ReplaceAll(body, "'r')", "'r')?$format=application%2Fjson"),
	} {
		r := a.Send(http.MethodPost, "/$batch", text, "Content-Type", `multipart/mixed; boundary="b"`)
		if r.StatusCode != 202 || strings.Count(r.Text, "HTTP/1.1 204") != 2 {
			t.Errorf("%s: %d %s", name, r.StatusCode, accounts.Clip(r.Text))
		}
	}
	r := a.Transact(probe.Part("POST", "", `{"PartitionKey":"p","RowKey":"echo","A":5}`, "Prefer", "return-content"))
	if !strings.Contains(r.Text, "HTTP/1.1 201 Created") || !strings.Contains(r.Text, `"A":5}`) {
		t.Error(r.Text)
	}
}

func TestAQueryInABatch(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", `,"A":1`)
	body := "--b\r\nContent-Type: application/http\r\n\r\nGET /Employees()?$filter=A%20eq%201 HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n\r\n--b--\r\n"
	r := a.Send(http.MethodPost, "/$batch", body, "Content-Type", "multipart/mixed; boundary=b")
	if r.StatusCode != 202 || !strings.Contains(r.Text, "HTTP/1.1 200 OK") || !strings.Contains(r.Text, `"RowKey":"r"`) {
		t.Error(r.StatusCode, r.Text)
	}
}
