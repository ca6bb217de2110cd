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

// attackedPackages have a table each on that page.
var attackedPackages = []string{"eventual", "largeentities", "encryption", "access", "indexentities", "logdata", "backup"}

// attackerWords begin the rows of each table: one for each right that an attacker may have.
var attackerWords = []string{"queue", "one partition", "the table", "blobs of", "registry rows", "signed address", "Key Vault"}

var testReference = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")

// unshownAttacks finds packages without a table, attackers that a table leaves out, what an attacker "cannot" do without a test that
// tries it, and tests that the named package does not have.
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
	sections, _ := headedSections(page)
	for _, pkg := range attackedPackages {
		var rows [][]string
		for line := range strings.Lines(sections[pkg]) {
			if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 4 && !strings.HasPrefix(strings.TrimSpace(cells[0]), "---") {
				rows = append(rows, cells)
			}
		}
		for _, words := range attackerWords {
			if !slices.ContainsFunc(rows, func(cells []string) bool { return strings.Contains(cells[0], words) }) {
				bad = append(bad, fmt.Sprintf("%s: %s: no row of who has to do with %q", attackersPage, pkg, words))
			}
		}
		for _, cells := range rows[min(1, len(rows)):] {
			who, cannot := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2])
			named := testReference.FindAllStringSubmatch(cells[3], -1)
			if promises := cannot != "" && !strings.HasPrefix(cannot, "nothing"); promises != (len(named) > 0) {
				bad = append(bad, fmt.Sprintf("%s: %s: who %s: what somebody cannot do and a test that tries it belong together", attackersPage, pkg, who))
			}
			if strings.TrimSpace(cells[1]) == "" {
				bad = append(bad, fmt.Sprintf("%s: %s: who %s: it does not say what they can do", attackersPage, pkg, who))
			}
		}
	}
	for _, m := range testReference.FindAllStringSubmatch(page, -1) {
		if !tests[m[1]+"."+m[2]] {
			bad = append(bad, fmt.Sprintf("%s: no test %s", attackersPage, m[0]))
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
		"access/a_test.go":  "package access\n\nfunc TestElsewhere(t *testing.T) {}\n",
	})
	table := "| attacker | can | cannot | shown by |\n| --- | --- | --- | --- |\n"
	for _, words := range attackerWords {
		table += "| " + words + " | x | | |\n"
	}
	page := ""
	for _, pkg := range attackedPackages {
		if pkg != "logdata" {
			page += "## " + pkg + "\n\n" + table
		}
	}
	good := page + "## logdata\n\n" + table + "| a | x | y | `logdata.TestForged`, `logdata.FuzzRead` |\n"
	wantViolations(t, unshownAttacks(good, sources))
	wantViolations(t, unshownAttacks(page, sources), slices.Repeat([]string{"logdata: no row of who"}, len(attackerWords))...)
	wantViolations(t, unshownAttacks(good+"| b | x | y | |\n| c | x | | `logdata.TestForged` |\n| d | | | |\n| e | x | y | `logdata.TestGone`, `logdata.TestInNoTest`, `logdata.TestElsewhere` |\n", sources),
		"who b: what somebody cannot", "who c: what somebody cannot", "who d: it does not say", "no test `logdata.TestGone`", "no test `logdata.TestInNoTest`", "no test `logdata.TestElsewhere`")
	wantViolations(t, unshownAttacks(strings.Replace(good, "| queue | x | | |\n", "", 1), sources), "eventual: no row of who has to do with \"queue\"")
}
