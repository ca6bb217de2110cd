package projectrules

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attackersPage says who can do what to which package.
const attackersPage = "docs/reference/who-can-do-what.md"

// everyPackage is the heading of the table of what holds for all packages.
const everyPackage = "Every package"

// attackerWords stand in rows of that table: one for each right that an attacker may have.
var attackerWords = []string{"answers for the service", "token", "position", "values", "one partition", "the table", "name other keys", "queue", "blobs of", "registry rows", "signed address", "Key Vault"}

// attackedPackages are the packages that need a table: those that users import, but for the tests' own, and the command.
func attackedPackages(sources []source) []string {
	packages := []string{"cmd/tablepatterns"}
	for _, s := range sources {
		if dir := s.dir(); !s.isTest() && isLibrary(dir) && layer(dir) != "storagetest" && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
	}
	return packages
}

var testReference = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")

// unshownAttacks finds packages without a table, attackers that the table of every package leaves out, what an attacker "cannot" do
// without a test that tries it, and tests that the named package does not have.
func unshownAttacks(page string, sources []source) []string {
	tests := map[string]bool{}
	for _, s := range sources {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest() && f.Recv == nil {
				tests[s.dir()+"."+f.Name.Name] = true
			}
		}
	}
	var bad []string
	sections, headings := headedSections(page)
	described := map[string]bool{}
	for _, heading := range headings {
		rows := attackerRows(sections[heading])
		for _, pkg := range strings.Split(heading, ", ") {
			described[pkg] = len(rows) > 0
		}
		bad = append(bad, unshownRows(heading, rows)...)
	}
	for _, pkg := range attackedPackages(sources) {
		if !described[pkg] {
			bad = append(bad, fmt.Sprintf("%s: no table for %s", attackersPage, pkg))
		}
	}
	for _, words := range attackerWords {
		if !slices.ContainsFunc(attackerRows(sections[everyPackage]), func(cells []string) bool { return strings.Contains(cells[0], words) }) {
			bad = append(bad, fmt.Sprintf("%s: %s: no row of who has to do with %q", attackersPage, everyPackage, words))
		}
	}
	for _, m := range testReference.FindAllStringSubmatch(page, -1) {
		if !tests[m[1]+"."+m[2]] {
			bad = append(bad, fmt.Sprintf("%s: no test %s", attackersPage, m[0]))
		}
	}
	return bad
}

// attackerRows are the cells of a section's table, without those of its head.
func attackerRows(section string) (rows [][]string) {
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 4 && !strings.HasPrefix(strings.TrimSpace(cells[0]), "---") {
			rows = append(rows, cells)
		}
	}
	return rows[min(1, len(rows)):]
}

// unshownRows finds rows that do not say what the attacker can do, and what somebody cannot do without a test, or the other way round.
func unshownRows(heading string, rows [][]string) (bad []string) {
	for _, cells := range rows {
		who, cannot := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2])
		named := testReference.FindAllStringSubmatch(cells[3], -1)
		if promises := cannot != "" && !strings.HasPrefix(cannot, "nothing"); promises != (len(named) > 0) {
			bad = append(bad, fmt.Sprintf("%s: %s: who %s: what somebody cannot do and a test that tries it belong together", attackersPage, heading, who))
		}
		if strings.TrimSpace(cells[1]) == "" {
			bad = append(bad, fmt.Sprintf("%s: %s: who %s: it does not say what they can do", attackersPage, heading, who))
		}
	}
	return bad
}

func TestAttacksAreShown(t *testing.T) {
	report(t, unshownAttacks(projectDocuments(t)[attackersPage], projectSources(t)))
}

func TestAttacksAreShownCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"logdata/a_test.go": "package logdata\n\nfunc TestForged(t *testing.T) {}\n\nfunc FuzzRead(f *testing.F) {}\n",
		"logdata/a.go":      "package logdata\n\nfunc TestInNoTest() {}\n",
		"access/a.go":       "package access\n",
		"access/a_test.go":  "package access\n\nfunc TestElsewhere(t *testing.T) {}\n",
	})
	table := "| attacker | can | cannot | shown by |\n| --- | --- | --- | --- |\n"
	every := "## " + everyPackage + "\n\n" + table
	for _, words := range attackerWords {
		every += "| " + words + " | x | | |\n"
	}
	page := every + "\n## access, cmd/tablepatterns\n\n" + table + "| a | x | | |\n"
	good := page + "\n## logdata\n\n" + table + "| a | x | y | `logdata.TestForged`, `logdata.FuzzRead` |\n"
	wantViolations(t, unshownAttacks(good, sources))
	wantViolations(t, unshownAttacks(page, sources), "no table for logdata")
	wantViolations(t, unshownAttacks(page+"\n## logdata\n\n"+table, sources), "no table for logdata")
	wantViolations(t, unshownAttacks(good+"| b | x | y | |\n| c | x | | `logdata.TestForged` |\n| d | | | |\n| e | x | y | `logdata.TestGone`, `logdata.TestInNoTest`, `logdata.TestElsewhere` |\n", sources),
		"who b: what somebody cannot", "who c: what somebody cannot", "who d: it does not say", "no test `logdata.TestGone`", "no test `logdata.TestInNoTest`", "no test `logdata.TestElsewhere`")
	wantViolations(t, unshownAttacks(strings.Replace(good, "| queue | x | | |\n", "", 1), sources), everyPackage+": no row of who has to do with \"queue\"")
}
