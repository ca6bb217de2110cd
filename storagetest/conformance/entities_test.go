package conformance

import "strings"

func entityCases() []script {
	return []script{
		{"insert", inserting},
		{"get and project", getting},
		{"replace", func(w *world) { updating(w, "PUT") }},
		{"merge", func(w *world) { updating(w, "PATCH") }},
		{"methods in disguise", tunnelling},
		{"upsert", upserting},
		{"delete", deleting},
		{"keys of all kinds", keysOfAllKinds},
		{"names and nulls", namesAndNulls},
	}
}

// noTable is a table that nobody makes.
const noTable = "NoSuchTable"

const staleETag = `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`

func inserting(w *world) {
	name := w.newTable()
	entity := func(rk string) string {
		return `{"PartitionKey":"p","RowKey":"` + rk + `","Age":39,"Name":"Ann","Big":"5","Big@odata.type":"Edm.Int64"}`
	}
	at := "/" + name
	w.do(tables, "plain", "201", "POST", at, entity("1"))
	w.do(tables, "echo", "201", "POST", at, entity("2"), "Prefer", "return-content")
	w.do(tables, "no content", "204", "POST", at, entity("3"), "Prefer", "return-no-content")
	w.do(tables, "echo with full metadata", "201", "POST", at, entity("4"), "Accept", "application/json;odata=fullmetadata")
	w.do(tables, "echo without metadata", "201", "POST", at, entity("5"), "Accept", "application/json;odata=nometadata")
	w.do(tables, "again", "409 EntityAlreadyExists", "POST", at, entity("1"))
	w.do(tables, "again, no content wanted", "409 EntityAlreadyExists", "POST", at, entity("1"), "Prefer", "return-no-content")
	w.do(tables, "with parentheses", "204", "POST", at+"()", entity("6"), "Prefer", "return-no-content")
	w.do(tables, "no table", "404 TableNotFound", "POST", "/"+noTable, entity("1"))
	w.do(tables, "no PartitionKey", "400 PropertiesNeedValue", "POST", at, `{"RowKey":"r"}`)
	w.do(tables, "no RowKey", "400 PropertiesNeedValue", "POST", at, `{"PartitionKey":"p"}`)
	w.do(tables, "a null RowKey", "400 PropertiesNeedValue", "POST", at, `{"PartitionKey":"p","RowKey":null}`)
	w.do(tables, "a number as RowKey", "400 InvalidInput", "POST", at, `{"PartitionKey":"p","RowKey":1}`)
	w.do(tables, "no object", "400 InvalidInput", "POST", at, `["p"]`)
	w.do(tables, "cut off", "400 InvalidInput", "POST", at, `{"PartitionKey":"p","RowKey":"r"`)
	w.do(tables, "an object inside", "400 InvalidInput", "POST", at, `{"PartitionKey":"p","RowKey":"r","A":{}}`)
	w.do(tables, "an array inside", "400 InvalidInput", "POST", at, `{"PartitionKey":"p","RowKey":"r","A":[1]}`)
	w.do(tables, "no such type", "400 InvalidInput", "POST", at, `{"PartitionKey":"p","RowKey":"r","A":"1","A@odata.type":"Edm.Decimal"}`)
	w.do(tables, "Timestamp of the caller's", "204", "POST", at, `{"PartitionKey":"p","RowKey":"7","Timestamp":"2001-01-01T00:00:00Z"}`, "Prefer", "return-no-content")
	w.do(tables, "which is not taken", "200", "GET", entityPath(name, "p", "7"), "")
}

func getting(w *world) {
	name := w.newTable()
	w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r","Age":39,"Name":"Ann","Big":"5","Big@odata.type":"Edm.Int64"}`)
	at := entityPath(name, "p", "r")
	w.do(tables, "minimal metadata", "200", "GET", at, "")
	w.do(tables, "full metadata", "200", "GET", at, "", "Accept", "application/json;odata=fullmetadata")
	w.do(tables, "no metadata", "200", "GET", at, "", "Accept", "application/json;odata=nometadata")
	w.do(tables, "some properties", "200", "GET", at+"?$select=Name,PartitionKey", "")
	w.do(tables, "a typed property", "200", "GET", at+"?$select=Big", "")
	w.do(tables, "a property that is not there", "200", "GET", at+"?$select=Name,Nothing", "")
	w.do(tables, "keys the other way round", "200", "GET", "/"+name+"(RowKey='r',PartitionKey='p')", "")
	w.do(tables, "no such row", "404 ResourceNotFound", "GET", entityPath(name, "p", "other"), "")
	w.do(tables, "no such partition", "404 ResourceNotFound", "GET", entityPath(name, "other", "r"), "")
	w.do(tables, "keys in another case", "404 ResourceNotFound", "GET", entityPath(name, "P", "R"), "")
	w.do(tables, "no table", "404 TableNotFound", "GET", entityPath(noTable, "p", "r"), "")
	w.do(tables, "client's request id", "200", "GET", at, "", "x-ms-client-request-id", "mine")
}

// updating is what replace and merge have in common; what they make of the entity, the get after each shows.
func updating(w *world, method string) {
	name := w.newTable()
	first := w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r","Zip":"1","Age":1,"Kept":true}`)
	at := entityPath(name, "p", "r")
	w.do(tables, "right ETag", "204", method, at, `{"PartitionKey":"p","RowKey":"r","Zip":"2","Name":"new"}`, "If-Match", first.Header.Get("ETag"))
	second := w.do(tables, "what it made", "200", "GET", at, "")
	w.note("the ETag has changed", "true", first.Header.Get("ETag") != second.Header.Get("ETag"))
	w.do(tables, "the ETag before", "412 UpdateConditionNotSatisfied", method, at, `{"Age":3}`, "If-Match", first.Header.Get("ETag"))
	w.do(tables, "an old ETag", "412 UpdateConditionNotSatisfied", method, at, `{"Age":3}`, "If-Match", staleETag)
	w.do(tables, "any ETag", "204", method, at, `{"Age":4}`, "If-Match", "*")
	w.do(tables, "after any ETag", "200", "GET", at, "")
	w.do(tables, "no ETag", "204", method, at, `{"Age":5}`)
	w.do(tables, "after no ETag", "200", "GET", at, "")
	w.do(tables, "no such row", "404 ResourceNotFound", method, entityPath(name, "p", "other"), `{"Age":5}`, "If-Match", "*")
	w.do(tables, "no such row for an ETag", "404 ResourceNotFound", method, entityPath(name, "p", "other"), `{"Age":5}`, "If-Match", staleETag)
	w.do(tables, "no table", "404 TableNotFound", method, entityPath(noTable, "p", "r"), `{"Age":5}`, "If-Match", "*")
	w.do(tables, "no table to upsert in", "404 TableNotFound", method, entityPath(noTable, "p", "r"), `{"Age":5}`)
	w.do(tables, "other keys in the body", "400 InvalidInput", method, at, `{"PartitionKey":"q","RowKey":"r","Age":5}`, "If-Match", "*")
	w.do(tables, "an invalid ETag", "400 InvalidInput", method, at, `{"Age":6}`, "If-Match", "nonsense")
	w.do(tables, "an ETag that no row can have", "412 UpdateConditionNotSatisfied", method, at, `{"Age":6}`, "If-Match", `W/"wrong"`)
	w.do(tables, "If-None-Match", "400 InvalidInput", method, at, `{"Age":5}`, "If-None-Match", "*")
	w.do(tables, "a null", "204", method, at, `{"Age":null,"Name":"last"}`, "If-Match", "*")
	w.do(tables, "after a null", "200", "GET", at, "")
	w.do(tables, "nothing", "204", method, at, `{}`, "If-Match", "*")
	w.do(tables, "after nothing", "200", "GET", at, "")
}

func tunnelling(w *world) {
	name := w.newTable()
	w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r","A":1}`)
	at := entityPath(name, "p", "r")
	w.do(tables, "MERGE", "204", "MERGE", at, `{"B":2}`, "If-Match", "*")
	w.do(tables, "POST as MERGE", "204", "POST", at, `{"C":3}`, "If-Match", "*", "X-HTTP-Method", "MERGE")
	w.do(tables, "all three", "200", "GET", at, "")
}

func upserting(w *world) {
	name := w.newTable()
	for _, method := range []string{"PUT", "PATCH", "MERGE"} {
		at := entityPath(name, "p", method)
		w.do(tables, method+" of nothing", "204", method, at, `{"A":1,"B":"x"}`)
		w.do(tables, method+" made", "200", "GET", at, "")
		w.do(tables, method+" again", "204", method, at, `{"B":"y"}`)
		w.do(tables, method+" made again", "200", "GET", at, "")
	}
}

func deleting(w *world) {
	name := w.newTable()
	made := w.must(tables, "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r"}`)
	at := entityPath(name, "p", "r")
	w.do(tables, "old ETag", "412 UpdateConditionNotSatisfied", "DELETE", at, "", "If-Match", staleETag)
	w.do(tables, "an invalid ETag", "400 InvalidInput", "DELETE", at, "", "If-Match", "nonsense")
	w.do(tables, "no If-Match", "400 MissingRequiredHeader", "DELETE", at, "")
	w.do(tables, "still there", "200", "GET", at, "")
	w.do(tables, "right ETag", "204", "DELETE", at, "", "If-Match", made.Header.Get("ETag"))
	w.do(tables, "gone", "404 ResourceNotFound", "GET", at, "")
	w.do(tables, "again", "404 ResourceNotFound", "DELETE", at, "", "If-Match", "*")
	w.do(tables, "again for its ETag", "404 ResourceNotFound", "DELETE", at, "", "If-Match", made.Header.Get("ETag"))
	w.do(tables, "no table", "404 TableNotFound", "DELETE", entityPath(noTable, "p", "r"), "", "If-Match", "*")
	w.do(tables, "insert again", "204", "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r"}`, "Prefer", "return-no-content")
	w.do(tables, "any ETag", "204", "DELETE", at, "", "If-Match", "*")
}

func keysOfAllKinds(w *world) {
	name := w.newTable()
	for _, k := range []struct{ name, key string }{
		{"empty", ""}, {"quote", "O'Brien"}, {"two quotes", "a''b"}, {"spaces", " a b "}, {"percent", "50%25"}, {"plus", "a+b"},
		{"ampersand", "a&b=c"}, {"brackets", "f(x)[0]"}, {"comma", "a,b;c"}, {"colon", "a:b@c"}, {"double quote", `say "hi"`}, {"letters", "größer 数"},
		{"beyond the plane", "😀"}, {"soft hyphen", "a\u00adb"}, {"no-break space", "a\u00a0b"}, {"dollar", "$a!*~^|`{}<>"},
	} {
		at := entityPath(name, k.key, k.key)
		body := `{"PartitionKey":` + quoted(k.key) + `,"RowKey":` + quoted(k.key) + `,"A":1}`
		w.do(tables, k.name+": insert", "204", "POST", "/"+name, body, "Prefer", "return-no-content")
		w.do(tables, k.name+": get", "200", "GET", at, "")
		w.do(tables, k.name+": get with full metadata", "200", "GET", at, "", "Accept", "application/json;odata=fullmetadata")
		w.do(tables, k.name+": merge", "204", "PATCH", at, `{"A":2}`, "If-Match", "*")
		w.note(k.name+": found", "1", len(w.rows(name, "PartitionKey eq "+literal(k.key)+" and RowKey eq "+literal(k.key))))
		w.do(tables, k.name+": delete", "204", "DELETE", at, "", "If-Match", "*")
		w.do(tables, k.name+": gone", "404 ResourceNotFound", "GET", at, "")
	}
}

func namesAndNulls(w *world) {
	name := w.newTable()
	insert := func(step, rk, properties string) {
		w.do(tables, step, "204", "POST", "/"+name, `{"PartitionKey":"p","RowKey":"`+rk+`",`+properties+`}`, "Prefer", "return-no-content")
		w.do(tables, step+": stored", "200", "GET", entityPath(name, "p", rk), "")
	}
	insert("names in two cases", "1", `"name":"a","Name":"b","NAME":"c"`)
	insert("nulls", "2", `"A":null,"B":1`)
	insert("a null that has a type", "6", `"A":1,"C":null,"C@odata.type":"Edm.Guid"`)
	insert("names with letters", "3", `"_x":1,"größe":2,"a1":3`)
	insert("the longest name", "4", `"`+strings.Repeat("n", 255)+`":1`)
	w.do(tables, "a name twice", "400 DuplicatePropertiesSpecified", "POST", "/"+name, `{"PartitionKey":"p","RowKey":"5","A":1,"A":2}`)
}
