package projectrules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// coveragePage lists every recommendation of the guide under the titles of its sections, with what meets it.
const coveragePage = "docs/reference/coverage.md"

// The ways in which a row of coveragePage says that a recommendation is met.
const (
	metByCode = "code" // an Example or a test runs it
	metByPage = "page" // a section of a page explains it
)

var functionName = regexp.MustCompile(`\.(Test|Example)(_|[A-Z]|$)`)

// coverageGaps finds sections of the guide without a row in the page, rows that name no Example, test or section that exists,
// and totals that are not the numbers of rows.
func coverageGaps(page string, sources []source, sections []string) []string {
	var bad []string
	known := functionsOf(sources)
	exists := maps.Clone(known.runs)
	maps.Copy(exists, known.tests)
	headings := headingsAbove(page)
	seen, totals := map[string]bool{}, map[string]int{}
	for _, row := range tableRows(page, "recommendation", "met by", "how") {
		at := fmt.Sprintf("%s:%d: ", coveragePage, row.line)
		if len(row.cells) != 3 {
			bad = append(bad, at+"a row has three cells")
			continue
		}
		section := headings[row.line]
		if !slices.Contains(sections, section) {
			bad = append(bad, at+section+" is no section of the guide")
		}
		if statement := section + "\n" + row.cells[0]; seen[statement] {
			bad = append(bad, at+"the recommendation has two rows")
		} else {
			seen[section], seen[statement] = true, true
		}
		totals[row.cells[2]]++
		totals["all"]++
		bad = append(bad, wayGaps(at, row.cells[1], row.cells[2], exists)...)
	}
	for _, section := range sections {
		if !seen[section] {
			bad = append(bad, coveragePage+": no row for "+section)
		}
	}
	return append(bad, wrongTotals(page, totals)...)
}

// wayGaps finds what is wrong with the last two cells of a row.
func wayGaps(at, met, how string, exists map[string]bool) []string {
	var bad []string
	named := 0
	for _, name := range quotedName.FindAllStringSubmatch(met, -1) {
		if !functionName.MatchString(name[1]) {
			continue
		}
		if named++; !exists[name[1]] {
			bad = append(bad, at+name[1]+" is not there, or does not run")
		}
	}
	switch {
	case how == metByCode && named == 0:
		bad = append(bad, at+"no Example and no test")
	case how == metByPage && !inlineLink.MatchString(met):
		bad = append(bad, at+"no link to a page")
	case how == metByPage && named > 0:
		bad = append(bad, at+"a row with an Example or a test is "+metByCode)
	case how != metByCode && how != metByPage:
		bad = append(bad, at+how+" is neither "+metByCode+" nor "+metByPage)
	}
	return bad
}

// wrongTotals finds totals of the page that are missing, or are not the numbers of its rows.
func wrongTotals(page string, totals map[string]int) []string {
	var bad []string
	said := map[string]string{}
	for _, row := range tableRows(page, "how", "rows") {
		if len(row.cells) == 2 {
			said[row.cells[0]] = row.cells[1]
		}
	}
	for _, how := range []string{metByCode, metByPage, "all"} {
		if n := strconv.Itoa(totals[how]); said[how] != n {
			bad = append(bad, fmt.Sprintf("%s: %q rows of %s, there are %s", coveragePage, said[how], how, n))
		}
	}
	return bad
}

// headingsAbove are the texts of the headings under which the lines of a document stand, by number from 1.
func headingsAbove(text string) map[int]string {
	above := map[int]string{}
	lines := proseLines(text)
	heading := ""
	for _, i := range slices.Sorted(maps.Keys(lines)) {
		if title := strings.TrimLeft(lines[i], "#"); title != lines[i] {
			heading = strings.TrimSpace(title)
		}
		above[i+1] = heading
	}
	return above
}

func TestRecommendationsAreCovered(t *testing.T) {
	report(t, coverageGaps(projectDocuments(t)[coveragePage], projectSources(t), guideSections))
}

func TestRecommendationsAreCoveredCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a_test.go": "package a\n\nfunc Example() {\n\tf()\n\t// Output: x\n}\n\nfunc ExampleStill() { f() }\n\nfunc TestA(t *testing.T) {}\n",
	})
	const head = "\n| recommendation | met by | how |\n| --- | --- | --- |\n"
	wantViolations(t, coverageGaps("| how | rows |\n| --- | --- |\n| code | 7 |\n| page | 4 |\n"+
		"## One\n"+head+ // row from line 9
		"| a | `T.Method`: `a.Example`, `a.TestA` | code |\n"+
		"| a | [p](p.md#q) | page |\n"+
		"| b | `a.ExampleStill` | code |\n"+
		"| c | `T.Method`, [p](p.md) | code |\n"+
		"| d | p | page |\n"+
		"### Two\n"+head+ // row from line 18
		"| a | `a.TestGone` | code |\n"+
		"| b | [p](p.md), `a.TestA` | page |\n"+
		"| c | `a.TestA` | both |\n"+
		"| d | `a.TestA` |\n"+
		"## Four\n"+head+
		"| a | `a.TestA` | code |\n", sources, []string{"One", "Two", "Three"}),
		"coverage.md:10: the recommendation has two rows",
		"coverage.md:11: a.ExampleStill is not there, or does not run",
		"coverage.md:12: no Example and no test",
		"coverage.md:13: no link to a page",
		"coverage.md:18: a.TestGone is not there",
		"coverage.md:19: a row with an Example or a test is code",
		"coverage.md:20: both is neither code nor page",
		"coverage.md:21: a row has three cells",
		"Four is no section of the guide",
		"coverage.md: no row for Three",
		`coverage.md: "7" rows of code, there are 5`,
		`coverage.md: "4" rows of page, there are 3`,
		`coverage.md: "" rows of all, there are 9`,
	)
}
