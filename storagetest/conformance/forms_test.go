package conformance

import (
	"regexp"
	"strings"
)

// formsOfAnswers looks at what a reader of JSON does not see: the order of properties, and escapes.
func formsOfAnswers(w *world) {
	table := w.newTable()
	at := entityPath(table, "p", "r")
	w.must(tables, "PUT", at, `{"b":1,"_c":2,"a":3,"B":4}`)
	w.note("properties of an upsert", "B _c a b", namesIn(w.must(tables, "GET", at, "").body))
	w.note("selected properties", "a b", namesIn(w.must(tables, "GET", at+"?$select=b,a", "").body))
	w.must(tables, "PUT", at, `{"Größe":"Süd"}`)
	body := w.must(tables, "GET", at, "").body
	w.note("a value beyond ASCII is escaped", "true", strings.Contains(body, `"S\u00fcd"`))
	w.note("a name beyond ASCII is escaped", "true", strings.Contains(body, `"Gr\u00f6\u00dfe"`))
}

// namesIn lists the custom properties of an entity in their order.
func namesIn(body string) string {
	var names []string
	for _, m := range regexp.MustCompile(`"([A-Za-z_]+)":\d`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}
