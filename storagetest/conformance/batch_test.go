package conformance

import (
	"fmt"
	"strings"
)

func batchCases() []script {
	return []script{
		{"a transaction of all operations", mixedBatch},
		{"transactions that fail", failingBatches},
		{"transactions that are no group", badGroups},
		{"one operation alone", loneOperations},
		{"a query in a batch", batchQuery},
		{"a hundred operations", hundred},
		{"invalid batches", badBatches},
	}
}

var batchType = []string{"Content-Type", "multipart/mixed; boundary=batch_1"}

// op is one operation of a transaction; path is that of a request of its own.
func (w *world) op(method, path, body string, headers ...string) string {
	text := method + " " + w.endpoint(tables) + path + " HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	if body != "" {
		text += "Content-Type: application/json\r\n"
	}
	return text + "\r\n" + body + "\r\n"
}

// changeSet is the body of a transaction.
func changeSet(ops ...string) string {
	var b strings.Builder
	b.WriteString("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n")
	for _, op := range ops {
		b.WriteString("--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + op)
	}
	b.WriteString("--changeset_1--\r\n--batch_1--\r\n")
	return b.String()
}

func (w *world) transact(name, want string, ops ...string) reply {
	w.Helper()
	return w.do(tables, name, want, "POST", "/$batch", changeSet(ops...), batchType...)
}

func (w *world) insertOp(table, pk, rk, rest string, headers ...string) string {
	return w.op("POST", "/"+table, `{"PartitionKey":`+quoted(pk)+`,"RowKey":`+quoted(rk)+rest+`}`, headers...)
}

// changeOp changes a row; its body names the keys too, as the SDK's do.
func (w *world) changeOp(method, table, pk, rk, properties string, headers ...string) string {
	if properties != "" {
		properties = "," + properties
	}
	return w.op(method, entityPath(table, pk, rk), `{"PartitionKey":`+quoted(pk)+`,"RowKey":`+quoted(rk)+properties+`}`, headers...)
}

func mixedBatch(w *world) {
	name := w.newTable()
	var etag string
	for _, rk := range []string{"replaced", "merged", "upserted", "deleted", "right"} {
		etag = w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"`+rk+`","A":1,"B":1}`).Header.Get("ETag")
	}
	w.transact("all", "202 [201, 204]",
		w.insertOp(name, "p", "echoed", `,"A":1`, "Content-ID", "1"),
		w.insertOp(name, "p", "quiet", `,"A":1`, "Content-ID", "2", "Prefer", "return-no-content"),
		w.changeOp("PUT", name, "p", "replaced", `"A":2`, "Content-ID", "3", "If-Match", "*"),
		w.changeOp("MERGE", name, "p", "merged", `"A":2`, "Content-ID", "4", "If-Match", "*"),
		w.changeOp("PATCH", name, "p", "right", `"A":2`, "Content-ID", "5", "If-Match", etag),
		w.changeOp("PUT", name, "p", "upserted", `"A":2`, "Content-ID", "6"),
		w.changeOp("PUT", name, "p", "new", `"A":2`, "Content-ID", "7"),
		w.changeOp("MERGE", name, "p", "newer", `"A":2`, "Content-ID", "8"),
		w.op("DELETE", entityPath(name, "p", "deleted"), "", "Content-ID", "9", "If-Match", "*"))
	w.do(tables, "what they made", "200", "GET", "/"+name+"()", "")
	w.transact("keys with quotes", "202 [204]",
		w.changeOp("PUT", name, "O'B", "a'b", `"A":1`), w.insertOp(name, "O'B", "c'd", "", "Prefer", "return-no-content"))
	w.note("quotes stored", "a'b c'd", strings.Join(w.rows(name, "PartitionKey eq 'O''B'"), " "))
}

func failingBatches(w *world) {
	name := w.newTable()
	w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"taken","A":1}`)
	put := func(pk, rk string) string { return w.changeOp("PUT", name, pk, rk, `"A":1`, "Content-ID", rk) }
	star := []string{"If-Match", "*", "Content-ID", "x"}
	w.transact("a row that exists", "202 [409 EntityAlreadyExists at 1]", put("p", "1"), w.insertOp(name, "p", "taken", "", "Content-ID", "2"), put("p", "3"))
	w.transact("a row that exists, first", "202 [409 EntityAlreadyExists at 0]", w.insertOp(name, "p", "taken", ""), put("p", "3"))
	w.transact("a row that is not there", "202 [404 ResourceNotFound at 2]", put("p", "1"), put("p", "2"), w.changeOp("PUT", name, "p", "no", ``, star...))
	w.transact("merge of a row that is not there", "202 [404 ResourceNotFound at 1]", put("p", "1"), w.changeOp("MERGE", name, "p", "no", ``, star...))
	w.transact("delete of a row that is not there", "202 [404 ResourceNotFound at 1]", put("p", "1"), w.op("DELETE", entityPath(name, "p", "no"), "", star...))
	w.transact("another ETag", "202 [412 UpdateConditionNotSatisfied at 1]", put("p", "1"), w.changeOp("PUT", name, "p", "taken", ``, "If-Match", staleETag))
	w.transact("delete for another ETag", "202 [412 UpdateConditionNotSatisfied at 0]", w.op("DELETE", entityPath(name, "p", "taken"), "", "If-Match", staleETag), put("p", "1"))
	w.transact("a row twice", "202 [400 InvalidDuplicateRow at 1]", put("p", "1"), w.insertOp(name, "p", "1", ""))
	w.transact("no table", "202 [404 TableNotFound at 0]", w.changeOp("PUT", noTable, "p", "1", ``), w.changeOp("PUT", noTable, "p", "2", ``))
	w.note("all or nothing", "taken", strings.Join(w.rows(name, ""), " "))
}

func badGroups(w *world) {
	name, other := w.newTable(), w.newTable()
	put := func(pk, rk string) string { return w.changeOp("PUT", name, pk, rk, `"A":1`, "Content-ID", rk) }
	w.transact("two partitions", "202 [400 CommandsInBatchActOnDifferentPartitions at 1]", put("p", "1"), put("q", "2"))
	w.transact("two tables", "202 [400 CommandsInBatchActOnDifferentPartitions at 1]", put("p", "1"), w.changeOp("PUT", other, "p", "2", ``))
	w.transact("an invalid value", "202 [400 InvalidInput at 1]", put("p", "1"), w.insertOp(name, "p", "2", `,"A":"x","A@odata.type":"Edm.Guid"`))
	w.note("nothing stored", " and ", strings.Join(w.rows(name, ""), " ")+" and "+strings.Join(w.rows(other, ""), " "))
}

func loneOperations(w *world) {
	name := w.newTable()
	w.transact("insert", "202 [204]", w.insertOp(name, "p", "1", "", "Prefer", "return-no-content", "Content-ID", "1"))
	w.transact("insert again", "202 [409 EntityAlreadyExists]", w.insertOp(name, "p", "1", "", "Content-ID", "1"))
	w.transact("another ETag", "202 [412 UpdateConditionNotSatisfied]", w.changeOp("PUT", name, "p", "1", ``, "If-Match", staleETag, "Content-ID", "1"))
	w.transact("a row that is not there", "202 [404 ResourceNotFound]", w.changeOp("PUT", name, "p", "2", ``, "If-Match", "*"))
	w.transact("no table", "202 [404 TableNotFound]", w.changeOp("PUT", noTable, "p", "1", ``))
	w.transact("delete", "202 [204]", w.op("DELETE", entityPath(name, "p", "1"), "", "If-Match", "*", "Content-ID", "1"))
}

func batchQuery(w *world) {
	name := w.newTable()
	w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r","A":1}`)
	query := func(path string) string {
		return "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + w.op("GET", path, "") + "--batch_1--\r\n"
	}
	w.do(tables, "one entity", "202 [200]", "POST", "/$batch", query(entityPath(name, "p", "r")), batchType...)
}

func hundred(w *world) {
	name := w.newTable()
	many := func(n int) []string {
		ops := make([]string, n)
		for i := range ops {
			ops[i] = w.op("PUT", entityPath(name, fmt.Sprint("p", n), fmt.Sprintf("r%03d", i)), `{"A":1}`)
		}
		return ops
	}
	w.transact("100", "202 [204]", many(100)...)
	w.note("100 stored", "100", len(w.rows(name, "PartitionKey eq 'p100'")))
	w.transact("101", "202 [400 InvalidInput at 99]", many(101)...)
	w.note("101 not stored", "0", len(w.rows(name, "PartitionKey eq 'p101'")))
}

func badBatches(w *world) {
	name := w.newTable()
	good := changeSet(w.changeOp("PUT", name, "p", "r", ``))
	w.do(tables, "no operations", "202 []", "POST", "/$batch", changeSet(), batchType...)
	w.do(tables, "no body", "400 InvalidInput", "POST", "/$batch", "", batchType...)
	w.do(tables, "another type", "400 InvalidInput", "POST", "/$batch", good, "Content-Type", "application/json")
	w.do(tables, "nonsense", "400 InvalidInput", "POST", "/$batch", "nonsense", batchType...)
	w.do(tables, "cut off", "400 InvalidInput", "POST", "/$batch", good[:len(good)/2], batchType...)
	w.note("nothing stored", "", strings.Join(w.rows(name, ""), " "))
}
