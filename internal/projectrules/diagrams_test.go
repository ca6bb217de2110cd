package projectrules

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/mermaid"
)

// diagrams are the blocks of documents that open with ```mermaid.
func diagrams(documents map[string]string) []snippet {
	var all []snippet
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		all = append(all, fenced(name, documents[name], "mermaid")...)
	}
	return all
}

// wrongDiagrams finds diagrams that mermaid does not parse: GitHub shows an error in their place.
func wrongDiagrams(t *testing.T, documents map[string]string) []string {
	t.Helper()
	all := diagrams(documents)
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = strings.Join(d.lines, "\n")
	}
	problems, err := mermaid.Parse(t.Context(), texts, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for i, problem := range problems {
		if problem != "" {
			bad = append(bad, all[i].at+": mermaid does not parse this diagram: "+problem)
		}
	}
	return bad
}

func TestDiagramsParse(t *testing.T) {
	report(t, wrongDiagrams(t, projectDocuments(t)))
}

func TestDiagramsParseCanFail(t *testing.T) {
	const fence = "```"
	wantViolations(t, wrongDiagrams(t, map[string]string{
		"docs/a.md": "Text\n\n" + fence + "mermaid\nflowchart TD\n    a --> b\n" + fence + "\n\n" + fence + "mermaid\nflowchart TD\n    a[b (c)] --> d\n" + fence + "\n",
		"docs/b.md": fence + "\nflowchart TD\n    a[b (c)]\n" + fence + "\n",
		"docs/c.md": "1. item\n   " + fence + "mermaid\n   sequenceDiagram\n   A->B: c; d\n   " + fence + "\n",
	}),
		"docs/a.md:8: mermaid does not parse this diagram: Parse error on line 2", "docs/c.md:2: mermaid")
}
