package projectrules

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The chain from docs/reference/costs.md to a count: a cell says in words what an operation takes, such as "1, and 1 for each key";
// a case of costCases says how many keys a test has, and which number in the test is what it wants. This rule holds that the
// cell, reckoned for these keys, is the test's number; the test holds that the number is what is sent.

const costsPage = "docs/reference/costs.md"

// formula is what a cell says: a number, and one for each unit. base says that it is beside what something else takes.
type formula struct {
	fixed int
	units map[string]int
	base  bool
}

var (
	costTerm = regexp.MustCompile(`^(?:and )?([0-9]+)(?: (.*))?$`)
	perUnit  = regexp.MustCompile(`^(.*?)(?:\bfor each|^an?) (.+)$`)
	digit    = regexp.MustCompile(`[0-9]`)
	marked   = regexp.MustCompile(`«([^»]+)»`)
	operand  = regexp.MustCompile(`[a-z][A-Za-z.]*`)
	namedRow = regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z]+)`")
)

// readFormula reads one alternative of a cell. Terms without a number are words for the reader.
func readFormula(text string) (formula, error) {
	f := formula{units: map[string]int{}}
	numbers := 0
	for _, term := range strings.Split(text, ", ") {
		term = strings.TrimSpace(term)
		m := costTerm.FindStringSubmatch(term)
		if m == nil {
			if digit.MatchString(term) {
				return f, fmt.Errorf("%q does not begin with its number", term)
			}
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return f, err
		}
		numbers++
		words, unit := m[2], ""
		if u := perUnit.FindStringSubmatch(words); u != nil {
			words, unit = u[1], u[2]
		}
		f.base = f.base || strings.HasPrefix(words, "more")
		switch {
		case digit.MatchString(words):
			return f, fmt.Errorf("%q has a second number", term)
		case unit == "":
			f.fixed += n
		default:
			f.units[unit] += n
		}
	}
	if numbers == 0 {
		return f, fmt.Errorf("%q has no number", text)
	}
	return f, nil
}

// reckon is the formula's value. "without" is what the base takes.
func (f formula) reckon(values map[string]int) int {
	sum := f.fixed
	for unit, n := range f.units {
		sum += n * values[unit]
	}
	if f.base {
		sum += values["without"]
	}
	return sum
}

// costCase is one operation of the page, and the place in a test that wants its number.
type costCase struct {
	section, operation string
	values             map[string]int
	test               string
	fragments          []string // with the number's parts between « and »
}

// readCases reads lines of operation | values | test | fragment under lines that name a section, "# ...".
func readCases(text string) ([]costCase, error) {
	var cases []costCase
	section := ""
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = name
			continue
		}
		parts := strings.SplitN(line, " | ", 4)
		if len(parts) != 4 {
			return nil, fmt.Errorf("%q has not four parts", line)
		}
		c := costCase{section: section, operation: parts[0], values: map[string]int{}, test: parts[2], fragments: strings.Split(parts[3], " … ")}
		for _, value := range strings.Split(parts[1], ", ") {
			if value == "" {
				continue
			}
			unit, number, _ := strings.Cut(value, "=")
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			c.values[unit] = n
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// wanted is the number that the case's test wants: the sum of what is marked in the fragments, each of which must stand in a
// file with the test. Names in a mark are those of the case's values.
func (c costCase) wanted(files []string) (int, error) {
	sum := 0
	for _, fragment := range c.fragments {
		plain := strings.Join(strings.Fields(strings.NewReplacer("«", "", "»", "").Replace(fragment)), " ")
		if !slices.ContainsFunc(files, func(text string) bool { return strings.Contains(text, plain) }) {
			return 0, fmt.Errorf("%s, nor the files beside it, has not %q any more", c.test, plain)
		}
		for _, m := range marked.FindAllStringSubmatch(fragment, -1) {
			var missing error
			expression := operand.ReplaceAllStringFunc(m[1], func(name string) string {
				n, ok := c.values[name]
				if !ok {
					missing = fmt.Errorf("no value for %s in %q", name, m[1])
				}
				return strconv.Itoa(n)
			})
			if missing != nil {
				return 0, missing
			}
			v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
			if err != nil {
				return 0, err
			}
			n, _ := constant.Int64Val(v.Value)
			sum += int(n)
		}
	}
	return sum, nil
}

// costRow is one row of the page, taken apart.
type costRow struct {
	at       string
	formulas map[string]formula // by operation, without backquotes
	tests    map[string]bool
}

// readCosts reads the page's rows, by section. problems are rows that cannot be read, and numbers outside of tables.
func readCosts(page string) (rows map[string][]costRow, problems []string) {
	rows = map[string][]costRow{}
	section := ""
	lines := proseLines(page)
	inTable := tableRows(page, "operation", "requests", "test")
	for _, i := range slices.Sorted(maps.Keys(lines)) {
		line := lines[i]
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
		}
		at := fmt.Sprintf("%s:%d: ", costsPage, i+1)
		n := slices.IndexFunc(inTable, func(r tableRow) bool { return r.line == i+1 })
		if n < 0 {
			if digit.MatchString(inlineCode.ReplaceAllString(line, "")) && !strings.HasPrefix(line, "|") {
				problems = append(problems, at+"a number outside of the tables, which no test holds")
			}
			continue
		}
		row := costRow{at: at, formulas: map[string]formula{}, tests: map[string]bool{}}
		cells := inTable[n].cells
		if len(cells) != 3 {
			problems = append(problems, at+"a row has three cells")
			continue
		}
		operations, costs := strings.Split(cells[0], "; "), strings.Split(strings.ReplaceAll(cells[1], "`", ""), "; ")
		if len(operations) != len(costs) {
			problems = append(problems, fmt.Sprintf("%s%d operations and %d costs", at, len(operations), len(costs)))
			continue
		}
		for j, operation := range operations {
			f, err := readFormula(costs[j])
			if err != nil {
				problems = append(problems, at+err.Error())
			}
			row.formulas[strings.ReplaceAll(operation, "`", "")] = f
		}
		for _, m := range namedRow.FindAllStringSubmatch(cells[2], -1) {
			row.tests[m[1]] = true
		}
		rows[section] = append(rows[section], row)
	}
	return rows, problems
}

// uncounted finds numbers of the page that no test holds, or that are not those of the test.
func uncounted(page string, cases []costCase, sources []source) []string {
	rows, bad := readCosts(page)
	files := map[string][]string{}
	for _, s := range sources {
		if s.isTest() {
			files[s.dir()] = append(files[s.dir()], strings.Join(strings.Fields(s.text), " "))
		}
	}
	known := functionsOf(sources).tests
	reached := map[string]bool{} // operations and units with a case, tests that a row names
	for _, c := range cases {
		about := fmt.Sprintf("%s, %s: ", c.section, c.operation)
		n := slices.IndexFunc(rows[c.section], func(r costRow) bool { _, ok := r.formulas[c.operation]; return ok })
		dir, _, _ := strings.Cut(c.test, ".")
		if n < 0 || !known[c.test] {
			bad = append(bad, about+"there is no such row, or no "+c.test)
			continue
		}
		row := rows[c.section][n]
		f := row.formulas[c.operation]
		want, err := c.wanted(files[dir])
		switch got := f.reckon(c.values); {
		case err != nil:
			bad = append(bad, about+err.Error())
		case got != want:
			bad = append(bad, fmt.Sprintf("%s%sthe page says %d, %s wants %d", row.at, about, got, c.test, want))
		case !row.tests[c.test]:
			bad = append(bad, row.at+about+c.test+" counts it, and the row does not name it")
		}
		reached[row.at+c.operation], reached[row.at+c.test] = true, true
		for unit, v := range c.values {
			reached[row.at+c.operation+"/"+unit] = reached[row.at+c.operation+"/"+unit] || v > 0
		}
	}
	for _, section := range slices.Sorted(maps.Keys(rows)) {
		for _, row := range rows[section] {
			bad = append(bad, row.unreached(reached)...)
		}
	}
	return bad
}

// unreached finds what of a row no case is about.
func (r costRow) unreached(reached map[string]bool) []string {
	var bad []string
	for _, operation := range slices.Sorted(maps.Keys(r.formulas)) {
		if !reached[r.at+operation] {
			bad = append(bad, r.at+operation+": no case of a test")
			continue
		}
		for _, unit := range slices.Sorted(maps.Keys(r.formulas[operation].units)) {
			if !reached[r.at+operation+"/"+unit] {
				bad = append(bad, r.at+operation+": no case with a "+unit)
			}
		}
	}
	for _, test := range slices.Sorted(maps.Keys(r.tests)) {
		if !reached[r.at+test] {
			bad = append(bad, r.at+test+" is named, and no case is of it")
		}
	}
	return bad
}

func TestCostsAreCounted(t *testing.T) {
	cases, err := readCases(costCases)
	if err != nil {
		t.Fatal(err)
	}
	report(t, uncounted(projectDocuments(t)[costsPage], cases, projectSources(t)))
}

func TestCostsAreCountedCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a_test.go": "package a\n\nfunc TestA(t *testing.T) {\n\tcost(1, \"Get\")\n\tcost(1+2, \"Find\")\n\tcost(4,\n\t\t\"More\")\n\twant := reads + 1\n}\n",
	})
	const head = "# Costs\n\n## One\n\n| operation | requests | test |\n| --- | --- | --- |\n"
	const good = "| `Get`; `Find`, all | 1; 1, and 1 for each `key` | `a.TestA` |\n| `More` | 2 more, 1 a page | `a.TestA` |\n| `Sum` | 3 | `a.TestA` |\n"
	const cases = "# One\nGet |  | a.TestA | cost(«1», \"Get\")\nFind, all | key=2 | a.TestA | cost(«1+2», \"Find\")\n" +
		"More | without=1, page=1 | a.TestA | cost(«4», \"More\")\nSum | reads=2 | a.TestA | want := «reads + 1»\n"
	for name, c := range map[string]struct {
		page, cases string
		want        []string
	}{
		"good":        {head + good, cases, nil},
		"number":      {head + strings.Replace(good, "1, and 1", "2, and 1", 1), cases, []string{"the page says 4, a.TestA wants 3"}},
		"coefficient": {head + strings.Replace(good, "1 for each", "2 for each", 1), cases, []string{"the page says 5, a.TestA wants 3"}},
		"unit":        {head + strings.Replace(good, "1 a page", "1 a row", 1), cases, []string{"the page says 3, a.TestA wants 4", "no case with a row"}},
		"prose":       {head + good + "\nIt takes 7.\n", cases, []string{"a number outside of the tables"}},
		"row":         {head + good + "| `Put` | 1 | `a.TestA` |\n", cases, []string{"Put: no case", "a.TestA is named"}},
		"grammar":     {head + strings.Replace(good, "| 3 |", "| up to 3 |", 1), cases, []string{"does not begin with its number", `"up to 3" has no number`}},
		"test":        {head + strings.Replace(good, "| 3 | `a.TestA` |", "| 3 | |", 1), cases, []string{"the row does not name it"}},
		"fragment":    {head + good, strings.Replace(cases, `"Get"`, `"Got"`, 1), []string{`has not "cost(1, \"Got\")" any more`}},
		"operation":   {head + good, strings.Replace(cases, "Sum |", "Sun |", 1), []string{"there is no such row", "Sum: no case", "a.TestA is named"}},
		"value":       {head + good, strings.Replace(cases, "reads=2", "rows=2", 1), []string{"no value for reads"}},
		"cells":       {head + good + "| `Put` | 1; 2 | |\n", cases, []string{"1 operations and 2 costs"}},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := readCases(c.cases)
			if err != nil {
				t.Fatal(err)
			}
			got := uncounted(c.page, read, sources)
			if name == "grammar" {
				got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "the page says") })
				c.want = c.want[:1]
			}
			wantViolations(t, got, c.want...)
		})
	}
}
