package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

var update = flag.Bool("update", false, "rewrite docs/explanation/azurite.md")

// document is what the suite writes into; what stands between the markers is the suite's, all else a writer's.
var document = filepath.Join("..", "..", "docs", "explanation", "azurite.md")

// checkDocument holds the document's tables to what was seen.
func checkDocument(t *testing.T, rules []rule, got results) {
	t.Helper()
	text := assert.Must[[]byte](t)(os.ReadFile(document))
	now := section(t, string(text), "rules", rulesTable(rules, got))
	now = section(t, now, "differences", differencesTable())
	if now == string(text) {
		return
	}
	if !*update {
		t.Errorf("%s is out of date; go test ./storagetest/conformance -run TestRules -update rewrites it.\n%s", document, firstChange(string(text), now))
		return
	}
	assert.Check(t, os.WriteFile(document, []byte(now), 0o644))
}

// section puts content between a pair of markers.
func section(t *testing.T, text, name, content string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the markers of %q", document, name)
	}
	return before + begin + "\n" + content + "\n" + end + after
}

func firstChange(was, is string) string {
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			return fmt.Sprintf("line %d says\n%s\nand should say\n%s", i+1, before[i], after[i])
		}
	}
	return fmt.Sprintf("%d lines, and should have %d", len(before), len(after))
}

// rulesTable is a row for each try; Strict's column is empty where it answers as Azure does.
func rulesTable(rules []rule, got results) string {
	var b strings.Builder
	b.WriteString("| rule | limit or behaviour | case | Azure, simulator | Strict | Azurite alone |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rules {
		name, limit := r.name, r.limit
		for i := range r.tries {
			one := &r.tries[i]
			azurite, strict := got[one][onAzurite], got[one][onStrict]
			switch {
			case one.timed:
				azurite, strict = "not tried", "not tried"
			case strict == one.want:
				strict = "same"
			}
			if azurite == one.want {
				azurite = "same"
			}
			want := one.want
			if one.may != nil && !one.timed {
				want += " (possible)"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", cell(name), cell(limit), cell(one.what), cell(want), cell(strict), cell(azurite))
			name, limit = "", ""
		}
	}
	return b.String()
}

func differencesTable() string {
	var b strings.Builder
	b.WriteString("| what | difference | Strict |\n| --- | --- | --- |\n")
	for _, d := range differences {
		strict := "as Azure"
		if slices.Contains(d.on, onStrict) {
			strict = "as Azurite"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(d.capability), cell(d.reason), strict)
	}
	return b.String()
}

// cell is text as a table's cell holds it.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\\", `\\`, "#", `\#`, "<", "&lt;").Replace(text)
}
