package inspect

import (
	"fmt"
	"go/format"
	"go/token"
	"strings"
	"unicode"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Struct returns a Go file of package pkg ("" for "main") with a struct for the entities, named for the table, as a starting point: a field for
// each property, a pointer if some entities lack it, a tables.Value if no Go type reads all its values, and a field tagged rest, so that a Replace
// keeps properties that other programs add.
func (r *Report) Struct(pkg string) string {
	if !token.IsIdentifier(pkg) {
		pkg = "main"
	}
	g := &generator{taken: map[string]bool{"Meta": true, "PartitionKey": true, "RowKey": true, "Rest": true, "Timestamp": true}, imports: map[string]bool{}}
	for _, p := range r.Properties {
		g.field(p)
	}
	typ := goName(r.Table)
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n", pkg)
	for _, path := range []string{"time", "", "github.com/google/uuid", "github.com/tablepatterns/tablepatterns/tables"} {
		switch {
		case path == "":
			b.WriteString("\n")
		case path == "github.com/tablepatterns/tablepatterns/tables", g.imports[path]:
			fmt.Fprintf(&b, "%q\n", path)
		}
	}
	fmt.Fprintf(&b, ")\n\n// %s is an entity of table %s, of which there were %s.\ntype %[1]s struct {\ntables.Meta\n\nPartitionKey, RowKey string\n\n", typ, r.Table, count(r.Entities))
	b.WriteString(g.text.String())
	b.WriteString("\n// Rest holds the properties without a field, so that a Replace keeps them.\nRest map[string]tables.Value `table:\",rest\"`\n}\n")
	source, err := format.Source([]byte(b.String()))
	if err != nil {
		return b.String() // only an illegal name makes Source fail, and goName returns none
	}
	return string(source)
}

type generator struct {
	text    strings.Builder
	taken   map[string]bool
	imports map[string]bool
}

// mostFields is the service's limit for an entity's properties.
const mostFields = 252

func (g *generator) field(p Property) {
	if len(p.Types) == 0 || len(g.taken) >= mostFields || edm.CheckName(p.Name) != nil {
		return // the field Rest holds the property
	}
	name := goName(p.Name)
	for n := 2; g.taken[name]; n++ {
		name = fmt.Sprintf("%s%d", goName(p.Name), n)
	}
	g.taken[name] = true
	typ, note := goType(p.Types)
	switch {
	case typ == "time.Time":
		g.imports["time"] = true
	case typ == "uuid.UUID":
		g.imports["github.com/google/uuid"] = true
	}
	if p.Absent > 0 && typ != "[]byte" && typ != "tables.Value" {
		typ, note = "*"+typ, strings.TrimPrefix(note+fmt.Sprintf("; %s lack it", count(p.Absent)), "; ")
	}
	tag := ""
	if name != p.Name {
		tag = fmt.Sprintf(" `table:%q`", p.Name)
	}
	if note != "" {
		note = " // " + note
	}
	fmt.Fprintf(&g.text, "%s %s%s%s\n", name, typ, tag, note)
}

var goTypes = map[string]string{
	"Edm.String": "string", "Edm.Binary": "[]byte", "Edm.Boolean": "bool", "Edm.Int32": "int32", "Edm.Int64": "int64",
	"Edm.Double": "float64", "Edm.DateTime": "time.Time", "Edm.Guid": "uuid.UUID",
}

// goType returns a note if there are several types.
func goType(types []TypeCount) (typ, note string) {
	if len(types) == 1 {
		return goTypes[types[0].Type], ""
	}
	var all []string
	integers := true
	for _, t := range types {
		all = append(all, count(t.Rows)+" "+t.Type)
		integers = integers && (t.Type == "Edm.Int32" || t.Type == "Edm.Int64")
	}
	if integers {
		return "int64", strings.Join(all, ", ")
	}
	return "tables.Value", strings.Join(all, ", ")
}

// goName makes an exported Go name.
func goName(text string) string {
	var b strings.Builder
	upper := true
	for _, r := range text {
		switch {
		case r == '_' || r == '-' || r == '.' || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
			continue
		case b.Len() == 0 && !unicode.IsUpper(unicode.ToUpper(r)): // a digit, or a letter without case
			b.WriteString("X")
			b.WriteRune(r)
		case upper:
			b.WriteRune(unicode.ToUpper(r))
		default:
			b.WriteRune(r)
		}
		upper = false
	}
	if b.Len() == 0 {
		return "X"
	}
	return b.String()
}
