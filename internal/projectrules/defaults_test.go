package projectrules

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// defaultsPage lists every option with its default.
const defaultsPage = "docs/reference/defaults.md"

// reportsNamedAsOptions are structs that the library returns, whose names end like those of options.
var reportsNamedAsOptions = map[string]bool{"inspect.Schema": true}

var numberInText = regexp.MustCompile(`[0-9][0-9,.]*[0-9]|[0-9]`)

// optionsOf returns the doc comment of each exported field of an option or schema struct of a public package, by package.Type.Field.
func optionsOf(sources []source) map[string]string {
	options := map[string]string{}
	for _, s := range sources {
		if s.isTest() || !isLibrary(s.dir()) {
			continue
		}
		for _, decl := range s.file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				fields, ok := named.Type.(*ast.StructType)
				name := s.dir() + "." + named.Name.Name
				if !ok || !named.Name.IsExported() || !isOptions(named.Name.Name) || reportsNamedAsOptions[name] {
					continue
				}
				for _, field := range fields.Fields.List {
					for _, f := range field.Names {
						if f.IsExported() {
							options[name+"."+f.Name] = strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
						}
					}
				}
			}
		}
	}
	return options
}

func isOptions(name string) bool {
	return strings.HasSuffix(name, "Options") || strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Schema")
}

// defaultsGaps finds options without a row, rows without an option, options without a doc comment, and numbers of a row that the doc
// comment does not have.
func defaultsGaps(page string, sources []source) []string {
	var bad []string
	options, headings, seen := optionsOf(sources), headingsAbove(page), map[string]bool{}
	for _, row := range tableRows(page, "option", "default") {
		at := fmt.Sprintf("%s:%d: ", defaultsPage, row.line)
		if len(row.cells) != 2 || row.cells[1] == "" {
			bad = append(bad, at+"a row has an option and its default")
			continue
		}
		name := headings[row.line] + "." + strings.Trim(row.cells[0], "`")
		comment, ok := options[name]
		switch {
		case !ok:
			bad = append(bad, at+name+" is no option")
		case seen[name]:
			bad = append(bad, at+name+" has two rows")
		case comment == "":
			bad = append(bad, at+name+" has no doc comment")
		}
		seen[name] = true
		for _, number := range numberInText.FindAllString(row.cells[1], -1) {
			if ok && number != "0" && !strings.Contains(comment, number) {
				bad = append(bad, at+"the doc comment of "+name+" does not say "+number)
			}
		}
	}
	for name := range options {
		if !seen[name] {
			bad = append(bad, defaultsPage+": no row for "+name)
		}
	}
	return bad
}

// TestDefaultsPage: each option of a public package has a row with its default, each row is of an option, and the numbers of a row stand
// in the option's doc comment.
func TestDefaultsPage(t *testing.T) {
	report(t, defaultsGaps(projectDocuments(t)[defaultsPage], projectSources(t)))
}

// TestDefaultsPageCanFail: a page with a wrong number, a missing, an unknown and a repeated option is found.
func TestDefaultsPageCanFail(t *testing.T) {
	sources := parse(t, map[string]string{"tables/options.go": `package tables

type ReadOptions struct {
	// Concurrency is how many requests are in flight (default 8).
	Concurrency int
	// Top ends the read (default: no limit).
	Top int
	Silent bool
}

type Report struct{ Rows int }
`})
	page := "# Options\n\n## tables\n\n| option | default |\n| --- | --- |\n| `ReadOptions.Concurrency` | 16 |\n| `ReadOptions.Concurrency` | 8 |\n| `ReadOptions.Silent` | `false` |\n| `Report.Rows` | 0 |\n"
	got := strings.Join(defaultsGaps(page, sources), "\n")
	for _, want := range []string{"does not say 16", "ReadOptions.Concurrency has two rows", "tables.ReadOptions.Silent has no doc comment", "tables.Report.Rows is no option", "no row for tables.ReadOptions.Top"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not found in:\n%s", want, got)
		}
	}
}
