package mermaid

import (
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/npm"
)

// TestParse: the pinned mermaid parses every kind of diagram that the documentation uses, and finds the usual mistakes.
func TestParse(t *testing.T) {
	good := []string{
		"flowchart TD\n    subgraph p[\"Partition Sales\"]\n        a[\"<b>empid_000223</b><br/>Email\"]\n    end\n    a -- \"yes (1)\" --> b{Known?}\n",
		"sequenceDiagram\n    participant W as writer\n    W->>Q: put<br/>the intent\n    Note over W: dies\n",
		"gantt\n    dateFormat YYYY-MM-DD\n    section key 1\n    active :a, 2026-01-01, 365d\n",
		"stateDiagram-v2\n    [*] --> active\n",
		"classDiagram\n    Person <|-- Employee\n",
	}
	bad := map[string]string{
		"flowchart TD\n    a[Rows (2)] --> b\n":              "Parse error on line 2",
		"flowchart TD\n    a[\"open --> b\n":                 "error",
		"sequenceDiagram\n    W->>Q: put; delete\n":          "Parse error on line 2",
		"sequenceDiagram\n    alt a\n    W->>Q: put\n":       "Parse error",
		"flow TD\n    a --> b\n":                             "No diagram type detected",
		"stateDiagram-v2\n    [*] --> active\n    state {\n": "error",
	}
	diagrams := slices.Clone(good)
	for text := range bad {
		diagrams = append(diagrams, text)
	}
	problems, err := Parse(t.Context(), diagrams, func(text string) { t.Log(text) })
	assert.Check(t, err)
	for i, problem := range problems {
		if want, isBad := bad[diagrams[i]]; isBad != (problem != "") || !strings.Contains(problem, want) {
			t.Errorf("%q: %q, want %q", diagrams[i], problem, want)
		}
	}
}

func TestParseNothing(t *testing.T) {
	if problems, err := Parse(t.Context(), []string{}, func(string) {}); err != nil || len(problems) != 0 {
		t.Errorf("%v, %v, want nothing", problems, err)
	}
}

func TestLock(t *testing.T) {
	assert.Check(t, npm.CheckLock(lock))
}

// Without Node.js the tests of the documentation fail; a check that is left out looks like one that passes.
func TestWithoutNode(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := Parse(t.Context(), nil, func(string) {}); err == nil || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("%v, want what to install", err)
	}
}
