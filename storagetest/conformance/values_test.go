package conformance

import (
	"encoding/json"
	"strings"
)

func valueCases() []script {
	var all []script
	for _, c := range storedValues {
		all = append(all, script{"values: " + c.name, func(w *world) {
			table := w.newTable()
			for i, property := range c.properties {
				name := "V" + string(rune('a'+i))
				body := `{"PartitionKey":"p","RowKey":"` + name + `",` + strings.ReplaceAll(property, "$", name) + `}`
				w.do(tables, "store "+property, "204", "POST", "/"+table, body, "Prefer", "return-no-content")
				w.do(tables, "read "+property, "200", "GET", entityPath(table, "p", name), "")
			}
		}})
	}
	return append(all, script{"values: refused", refusedValues}, script{"values: large text", largeText}, script{"forms of answers", formsOfAnswers})
}

// largeText writes text of more than one byte a character in bodies that do not come in one piece. The service may cut them
// in the middle of a character; several bodies, of which each has its cuts elsewhere, make sure that one is cut there.
func largeText(w *world) {
	table := w.newTable()
	at := entityPath(table, "p", "r")
	plain, inTransaction, escaped := true, true, true
	for i := range 12 {
		text := strings.Repeat("x", i) + strings.Repeat("数", 20_000)
		body := func(text string) string { return `"A":"` + text + `","B":"` + text + `","C":"` + text + `"` }
		stored := func(r reply) bool {
			var e struct{ A, B, C string }
			err := json.Unmarshal([]byte(w.must(tables, "GET", at, "").body), &e)
			return r.StatusCode < 300 && err == nil && e.A == text && e.B == text && e.C == text
		}
		plain = stored(w.quiet(tables, "PUT", at, "{"+body(text)+"}")) && plain
		escaped = stored(w.quiet(tables, "PUT", at, "{"+body(strings.ReplaceAll(text, "数", `\u6570`))+"}")) && escaped
		inTransaction = stored(w.quiet(tables, "POST", "/$batch", changeSet(w.changeOp("PUT", table, "p", "r", body(text))), batchType...)) && inTransaction
	}
	w.note("in a transaction", "true", inTransaction)
	w.note("in escapes", "true", escaped)
	w.note("as it was written", "true", plain)
}

// storedValues are values that are taken; $ stands for the property's name.
var storedValues = []struct {
	name       string
	properties []string
}{
	{"string", []string{`"$":""`, `"$":"plain"`, `"$":"größer 数 😀"`, `"$":"a\u0000b\u001f\n\t\"\\/"`, `"$":"\ufeffx\uffff"`, `"$":"5","$@odata.type":"Edm.String"`, `"$":"2026-01-01T00:00:00Z"`}},
	{"boolean", []string{`"$":true`, `"$":false`, `"$":true,"$@odata.type":"Edm.Boolean"`}},
	{"int32", []string{`"$":0`, `"$":-1`, `"$":2147483647`, `"$":-2147483648`, `"$":7,"$@odata.type":"Edm.Int32"`}},
	{"int64", []string{`"$":"0","$@odata.type":"Edm.Int64"`, `"$":"9223372036854775807","$@odata.type":"Edm.Int64"`, `"$":"-9223372036854775808","$@odata.type":"Edm.Int64"`, `"$":"9007199254740993","$@odata.type":"Edm.Int64"`}},
	{"double", []string{`"$":1.5`, `"$":3.0`, `"$":3,"$@odata.type":"Edm.Double"`, `"$":3.0,"$@odata.type":"Edm.Double"`, `"$":0.1`, `"$":-2.25e-7`, `"$":1e300`, `"$":123456789012345680.0`,
		`"$":"NaN","$@odata.type":"Edm.Double"`, `"$":"Infinity","$@odata.type":"Edm.Double"`, `"$":"-Infinity","$@odata.type":"Edm.Double"`, `"$":"1.5","$@odata.type":"Edm.Double"`}},
	{"datetime", []string{`"$":"2026-01-02T03:04:05Z","$@odata.type":"Edm.DateTime"`, `"$":"2026-01-02T03:04:05.1Z","$@odata.type":"Edm.DateTime"`, `"$":"2026-01-02T03:04:05.1234567Z","$@odata.type":"Edm.DateTime"`,
		`"$":"2026-01-02T03:04:05.1000000Z","$@odata.type":"Edm.DateTime"`, `"$":"2026-01-02T03:04:05.0000000Z","$@odata.type":"Edm.DateTime"`, `"$":"2026-01-02T03:04:05.123Z","$@odata.type":"Edm.DateTime"`, `"$":"1601-01-01T00:00:00Z","$@odata.type":"Edm.DateTime"`, `"$":"9999-12-31T23:59:59.9999999Z","$@odata.type":"Edm.DateTime"`}},
	{"guid", []string{`"$":"c9da6455-213d-42c9-9a79-3e9149a57833","$@odata.type":"Edm.Guid"`, `"$":"C9DA6455-213D-42C9-9A79-3E9149A57833","$@odata.type":"Edm.Guid"`}},
	{"binary", []string{`"$":"","$@odata.type":"Edm.Binary"`, `"$":"AA==","$@odata.type":"Edm.Binary"`, `"$":"+/+/","$@odata.type":"Edm.Binary"`}},
}

func refusedValues(w *world) {
	table := w.newTable()
	for _, property := range []string{
		`"A":true,"A@odata.type":"Edm.Int32"`, `"A":1,"A@odata.type":"Edm.Boolean"`, `"A":1,"A@odata.type":"Edm.String"`,
		`"A":1.5,"A@odata.type":"Edm.Int32"`, `"A":"x","A@odata.type":"Edm.Double"`, `"A":"x","A@odata.type":"Edm.Boolean"`,
	} {
		w.do(tables, property, "400 InvalidInput", "POST", "/"+table, `{"PartitionKey":"p","RowKey":"r",`+property+`}`)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has JSON
	}
	return string(b)
}

// literal is a string of the filter language.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
