package conformance

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func allRules() []rule {
	return slices.Concat(entityRules(), valueRules(), requestRules(), tableRules(), queueRules())
}

func binary(name string, n int) string {
	return `"` + name + `@odata.type":"Edm.Binary","` + name + `":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"`
}

// mebibyte makes the properties of an entity of 1 MiB and some bytes more, with the keys p and r, by the documented formula.
func mebibyte(more int) string {
	left := 1<<20 + more - (4 + 2*2)
	var all []string
	for i := 0; left > 0; i++ {
		name := fmt.Sprintf("B%02d", i)
		overhead := 8 + 2*len(name) + 4
		size := min(left-overhead, 60<<10)
		left -= overhead + size
		all = append(all, binary(name, size))
	}
	return strings.Join(all, ",")
}

func entityRules() []rule {
	keys := rule{"keys", "0 to 512 UTF-16 units, without / \\ # ? and control characters", nil}
	for _, k := range []struct{ what, want, key string }{
		{"empty", "204", ""}, {"512 units", "204", strings.Repeat("é", 512)}, {"513 units", "400 KeyValueTooLarge", strings.Repeat("é", 513)},
		{"256 characters of two units", "204", strings.Repeat("😀", 256)}, {"257 characters of two units", "400 KeyValueTooLarge", strings.Repeat("😀", 257)},
		{"/", "400 OutOfRangeInput", "a/b"}, {"\\", "400 OutOfRangeInput", `a\b`}, {"#", "400 OutOfRangeInput", "a#b"}, {"?", "400 OutOfRangeInput", "a?b"},
		{"U+0000", "400 OutOfRangeInput", "a\x00b"}, {"U+001F", "400 OutOfRangeInput", "a\x1fb"}, {"U+0020 and U+007E", "204", "a ~b"}, {"U+007F", "400 OutOfRangeInput", "a\x7fb"},
		{"U+009F", "400 OutOfRangeInput", "a\u009fb"}, {"U+00A0", "204", "a\u00a0b"},
	} {
		pk, rk := insertKeys("", "", k.key, "r", ""), insertKeys("", "", "p", k.key, "")
		keys.tries = append(keys.tries, try{what: k.what, want: k.want, do: func(w *world) string {
			asPartition, asRow := pk.do(w), rk.do(w)
			if asPartition == asRow {
				return asRow
			}
			return asPartition + " as PartitionKey, " + asRow + " as RowKey"
		}})
	}
	const invalid = "400 PropertyNameInvalid"
	return []rule{
		{"properties of an entity", "252 besides keys and Timestamp", []try{
			insert("252", "204", properties(252)), insert("253", "400 TooManyProperties", properties(253)), insert("252 and a null", "204", properties(252)+`,"N":null`),
			merge("a merge that adds a 253rd", "400 TooManyProperties", properties(252), `"One":1`)}},
		{"size of an entity", "1 MiB by the documented formula", []try{
			insert("1 MiB", "204", mebibyte(0)), insert("1 MiB and a byte", "400 EntityTooLarge", mebibyte(1)),
			merge("a merge that exceeds 1 MiB", "400 EntityTooLarge", mebibyte(0), `"One":true`)}},
		{"size of a string", "32,768 UTF-16 units", []try{
			insert("32,768 units", "204", `"S":"`+strings.Repeat(`\u00e9`, 32768)+`"`), insert("32,769 units", "400 PropertyValueTooLarge", `"S":"`+strings.Repeat(`\u00e9`, 32769)+`"`),
			insert("16,384 characters of two units", "204", `"S":"`+strings.Repeat(`\ud83d\ude00`, 16384)+`"`),
			insert("16,385 characters of two units", "400 PropertyValueTooLarge", `"S":"`+strings.Repeat(`\ud83d\ude00`, 16385)+`"`)}},
		{"size of a binary", "65,536 bytes", []try{
			insert("65,536 bytes", "204", binary("B", 65536)), insert("65,537 bytes", "400 PropertyValueTooLarge", binary("B", 65537))}},
		{"name of a property", "255 characters, a C# identifier", []try{
			insert("255 characters", "204", `"`+strings.Repeat("n", 255)+`":1`), insert("256 characters", "400 PropertyNameTooLong", `"`+strings.Repeat("n", 256)+`":1`),
			insert("underscore and letters", "204", `"_Größe1":1`), insert("a dash", invalid, `"a-b":1`), insert("a digit first", invalid, `"1a":1`), insert("a dot", invalid, `"a.b":1`),
			insert("a space", invalid, `"a b":1`), insert("empty", invalid, `"":1`), insert("one name twice", "400 DuplicatePropertiesSpecified", `"A":1,"A":2`)}},
		keys,
	}
}

func valueRules() []rule {
	typed := func(what, want, typ, value string) try {
		return insert(what, want, `"V@odata.type":"Edm.`+typ+`","V":`+value)
	}
	return []rule{
		{"DateTime", "1601-01-01 to 9999-12-31, in steps of 100 ns", []try{
			typed("the first 100 ns of 1601", "204", "DateTime", `"1601-01-01T00:00:00Z"`), typed("the last 100 ns of 1600", "400 OutOfRangeInput", "DateTime", `"1600-12-31T23:59:59.9999999Z"`),
			typed("the year 1500", "400 OutOfRangeInput", "DateTime", `"1500-01-01T00:00:00Z"`), typed("the last 100 ns of 9999", "204", "DateTime", `"9999-12-31T23:59:59.9999999Z"`),
			typed("the year 10000", "400 InvalidInput", "DateTime", `"10000-01-01T00:00:00Z"`), typed("7 digits of a second", "204", "DateTime", `"2026-01-01T00:00:00.1234567Z"`),
			typed("8 digits of a second", "400 InvalidInput", "DateTime", `"2026-01-01T00:00:00.12345678Z"`), typed("text that is no date", "400 InvalidInput", "DateTime", `"not a date"`),
			typed("without an offset, which means UTC", "204", "DateTime", `"2026-01-01T00:00:00"`)}},
		{"values match their type", "", []try{
			typed("the largest Int32", "204", "Int32", "2147483647"), typed("the largest Int32 plus 1", "400 InvalidInput", "Int32", "2147483648"), insert("the largest Int32 plus 1, without a type", "400 InvalidInput", `"V":2147483648`),
			typed("the smallest Int32", "204", "Int32", "-2147483648"), typed("the smallest Int32 minus 1", "400 InvalidInput", "Int32", "-2147483649"), typed("1.5 as Int32", "400 InvalidInput", "Int32", "1.5"),
			typed("the largest Int64", "204", "Int64", `"9223372036854775807"`), typed("the largest Int64 plus 1", "400 InvalidInput", "Int64", `"9223372036854775808"`), typed("letters as Int64", "400 InvalidInput", "Int64", `"abc"`),
			typed("Int64 without quotes", "400 InvalidInput", "Int64", "5"), typed("letters as Double", "400 InvalidInput", "Double", `"abc"`), typed("NaN as Double", "204", "Double", `"NaN"`),
			typed("letters as Guid", "400 InvalidInput", "Guid", `"abc"`), typed("letters as Boolean", "400 InvalidInput", "Boolean", `"abc"`), typed("* as Binary", "400 InvalidInput", "Binary", `"*"`), typed("a number as Binary", "400 InvalidInput", "Binary", "1")}},
	}
}

func requestRules() []rule {
	put := func(w *world, table, pk, rk string) string { return w.changeOp("PUT", table, pk, rk, `"A":1`) }
	many := func(n int) func(w *world, table string) []string {
		return func(w *world, table string) []string {
			ops := make([]string, n)
			for i := range ops {
				ops[i] = put(w, table, "p", fmt.Sprint(i))
			}
			return ops
		}
	}
	sized := func(size int) func(w *world, table string) []string {
		return func(w *world, table string) []string {
			// White space between values counts for the body and not for the entity; Azurite counts it for both, so that no
			// operation may have a mebibyte of it.
			ops := func(fill int) []string {
				all := make([]string, 8)
				for i := range all {
					pad := min(fill, 600<<10)
					fill -= pad
					all[i] = w.op("PUT", entityPath(table, "p", fmt.Sprint(i)), `{"PartitionKey":"p","RowKey":"`+fmt.Sprint(i)+`"`+strings.Repeat(" ", pad)+`}`)
				}
				return all
			}
			return ops(size - len(changeSet(ops(0)...)))
		}
	}
	const mixed = "400 CommandsInBatchActOnDifferentPartitions at 1]"
	comparisons := func(n int) string {
		return "$filter=" + url.QueryEscape(strings.Join(slices.Repeat([]string{"A eq 1"}, n), " or "))
	}
	return []rule{
		{"transaction", "one table, one partition, each row once, 100 operations, 4 MiB", []try{
			transaction("100 operations", "202 [204]", many(100)), transaction("101 operations", "202 [400 InvalidInput at 99]", many(101)),
			transaction("two partitions", "202 ["+mixed, func(w *world, table string) []string {
				return []string{put(w, table, "p", "1"), put(w, table, "q", "2")}
			}),
			transaction("two tables", "202 ["+mixed, func(w *world, table string) []string {
				return []string{put(w, table, "p", "1"), put(w, w.newTable(), "p", "2")}
			}),
			transaction("two operations on a row", "202 [400 InvalidDuplicateRow at 1]", func(w *world, table string) []string {
				return []string{put(w, table, "p", "1"), put(w, table, "p", "1")}
			}),
			transaction("4 MiB", "202 [204]", sized(4<<20)), transaction("4 MiB and a byte", "413 RequestBodyTooLarge", sized(4<<20+1))}},
		{"filter", "15 comparisons", []try{query("15 comparisons", "200", comparisons(15)), query("16 comparisons", "400 InvalidInput", comparisons(16)),
			query("a function", "501 NotImplemented", "$filter="+url.QueryEscape("startswith(A,'x')")), query("arithmetic", "501 NotImplemented", "$filter="+url.QueryEscape("A add 1 eq 2"))}},
		{"options of a query", "only $filter, $select and $top", []try{query("$orderby", "501 NotImplemented", "$orderby=A"), query("$skip", "501 NotImplemented", "$skip=1"),
			query("$inlinecount", "501 NotImplemented", "$inlinecount=allpages")}},
		{"$top", "0 to 1,000", []try{query("1", "200", "$top=1"), query("1000", "200", "$top=1000"), {what: "0", want: "0 entities", narrow: true, do: noPage}, query("1001", "400 InvalidInput", "$top=1001")}},
		{"page of a query", "ends after 1,000 entities or 5 s, or with a partition", []try{
			{what: "1,001 entities", want: "1000 entities, a continuation", do: func(w *world) string {
				table := w.newTable()
				w.fill(table, 1001)
				return w.page(table, "$select=RowKey")
			}},
			{what: "an empty page", want: "0 entities, a continuation", may: &storagetest.Chaos{EmptyPages: 1}, do: onePage},
			{what: "the end of a partition", want: "1 entities, a continuation", may: &storagetest.Chaos{PartitionPages: 1}, do: onePage},
			{what: "a continuation without NextRowKey", want: "1 entities, a continuation without NextRowKey", may: &storagetest.Chaos{PartitionPages: 1, NoNextRowKey: 1}, do: onePage}}},
		{"order of a query", "by PartitionKey, then by RowKey, except on Cosmos DB", []try{
			{what: "Azure Tables", want: "in order", do: ordered}, {what: "Cosmos DB", want: "in no order", may: &storagetest.Chaos{Unordered: true}, do: ordered}}},
		{"targets", "2,000 entities a second in a partition", []try{
			{what: "2,001 entities at once", want: "503 ServerBusy", may: &storagetest.Chaos{PartitionLimit: true}, do: func(w *world) string {
				table := w.newTable()
				w.fill(table, 2000)
				return w.outcome(w.quiet(tables, "POST", "/"+table, `{"PartitionKey":"p","RowKey":"more"}`, "Prefer", "return-no-content"))
			}},
			{what: "2,000 entities, and 1 more 1 s later", want: "204", timed: true, may: &storagetest.Chaos{PartitionLimit: true}, do: func(w *world) string {
				table := w.newTable()
				w.fill(table, 2000)
				w.Wait(time.Second)
				return w.outcome(w.quiet(tables, "POST", "/"+table, `{"PartitionKey":"p","RowKey":"more"}`, "Prefer", "return-no-content"))
			}}}},
	}
}

// page tells what one request of a query returns.
func (w *world) page(table, options string) string {
	r := w.quiet(tables, "GET", "/"+table+"()?"+options, "")
	text := fmt.Sprint(strings.Count(r.body, `"RowKey"`), " entities")
	switch {
	case r.Header.Get("x-ms-continuation-NextPartitionKey") == "":
		return text
	case r.Header.Get("x-ms-continuation-NextRowKey") == "":
		return text + ", a continuation without NextRowKey"
	}
	return text + ", a continuation"
}

func onePage(w *world) string {
	table := w.newTable()
	for _, pk := range []string{"1", "2"} {
		w.must(tables, "POST", "/"+table, `{"PartitionKey":"`+pk+`","RowKey":"r"}`)
	}
	return w.page(table, "$select=RowKey")
}

// noPage asks for no rows of a table that has some.
func noPage(w *world) string {
	table := w.newTable()
	w.fill(table, 2)
	return w.page(table, "$select=RowKey&$top=0")
}

func ordered(w *world) string {
	table := w.newTable()
	w.fill(table, 20)
	if slices.IsSorted(w.rows(table, "")) {
		return "in order"
	}
	return "in no order"
}

func tableRules() []rule {
	named := func(what, want string, name func(w *world) string) try {
		return try{what: what, want: want, do: func(w *world) string {
			made := name(w)
			w.Cleanup(func() { w.bye("/Tables('" + made + "')") })
			return w.outcome(w.quiet(tables, "POST", "/Tables", `{"TableName":"`+made+`"}`))
		}}
	}
	plain := func(name string) func(*world) string { return func(*world) string { return name } }
	again := func(wait time.Duration, change func(string) string) func(w *world) string {
		return func(w *world) string {
			name := w.newTable()
			w.must(tables, "DELETE", "/Tables('"+name+"')", "")
			w.Wait(wait)
			return w.outcome(w.quiet(tables, "POST", "/Tables", `{"TableName":"`+change(name)+`"}`))
		}
	}
	same := func(s string) string { return s }
	long := func(n int) func(w *world) string {
		return func(w *world) string { name := w.tableName(); return name + strings.Repeat("x", n-len(name)) }
	}
	return []rule{
		{"name of a table", "3 to 63 letters and digits, a letter first, case-insensitive", []try{
			named("3 characters", "201", shortName), named("2 characters", "400 OutOfRangeInput", plain("ab")),
			named("63 characters", "201", long(63)), named("64 characters", "400 OutOfRangeInput", long(64)),
			named("a digit first", "400 InvalidResourceName", plain("1abc")), named("a dash", "400 InvalidResourceName", plain("a-bc")),
			{what: "an existing name in capitals", want: "409 TableAlreadyExists", do: func(w *world) string {
				return w.outcome(w.quiet(tables, "POST", "/Tables", `{"TableName":"`+strings.ToUpper(w.newTable())+`"}`))
			}},
			{what: "a query by the name in capitals", want: "200", narrow: true, do: func(w *world) string {
				return w.outcome(w.quiet(tables, "GET", "/"+strings.ToUpper(w.newTable())+"()", ""))
			}}}},
		{"name of a dropped table", "taken for 40 s or more", []try{
			{what: "create at once", want: "409 TableBeingDeleted", do: again(0, same)}, {what: "create at once, in capitals", want: "409 TableBeingDeleted", do: again(0, strings.ToUpper)},
			{what: "create after 39 s", want: "409 TableBeingDeleted", timed: true, do: again(39*time.Second, same)}, {what: "create after 40 s", want: "201", timed: true, do: again(40*time.Second, same)}}},
		{"key range of a signature", "from key (spk, srk) to key (epk, erk)", []try{
			signed("get of the first key", "200", "GET", "b", "2"), signed("get of the key before the first", "403 AuthorizationFailure", "GET", "b", "1"), signed("get of the last key", "200", "GET", "c", "2"),
			signed("get of the key after the last", "403 AuthorizationFailure", "GET", "c", "3"), signed("delete of the last key", "204", "DELETE", "c", "2"), signed("delete of the key after the last", "403 AuthorizationFailure", "DELETE", "c", "3"),
			signed("upsert of a later key", "403 AuthorizationFailure", "PATCH", "d", "1"),
			{what: "keys that a query of the table returns", want: "b2 b3 c1 c2", do: func(w *world) string {
				table, sas := w.withRange()
				r := w.signedBy(sas, "GET", "/"+table+"()?$select=PartitionKey,RowKey", "")
				var keys []string
				for _, pk := range []string{"a", "b", "c", "d"} {
					for _, rk := range []string{"1", "2", "3"} {
						if strings.Contains(r.body, `"PartitionKey":"`+pk+`","RowKey":"`+rk+`"`) {
							keys = append(keys, pk+rk)
						}
					}
				}
				return strings.Join(keys, " ")
			}}}},
	}
}

// shortName makes a name of three characters that no run of the last minute had: a dropped table's name stays taken. Each
// target has names of its own, since two of them are one Azurite.
func shortName(w *world) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	n := time.Now().UnixMilli() / 50
	return string([]byte{w.target.name[1], letters[n/36%36], letters[n%36]})
}

// signed is a try of one request under a signature for the keys from b2 to c2 of a table.
func signed(what, want, method, pk, rk string) try {
	return try{what: what, want: want, do: func(w *world) string {
		table, sas := w.withRange()
		body := map[string]string{"PATCH": `{"PartitionKey":"` + pk + `","RowKey":"` + rk + `"}`}[method]
		return w.outcome(w.signedBy(sas, method, entityPath(table, pk, rk), body, "If-Match", map[string]string{"DELETE": "*"}[method]))
	}}
}

func (w *world) withRange() (table, sas string) {
	table = w.newTable()
	for _, pk := range []string{"a", "b", "c", "d"} {
		var ops []string
		for _, rk := range []string{"1", "2", "3"} {
			ops = append(ops, w.changeOp("PUT", table, pk, rk, ""))
		}
		w.must(tables, "POST", "/$batch", changeSet(ops...), batchType...)
	}
	credential := assert.Must[*aztables.SharedKeyCredential](w)(aztables.NewSharedKeyCredential(w.AccountName, w.AccountKey))
	sas, err := aztables.SASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), TableName: table,
		Permissions:       aztables.SASPermissions{Read: true, Add: true, Update: true, Delete: true}.String(),
		StartPartitionKey: "b", StartRowKey: "2", EndPartitionKey: "c", EndRowKey: "2",
	}.Sign(credential)
	assert.Check(w, err)
	// The SDK signs the range and leaves it out of the address.
	return table, sas + "&spk=b&srk=2&epk=c&erk=2"
}

// signedBy sends a request under a signature in its address.
func (w *world) signedBy(sas, method, path, body string, headers ...string) reply {
	if strings.Contains(path, "?") {
		path += "&" + sas
	} else {
		path += "?" + sas
	}
	resp, text, err := w.send(w.Context(), request{service: tables, method: method, path: path, body: body, headers: headers})
	assert.Check(w, err)
	return reply{resp, text}
}

func queueRules() []rule {
	put := func(what, want, options string, size int) try {
		return try{what: what, want: want, queue: true, do: func(w *world) string {
			return w.outcome(w.quiet(queues, "POST", "/"+w.newQueue()+"/messages"+options, message1(strings.Repeat("x", size))))
		}}
	}
	get := func(what, want, options string) try {
		return try{what: what, want: want, queue: true, do: func(w *world) string {
			return w.outcome(w.quiet(queues, "GET", "/"+w.newQueue()+"/messages"+options, ""))
		}}
	}
	held := func(what, want string, do func(w *world, at, path, first, second string) string) try {
		return try{what: what, want: want, queue: true, do: func(w *world) string {
			at := "/" + w.newQueue()
			path, first := w.must(queues, "POST", at+"/messages", message1("x")).first(w)
			_, second := w.must(queues, "GET", at+"/messages?visibilitytimeout=60", "").first(w)
			return do(w, at, path, first, second)
		}}
	}
	const outOfRange, invalid = "400 OutOfRangeQueryParameterValue", "400 InvalidQueryParameterValue"
	return []rule{
		{"size of a message", "65,536 bytes", []try{put("65,536 bytes", "201", "", 65536), put("65,537 bytes", "413 RequestBodyTooLarge", "", 65537)}},
		{"visibility timeout", "put: 0 to 7 days, get: 1 s to 7 days", []try{
			put("put: 0 s", "201", "?visibilitytimeout=0", 1), put("put: 7 days", "201", "?visibilitytimeout=604800&messagettl=-1", 1), put("put: 7 days and a second", outOfRange, "?visibilitytimeout=604801&messagettl=-1", 1),
			put("put: -1 s", outOfRange, "?visibilitytimeout=-1", 1), put("put: equal to the time to live", invalid, "?visibilitytimeout=10&messagettl=10", 1),
			get("get: 0 s", outOfRange, "?visibilitytimeout=0"), get("get: 1 s", "200", "?visibilitytimeout=1"), get("get: 7 days", "200", "?visibilitytimeout=604800"), get("get: 7 days and a second", outOfRange, "?visibilitytimeout=604801")}},
		{"time to live", "1 s or more, or -1 for ever", []try{
			put("1 s", "201", "?messagettl=1", 1), put("-1", "201", "?messagettl=-1", 1), put("0", invalid, "?messagettl=0", 1), put("-2", invalid, "?messagettl=-2", 1), put("a hundred years", "201", "?messagettl=3153600000", 1)}},
		{"messages of one get", "1 to 32", []try{get("32", "200", "?numofmessages=32"), get("33", outOfRange, "?numofmessages=33"), get("0", outOfRange, "?numofmessages=0")}},
		{"receipts", "each message has its own receipt, and the message's newest receipt is valid", []try{
			held("delete by the newest receipt", "204", func(w *world, at, path, _, second string) string {
				return w.outcome(w.quiet(queues, "DELETE", at+path+second, ""))
			}),
			held("delete by an older receipt (Azure may answer 400 PopReceiptMismatch, too)", "404 MessageNotFound", func(w *world, at, path, first, _ string) string {
				return w.outcome(w.quiet(queues, "DELETE", at+path+first, ""))
			}),
			{what: "number of receipts of 3 messages of one get", want: "3", queue: true, do: func(w *world) string {
				at := "/" + w.newQueue() + "/messages"
				for range 3 {
					w.must(queues, "POST", at, message1("x"))
				}
				distinct := map[string]bool{}
				for _, m := range w.must(queues, "GET", at+"?numofmessages=3", "").messages(w).Messages {
					distinct[m.PopReceipt] = true
				}
				return fmt.Sprint(len(distinct))
			}}}},
		{"order of messages", "Azure promises no order", []try{{what: "20 messages", want: "in no order", queue: true, may: &storagetest.Chaos{QueueOutOfOrder: 1}, do: func(w *world) string {
			at := "/" + w.newQueue() + "/messages"
			for i := range 20 {
				w.must(queues, "POST", at, message1(fmt.Sprintf("%02d", i)))
			}
			if slices.IsSorted(w.texts(at + "?numofmessages=32&visibilitytimeout=60")) {
				return "in order"
			}
			return "in no order"
		}}}},
	}
}
