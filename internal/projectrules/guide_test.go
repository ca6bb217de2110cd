package projectrules

import (
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// guidePage maps the sections of the Azure Storage Table Design Guide to what makes them work.
const guidePage = "docs/reference/guide.md"

// guideSections are the titles of the guide's sections, in its order. Left out are the parts that all its patterns have
// alike ("Context and problem" and so on), which are the parts of the patterns' pages, and the credits.
var guideSections = []string{
	"About the Azure Table service", "Table partitions", "Entity Group Transactions", "Capacity considerations", "Cost considerations",
	"Guidelines for table design",
	"Design for querying", "How your choice of PartitionKey and RowKey impacts query performance", "Choosing an appropriate PartitionKey",
	"Optimizing queries for the Table service", "Sorting data in the Table service",
	"Design for data modification", "Optimizing the performance of insert, update, and delete operations",
	"Ensuring consistency in your stored entities", "Ensuring your design for efficient modifications facilitates efficient queries",
	"Encrypting Table Data",
	"Modelling relationships", "One-to-many relationships", "One-to-one relationships", "Join in the client", "Inheritance relationships",
	"Table Design Patterns", "Intra-partition secondary index pattern", "Inter-partition secondary index pattern",
	"Eventually consistent transactions pattern", "Recovering from failures", "Index Entities Pattern", "Denormalization pattern",
	"Compound key pattern", "Log tail pattern", "High volume delete pattern", "Data series pattern", "Wide entities pattern",
	"Large entities pattern", "Prepend/append anti-pattern", "Log data anti-pattern",
	"Implementation considerations", "Retrieving entities", "Executing a point query using the Storage Client Library",
	"Retrieving multiple entities using LINQ", "Retrieving large numbers of entities from a query", "Server-side projection",
	"Modifying entities", "Managing concurrency", "Merge or replace",
	"Working with heterogeneous entity types", "Retrieving heterogeneous entity types", "Modifying heterogeneous entity types",
	"Controlling access with Shared Access Signatures", "Asynchronous and parallel operations",
}

// tableRow is one row of a table in a document, without the head.
type tableRow struct {
	line  int // from 1
	cells []string
}

// tableRows are the rows of the tables in a document whose head has these columns.
func tableRows(text string, columns ...string) []tableRow {
	var rows []tableRow
	lines := proseLines(text)
	within := false
	for _, i := range slices.Sorted(maps.Keys(lines)) {
		line := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(line, "|") {
			within = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		switch {
		case slices.Equal(cells, columns):
			within = true
		case within && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, tableRow{line: i + 1, cells: cells})
		}
	}
	return rows
}

// functions are the top-level functions in test files, by package directory and name, and the examples that go test runs.
type functions struct{ tests, runs map[string]bool }

func functionsOf(sources []source) functions {
	f := functions{map[string]bool{}, map[string]bool{}}
	files := map[string][]*ast.File{}
	for _, s := range sources {
		if !s.isTest() {
			continue
		}
		files[s.dir()] = append(files[s.dir()], s.file)
		for _, d := range s.file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
				f.tests[s.dir()+"."+d.Name.Name] = true
			}
		}
	}
	for dir, in := range files {
		for _, e := range doc.Examples(in...) {
			f.runs[dir+".Example"+e.Name] = e.Output != "" || e.EmptyOutput || e.Name == "NewAccount" // which needs an account
		}
	}
	return f
}

var quotedName = regexp.MustCompile("`([^`]+)`")

// guideGaps finds sections of the guide without a row in the page, rows of no section, and names of functions that are
// not there.
func guideGaps(page string, sources []source, sections []string) []string {
	var bad []string
	known := functionsOf(sources)
	seen := map[string]bool{}
	for _, row := range tableRows(page, "section of the guide", "page", "example", "test") {
		at := fmt.Sprintf("%s:%d: ", guidePage, row.line)
		if len(row.cells) != 4 {
			bad = append(bad, at+"a row has four cells")
			continue
		}
		if section := row.cells[0]; !slices.Contains(sections, section) || seen[section] {
			bad = append(bad, at+section+" is no section of the guide, or has two rows")
		}
		seen[row.cells[0]] = true
		if !inlineLink.MatchString(row.cells[1]) {
			bad = append(bad, at+"no link to a page")
		}
		for i, exists := range []map[string]bool{known.runs, known.tests} {
			names := quotedName.FindAllStringSubmatch(row.cells[2+i], -1)
			if len(names) == 0 {
				bad = append(bad, at+"no "+[]string{"example", "test"}[i])
			}
			for _, name := range names {
				if !exists[name[1]] {
					bad = append(bad, at+name[1]+" is not there, or does not run")
				}
			}
		}
	}
	for _, section := range sections {
		if !seen[section] {
			bad = append(bad, guidePage+": no row for "+section)
		}
	}
	return bad
}

// guideFigures is the number of figures of the guide.
const guideFigures = 29

// figureGaps finds figures of the guide without a row in the page, in their order, and rows that do not link to where the figure is shown.
// TestLinksLeadSomewhere checks the links themselves.
func figureGaps(page string, figures int) []string {
	var bad []string
	rows := tableRows(page, "figure of the guide", "shows", "here")
	if len(rows) != figures {
		bad = append(bad, fmt.Sprintf("%s: the table of figures has %d rows, the guide %d figures", guidePage, len(rows), figures))
	}
	for i, row := range rows {
		if len(row.cells) != 3 || row.cells[0] != strconv.Itoa(i+1) || !strings.Contains(row.cells[2], "#") || !inlineLink.MatchString(row.cells[2]) {
			bad = append(bad, fmt.Sprintf("%s:%d: figure %d needs its number, a description, and a link to a heading", guidePage, row.line, i+1))
		}
	}
	return bad
}

func TestGuideFiguresAreShown(t *testing.T) {
	report(t, figureGaps(projectDocuments(t)[guidePage], guideFigures))
}

func TestGuideFiguresAreShownCanFail(t *testing.T) {
	const head = "| figure of the guide | shows | here |\n| --- | --- | --- |\n"
	wantViolations(t, figureGaps(head+"| 1 | rows | [a](a.md#b) |\n| 3 | rows | [a](a.md#b) |\n| 3 | rows | [a](a.md) |\n| 4 | rows | a#b |\n", 5),
		"the table of figures has 4 rows, the guide 5 figures",
		"guide.md:4: figure 2", "guide.md:5: figure 3", "guide.md:6: figure 4")
}

func TestGuideIsCovered(t *testing.T) {
	report(t, guideGaps(projectDocuments(t)[guidePage], projectSources(t), guideSections))
}

func TestGuideIsCoveredCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a_test.go": "package a\n\nfunc Example() {\n\tf()\n\t// Output: x\n}\n\nfunc ExampleStill() { f() }\n\nfunc TestA(t *testing.T) {}\n",
		"a/a.go":      "package a\n\nfunc TestB() {}\n",
	})
	const head = "| section of the guide | page | example | test |\n| --- | --- | --- | --- |\n"
	wantViolations(t, guideGaps(head+
		"| One | [a](a.md) | `a.Example` | `a.TestA` |\n"+
		"| One | [a](a.md) | `a.Example` | `a.TestA` |\n"+
		"| Two | a | `a.Example`, `a.ExampleStill` | `a.TestA` |\n"+
		"| Three | [a](a.md) | none | `a.TestA` |\n"+
		"| Four | [a](a.md) | `a.Example` | `a.TestB` |\n"+
		"| Seven | [a](a.md) | `b.Example` |\n"+
		"\n| Five | other table |\n", sources, []string{"One", "Two", "Three", "Four", "Five"}),
		"docs/reference/guide.md:4: One is no section",
		"docs/reference/guide.md:5: no link",
		"docs/reference/guide.md:5: a.ExampleStill",
		"docs/reference/guide.md:6: no example",
		"docs/reference/guide.md:7: a.TestB",
		"docs/reference/guide.md:8: a row has four cells",
		"docs/reference/guide.md: no row for Five",
	)
}
