package conformance

// both are Azurite as it is, and behind Strict, which changes requests that Azure refuses and no others.
func both() []string { return []string{onAzurite, onStrict} }

func bare() []string { return []string{onAzurite} }

// outcomes are places whose answers have another outcome altogether: case/step and outcome in turn.
func outcomes(of string, pairs ...string) []place {
	var all []place
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, place{of + "/" + pairs[i], "outcome", pairs[i+1]})
	}
	return all
}

var differences = append(inForm(), inMeaning()...)

// inForm are differences in the form of answers: a client that reads what it needs does not notice most of them.
func inForm() []difference {
	return []difference{
		{"versions", "Azure returns the request's protocol version. Azurite returns the newest version that Azurite knows, or no version.", both(), []place{
			{"*", "header x-ms-version", "2025-11-05"}, {"*", "header x-ms-version", "-"}}},
		{"headers of the table service", "Azure's responses, and the parts of responses to transactions, have headers that forbid caching and sniffing. Azurite's table service omits these headers in every refusal and in many successful responses.", both(), []place{
			{"*", "header Cache-Control", "-"}, {"*", "header X-Content-Type-Options", "-"}, {"*", "part * header Cache-Control", "-"}, {"*", "part * header X-Content-Type-Options", "-"}}},
		{"content type of JSON", "Azure appends streaming=true;charset=utf-8 to the level of metadata. Azurite appends nothing, and sends a content type even with empty responses.", both(), []place{
			{"*", "header Content-Type", "application/json;odata=*metadata"}, {"*", "part * header Content-Type", "application/json;odata=minimalmetadata;charset=utf-8"}}},
		{"error code in a header", "Azure's table service sends the code only in the body. Azurite also sends the code in x-ms-error-code. A client that reads only the header works on Azurite and fails on Azure.", both(), []place{
			{"*", "header x-ms-error-code", "?*"}}},
		{"Location and DataServiceId", "Azure sends the address of an inserted row or created table. Azurite sends the address only in transactions, leaves quotes and other characters of the keys as they are, and sends a DataServiceId unasked.", both(), []place{
			{"*", "header Location", "-"}, {"*", "header DataServiceId", "-"},
			{"a transaction of all operations/keys with quotes", "part 1 header Location", "*'O'B'*"}, {"a transaction of all operations/keys with quotes", "part 1 header DataServiceId", "*'O'B'*"},
			{"a transaction of all operations/all", "part 0 header DataServiceId", "?*"}}},
		{"Preference-Applied", "Azure repeats the preference of an insert, also in a refusal. Azurite omits the header in refusals and transactions, and sends the header for inserts without a preference.", both(), []place{
			{"a table's life/create", "header Preference-Applied", "return-content"}, {"a table's life/create again, no content wanted", "header Preference-Applied", "-"},
			{"insert/plain", "header Preference-Applied", "return-content"}, {"insert/echo with*", "header Preference-Applied", "return-content"},
			{"insert/again, no content wanted", "header Preference-Applied", "-"}, {"*", "part * header Preference-Applied", "-"}}},
		{"odata.metadata of a query", "Azure names the table and the selected properties. Azurite always sends Tables/@Element, also for a read of an entity with empty keys.", both(), []place{
			{"*", "json odata.metadata", "{endpoint}/$metadata#Tables/@Element"}, {"keys of all kinds/empty: get with full metadata", "json odata.type", "{account}.Tables"}}},
		{"odata.metadata of one entity", "Azure names the selected properties. Azurite names no properties.", both(), []place{
			{"get and project/*", "json odata.metadata", "{endpoint}/$metadata#{table}/@Element"}}},
		{"text beyond ASCII", "Azure escapes such text as \\uXXXX, in names and in values. Azurite leaves such text as it is. A reader of JSON sees no difference.", both(), outcomes("forms of answers",
			"a value beyond ASCII is escaped", "false", "a name beyond ASCII is escaped", "false")},
		{"order of properties", "Azure sorts the properties of an upserted row, and selected properties, by name. Azurite returns properties in the order in which they were sent or stored.", both(), outcomes("forms of answers",
			"properties of an upsert", "b _c a B", "selected properties", "b a")},
		{"addresses in full metadata", "In keys, Azure writes each quote twice, and escapes characters that a path cannot contain. Azurite leaves the keys unchanged.", both(), []place{
			{"keys of all kinds/*: get with full metadata", "json odata.id", "?*"}, {"keys of all kinds/*: get with full metadata", "json odata.editLink", "?*"}}},
		{"one table by its name", "Azurite responds to GET of Tables('x') with an empty list if table x exists, and otherwise with TableNotFound.", both(), []place{
			{"a table's life/get", "json TableName", "-"}, {"a table's life/get", "json value[]", "0"}, {"a table's life/get before", "outcome", "404 TableNotFound"}}},
		{"content ids in a transaction", "Azure repeats the Content-ID of each operation. Azurite omits the Content-ID of operations that succeed, and sends another number for an operation that fails.", both(), []place{
			{"a transaction of all operations/all", "part ? header Content-ID", "-"}, {"one operation alone/*", "part 0 header Content-ID", "-"},
			{"transactions that fail/*", "part 0 header Content-ID", "?"}}},
		{"DataServiceVersion of a part", "Azure sends 1.0 for changes and deletes, and 3.0 for inserts. Azurite sends 3.0 for changes and inserts.", both(), []place{
			{"a transaction of all operations/*", "part ? header DataServiceVersion", "3.0;"}}},
		{"echo of an insert in a transaction", "By default, Azure's part for the insert contains the entity. Azurite's part has status 201 and no entity.", both(), []place{
			{"a transaction of all operations/all", "part 0 json *", "-"}, {"a transaction of all operations/all", "part 0 header Content-Type", "-"}}},
		{"selected properties that are not there", "If a row lacks a selected property, Azure returns the property as null. Azurite omits the property.", both(), []place{
			{"query answers/a property that is not there", "json value[?].Nothing", "-"}, {"get and project/a property that is not there", "json Nothing", "-"}}},
		{"values as they were written", "Azurite returns the text of a value as sent. Azure returns the value in a standard form: GUIDs in lower case, dates without trailing zeros.", both(), []place{
			{"values: guid/read *C9DA*", "json Vb", "C9DA*"}, {"values: datetime/read *05.1000000Z*", "json Vd", "*05.1000000Z"}, {"values: datetime/read *05.0000000Z*", "json Ve", "*05.0000000Z"}}},
		{"doubles as JSON", "Azurite drops the point of a whole double that was sent without annotation, and returns an Int32: annotate such doubles as Edm.Double. Azurite writes exponents in another form.", both(), []place{
			{"values: double/read *:3.0", "json Vb", "3 (no string)"}, {"values: double/read *e-7", "json Vf", "-2.25e-7 (no string)"}, {"values: double/read *80.0", "json Vh", "123456789012345680 (no string)"}}},
		{"listings of blobs", "Azurite returns access tiers and a page size that the request did not ask for, writes no slash after the endpoint, and uses readable names as markers.", both(), []place{
			{"listing blobs/*", "xml EnumerationResults.Blobs.Blob*.Properties.AccessTier*", "?*"}, {"*", "xml EnumerationResults.MaxResults", "5000"},
			{"an append blob/*", "xml EnumerationResults.Blobs.Blob*.Properties.AccessTier*", "?*"}, {"an append blob/*", "xml EnumerationResults.Blobs.Blob*.Properties.Sealed", "false"},
			{"*", "xml EnumerationResults@ServiceEndpoint", "{endpoint}"}, {"listing blobs/page 2", "xml EnumerationResults.Marker", "b"}}},
		{"hashes of blobs", "Azurite computes the hash of committed or appended content, and also sends x-ms-blob-content-md5 for a whole blob. Azure has a hash only of blobs that one request stored, and sends x-ms-blob-content-md5 for a range.", both(), []place{
			{"blocks/commit*", "header Content-MD5", "?*"}, {"blocks/there", "header Content-MD5", "?*"}, {"blocks/changed", "header Content-MD5", "?*"}, {"an append blob/read", "header Content-MD5", "?*"},
			{"conditions of a blob/get if*", "header x-ms-blob-content-md5", "?*"}, {"a blob's life/get*", "header x-ms-blob-content-md5", "?*"}, {"metadata of a blob/*", "header x-ms-blob-content-md5", "?*"}}},
		{"answers without a body", "If a request asks for a blob's metadata, Azurite sends the content. With status 304, Azurite sends a content type.", both(), []place{
			{"metadata of a blob/read alone", "body", "x"}, {"conditions of a blob/get if changed, and it is not", "header Content-Type", "application/xml"}}},
		{"request ids", "In some refusals of Azurite's queue service, the request id is DefaultID.", both(), []place{
			{"a queue's life/put after", "header x-ms-request-id", "DefaultID"}}},
	}
}

// inMeaning are differences that change what a program does.
func inMeaning() []difference {
	return []difference{
		{"an empty change set", "Azure answers 202 without parts. Azurite answers 500, and clients repeat the request.", both(), outcomes("invalid batches", "no operations", "500")},
		{"no rows at all", "Azurite ends each page of $top=0 with a continuation, so a query with $top=0 never ends. Whether Azure returns a continuation is not known.", both(), []place{
			{"query answers/$top of 0", "header x-ms-continuation-Next*Key", "?*"}}},
		{"text in large bodies", "Azurite decodes a request to the table service in pieces of up to 64 KiB. A character whose bytes are in two pieces becomes two or three replacement characters. Text in a transaction, and text written as \\u00e9 and the like, is not affected.", both(), outcomes("values: large text", "as it was written", "false")},
		{"milliseconds in filters", "Azurite compares dates with a precision of 1 ms. Azure's precision is 100 ns.", both(), outcomes("filters",
			"T eq datetime'2026-01-01T00:00:00Z'", "1 2", "T gt datetime'2026-01-01T00:00:00Z'", "-", "T le datetime'2026-01-01T00:00:00Z'", "1 2 3", "T ne datetime'2026-01-01T00:00:00Z'", "3")},
		{"numbers of two widths", "Azurite finds an Int64 only by a literal with L, and answers 500 if a literal with L is compared with an Int32. Write the literal in the property's type.", both(), outcomes("filters",
			"L eq 1", "-", "I eq 1L", "error 500")},
		{"ne and another type", "On Azurite, ne with a number finds rows whose property is text. On the simulator, ne finds no such rows. Azure's behaviour is not documented.", both(), outcomes("filters", "M ne 7", "4")},
		{"invalid continuations", "Azurite accepts any text as a continuation.", both(), outcomes("query answers", "an invalid continuation", "200")},
		{"keys in another order", "Azurite finds nothing if RowKey precedes PartitionKey in an address.", both(), outcomes("get and project", "keys the other way round", "404 ResourceNotFound")},
		{"nulls that have a type", "Azurite refuses a null with an annotation. Azure drops such a null like any other null.", both(), outcomes("names and nulls",
			"a null that has a type", "400 InvalidInput", "a null that has a type: stored", "404 ResourceNotFound")},
		{"index of a lone operation", "If a transaction has one operation, Azure puts no index before the message of a refusal. Azurite puts the index 0.", both(), outcomes("one operation alone",
			"insert again", "202 [409 EntityAlreadyExists at 0]", "another ETag", "202 [412 UpdateConditionNotSatisfied at 0]", "a row that is not there", "202 [404 ResourceNotFound at 0]", "no table", "202 [404 TableNotFound at 0]")},
		{"a query in a batch", "Azurite nests the response to the query in one more multipart body, whose boundary begins with two dashes.", both(), outcomes("a query in a batch", "one entity", "202 []")},
		{"stale receipts", "Azurite answers 400 PopReceiptMismatch. Azure answers 404 MessageNotFound or 400: a program has to handle 404 and 400.", both(), append(outcomes("receipts",
			"delete by the receipt before", "400 PopReceiptMismatch", "update by the receipt before", "400 PopReceiptMismatch", "an invalid receipt", "400 PopReceiptMismatch"),
			outcomes("messages to come and to go", "delete by the receipt of the first get", "400 PopReceiptMismatch")...)},
		{"a receipt for each message", "Azurite gives all messages of one get the same receipt.", both(), outcomes("several messages", "receipts", "1")},
		{"ranges beyond the end", "Azurite answers 206 without content. Azure answers 416.", both(), append(outcomes("ranges of a blob", "x-ms-range bytes=10-", "206", "x-ms-range bytes=10-20", "206"),
			outcomes("an append blob", "a range behind the end", "206")...)},
		{"type of a blob", "Azurite lets an append blob overwrite a block blob. On Azure a blob keeps its type until it is deleted.", both(), outcomes("a blob's life", "another type", "201")},
		{"conditional delete of a blob that is not there", "Azurite answers 412. The simulator answers 404. Treat 404 and 412 as a blob that does not exist.", both(), outcomes("conditions of a blob", "delete of none if this", "412 ConditionNotMet")},
		{"requests without permission", "Azurite never answers 401. Some of Azurite's 403 responses have other codes than Azure's.", both(), outcomes("requests without the right to",
			"table without a signature", "403 AuthorizationFailure", "table with another signature", "403 AuthorizationFailure", "queue without a signature", "403 AuthenticationFailed",
			"blob without a signature", "403 AuthorizationFailure", "blob with another signature", "403 AuthorizationFailure")},
		{"codes of refusals, queues and blobs", "Azurite refuses some requests without a code or with another code.", both(), append(outcomes("a blob's life",
			"another hash", "400 InvalidOperation", "no type", "400", "no such type", "400"), append(outcomes("bad requests for messages",
			"no XML", "400", "none wanted", "400", "no number", "400", "method", "400"), outcomes("receipts", "no receipt", "400", "no visibility", "400")...)...)},
		{"answers that are no JSON", "If a request accepts no JSON, Azurite's refusal has another code than Azure's.", both(), outcomes("bad requests for tables", "answer that is no JSON", "415 AtomFormatNotSupported")},
		{"codes of refusals, tables", "Azurite refuses some requests without a code, with another code, or with 500. After 500, clients repeat the request.", bare(), append(outcomes("bad requests for tables",
			"no name", "400 TableNameEmpty", "no JSON", "400", "keys cut off", "500", "one key", "500", "another key", "500", "method", "400", "body that is no JSON", "400 PropertiesNeedValue"),
			append(outcomes("insert", "a number as RowKey", "500", "no object", "400 PropertiesNeedValue", "cut off", "400", "no such type", "500"), append(outcomes("invalid batches",
				"no body", "500", "nonsense", "500", "cut off", "202 [400 InvalidInput at 0]"), append(outcomes("merge", "an invalid ETag", "400 InvalidOperation"), append(outcomes("delete", "no If-Match", "400"),
				outcomes("query answers", "$top that is no number", "400")...)...)...)...)...)},
		{"entity groups", "Azurite carries out transactions over two partitions or two tables, and stores values that do not match their type.", bare(), outcomes("transactions that are no group",
			"two partitions", "202 [204]", "two tables", "202 [204]", "an invalid value", "202 [204, 201]", "nothing stored", "1 2 2 and 2")},
		{"a hundred operations", "Azurite's refusal of 101 operations begins with the boundary instead of the status, so no client can parse the refusal.", bare(), outcomes("a hundred operations", "101", "202 []")},
		{"batches by their content type", "Azurite ignores the content type, and takes the boundary from the body.", bare(), outcomes("invalid batches", "another type", "202", "nothing stored", "r")},
		{"conditions and keys of an update", "Azurite ignores If-None-Match, and ignores keys in the body that differ from the address.", bare(), append(outcomes("merge",
			"If-None-Match", "204", "other keys in the body", "204"), outcomes("replace", "If-None-Match", "204", "other keys in the body", "204")...)},
		{"invalid filters", "Azurite accepts strings without an end, and invalid dates and GUIDs.", bare(), outcomes("invalid filters",
			"A eq 'x", "200", "A eq datetime'never'", "200", "A eq guid'x'", "200")},
		{"what is not implemented", "Azure answers 501 to functions and arithmetic in filters, and to options such as $orderby. Azurite refuses such filters with 400, and ignores such options.", bare(), append(outcomes("invalid filters",
			"startswith(A,'x')", "400 InvalidInput", "A add 1 eq 2", "400 InvalidInput"), outcomes("query answers", "$orderby", "200")...)},
		{"invalid bodies", "Azurite accepts a property that occurs twice, and an Int32 with a fraction.", bare(), append(outcomes("names and nulls",
			"a name twice", "201"), outcomes("values: refused", `"A":1.5,"A@odata.type":"Edm.Int32"`, "201")...)},
	}
}
