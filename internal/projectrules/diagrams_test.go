package projectrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/mermaid"
)

// diagram is one fenced block of mermaid in a document.
type diagram struct{ at, text string }

// diagrams are the blocks that open with ```mermaid.
func diagrams(documents map[string]string) []diagram {
	var all []diagram
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		inDiagram, inOther := false, false
		for i, line := range strings.Split(documents[name], "\n") {
			fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && (inDiagram || inOther):
				inDiagram, inOther = false, false
			case isFence:
				inDiagram = strings.TrimSpace(fence) == "mermaid"
				inOther = !inDiagram
				if inDiagram {
					all = append(all, diagram{at: fmt.Sprintf("%s:%d", name, i+1)})
				}
			case inDiagram:
				all[len(all)-1].text += line + "\n"
			}
		}
	}
	return all
}

// wrongDiagrams finds diagrams that mermaid does not parse: GitHub shows an error in their place.
func wrongDiagrams(t *testing.T, documents map[string]string) []string {
	t.Helper()
	all := diagrams(documents)
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = d.text
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
