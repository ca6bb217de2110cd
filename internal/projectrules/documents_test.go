package projectrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// projectDocuments are the project's Markdown files by path. A missing README.md is an error: without it, half of
// what the rules say about documents would hold for want of a document.
func projectDocuments(t *testing.T) map[string]string {
	t.Helper()
	documents := readFiles(t, ".md")
	if documents["README.md"] == "" {
		t.Error("README.md is missing or empty at the top of the project")
	}
	return documents
}

// snippet is one fenced block in a document.
type snippet struct {
	at    string
	lines []string
}

// fenced are the blocks whose fence names one of the languages, with their lines as they are.
func fenced(name, text string, languages ...string) []snippet {
	var all []snippet
	inside, wanted := false, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			inside = !inside
			wanted = inside && slices.Contains(languages, strings.Fields(strings.TrimLeft(trimmed, "`") + " none")[0])
			if wanted {
				all = append(all, snippet{at: fmt.Sprintf("%s:%d", name, i+1)})
			}
		case wanted:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

// goSnippets are the blocks that open with ```go; other words after the fence mean other languages.
func goSnippets(name, text string) []snippet {
	all := fenced(name, text, "go", "golang")
	for i := range all {
		all[i].lines = plainLines(all[i].lines)
	}
	return all
}

// plainLines drops blank lines, and what gofmt may change in the others: indentation and alignment.
func plainLines(lines []string) []string {
	var plain []string
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) > 0 {
			plain = append(plain, strings.Join(fields, " "))
		}
	}
	return plain
}

// unreferencedSnippets finds Go in documents that is not, line for line, a part of a Go file of the project. So what a document
// shows is compiled, and, where it stands in a test or an example, run.
func unreferencedSnippets(documents map[string]string, sources []source) []string {
	var files []string
	for _, s := range sources {
		if s.dir() != "internal/projectrules" { // its strings are full of code that nobody compiles
			files = append(files, "\n"+strings.Join(plainLines(strings.Split(s.text, "\n")), "\n")+"\n")
		}
	}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		for _, s := range goSnippets(name, documents[name]) {
			lines := "\n" + strings.Join(s.lines, "\n") + "\n"
			if len(s.lines) == 0 || !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, lines) }) {
				bad = append(bad, s.at+": this Go is in no Go file of the project: "+strings.Join(s.lines, " ⏎ "))
			}
		}
	}
	return bad
}

func TestSnippetsAreCompiled(t *testing.T) {
	report(t, unreferencedSnippets(projectDocuments(t), projectSources(t)))
}

func TestSnippetsAreCompiledCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a_test.go":                     "package a\n\nfunc Example() {\n\tx := one()  // 1\n\n\ty := two()\n\tz := three()\n}\n",
		"internal/projectrules/x_test.go": "package a\n\nfunc g() {\n\tonlyHere()\n}\n",
	})
	const fence = "```"
	wantViolations(t, unreferencedSnippets(map[string]string{
		"README.md": "Text\n" + fence + "go\nx := one() // 1\ny := two()\n" + fence + "\n" + // contiguous but for a blank line
			fence + "bash\ngo run .\n" + fence + "\n" + fence + "\nplain\n" + fence + "\n",
		"docs/gap.md":      fence + "go\nx := one() // 1\nz := three()\n" + fence + "\n",
		"docs/half.md":     fence + "go\ny := two\n" + fence + "\n",
		"docs/here.md":     fence + "go\nonlyHere()\n" + fence + "\n",
		"docs/none.md":     fence + "go\n" + fence + "\n",
		"docs/other.md":    fence + "go\nx := four()\n" + fence + "\n" + fence + "go\n\ty := two()\n" + fence + "\n",
		"docs/unclosed.md": "1. item\n   " + fence + "golang\n   x := five()\n",
	}, sources),
		"docs/gap.md:1:", "docs/half.md:1:", "docs/here.md:1:", "docs/none.md:1:", "docs/other.md:1:", "docs/unclosed.md:2:")
}
