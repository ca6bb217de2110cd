package projectrules

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
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

// snippet is one fenced block of Go in a document.
type snippet struct {
	at    string
	lines []string
}

// goSnippets are the blocks that open with ```go; other words after the fence mean other languages.
func goSnippets(name, text string) []snippet {
	var all []snippet
	inGo, inOther := false, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && (inGo || inOther):
			inGo, inOther = false, false
		case fence:
			language := strings.Fields(strings.TrimLeft(line, "`") + " none")[0]
			inGo = language == "go" || language == "golang"
			inOther = !inGo
			if inGo {
				all = append(all, snippet{at: fmt.Sprintf("%s:%d", name, i+1)})
			}
		case inGo:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
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

// straySnippets finds Go in documents that is not, line for line, a part of a Go file of the project. So what a document
// shows is compiled, and, where it stands in a test or an example, run.
func straySnippets(documents map[string]string, sources []source) []string {
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

var (
	inlineLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	referenceLink = regexp.MustCompile(`^\s*\[[^\]]+\]:\s*<?([^\s>]+)`)
	inlineCode    = regexp.MustCompile("`[^`]*`")
	scheme        = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

// brokenLinks finds relative links to files that do not exist. It does not look into code, nor at anchors or other sites.
func brokenLinks(documents map[string]string, exists func(string) bool) []string {
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		inFence := false
		for i, line := range strings.Split(documents[name], "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				inFence = !inFence
			}
			if inFence {
				continue
			}
			line = inlineCode.ReplaceAllString(line, "")
			for _, m := range slices.Concat(inlineLink.FindAllStringSubmatch(line, -1), referenceLink.FindAllStringSubmatch(line, -1)) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || scheme.MatchString(target) {
					continue
				}
				file := path.Join(path.Dir(name), target)
				if strings.HasPrefix(file, "../") || strings.HasPrefix(target, "/") || !exists(file) {
					bad = append(bad, fmt.Sprintf("%s:%d: link to %s, which is no file of the project", name, i+1, target))
				}
			}
		}
	}
	return bad
}

func TestSnippetsAreCompiled(t *testing.T) {
	report(t, straySnippets(projectDocuments(t), projectSources(t)))
}

func TestLinksLeadSomewhere(t *testing.T) {
	report(t, brokenLinks(projectDocuments(t), func(file string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
		return err == nil
	}))
}

func TestSnippetsAreCompiledCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a_test.go":                     "package a\n\nfunc Example() {\n\tx := one()  // 1\n\n\ty := two()\n\tz := three()\n}\n",
		"internal/projectrules/x_test.go": "package a\n\nfunc g() {\n\tonlyHere()\n}\n",
	})
	const fence = "```"
	wantViolations(t, straySnippets(map[string]string{
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

func TestLinksLeadSomewhereCanFail(t *testing.T) {
	files := map[string]bool{"README.md": true, "docs/costs.md": true, "docs": true}
	const fence = "```"
	wantViolations(t, brokenLinks(map[string]string{
		"README.md": "[costs](docs/costs.md#x), [docs](docs), [gone](docs/gone.md)\n[a](https://example.com/a.md) [top](#top)\n" +
			"`m[i](x)`\n" + fence + "\nf[int](y)\n" + fence + "\n[ref]: docs/ref.md\n",
		"docs/costs.md": "[up](../README.md), [out](../../x.md), [root](/README.md), ![picture](picture.png)\n",
	}, func(file string) bool { return files[file] }),
		"README.md:1: link to docs/gone.md",
		"README.md:7: link to docs/ref.md",
		"docs/costs.md:1: link to ../../x.md",
		"docs/costs.md:1: link to /README.md",
		"docs/costs.md:1: link to picture.png",
	)
}
