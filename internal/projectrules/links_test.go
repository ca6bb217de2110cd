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
	"unicode"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	referenceLink = regexp.MustCompile(`^\s*\[[^\]]+\]:\s*<?([^\s>]+)`)
	inlineCode    = regexp.MustCompile("`[^`]*`")
	scheme        = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

// proseLines are a document's lines by number, from 0, but for those in fenced blocks.
func proseLines(text string) map[int]string {
	lines := map[int]string{}
	inFence := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
		} else if !inFence {
			lines[i] = line
		}
	}
	return lines
}

// anchors are what a link can lead to within a document: its headings as GitHub names them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	lines := proseLines(text)
	for _, i := range slices.Sorted(maps.Keys(lines)) {
		marks := len(lines[i]) - len(strings.TrimLeft(lines[i], "#"))
		heading, ok := strings.CutPrefix(lines[i][marks:], " ")
		if marks == 0 || marks > 6 || !ok {
			continue
		}
		anchor := anchorOf(heading)
		for n, first := 1, anchor; found[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", first, n)
		}
		found[anchor] = true
	}
	return found
}

// anchorOf is a heading in lower case, with dashes for spaces and without other punctuation.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// brokenLinks finds relative links to files that do not exist, and to headings that the document does not have. It does
// not look into code, nor at other sites.
func brokenLinks(documents map[string]string, exists func(string) bool) []string {
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		lines := proseLines(documents[name])
		for _, i := range slices.Sorted(maps.Keys(lines)) {
			line := inlineCode.ReplaceAllString(lines[i], "")
			for _, m := range slices.Concat(inlineLink.FindAllStringSubmatch(line, -1), referenceLink.FindAllStringSubmatch(line, -1)) {
				if problem := brokenLink(documents, exists, name, m[1]); problem != "" {
					bad = append(bad, fmt.Sprintf("%s:%d: link to %s", name, i+1, problem))
				}
			}
		}
	}
	return bad
}

// brokenLink says what is wrong with a link of a document.
func brokenLink(documents map[string]string, exists func(string) bool, from, link string) string {
	target, anchor, _ := strings.Cut(link, "#")
	if scheme.MatchString(link) {
		return ""
	}
	file := from
	if target != "" {
		file = path.Join(path.Dir(from), target)
		if strings.HasPrefix(file, "../") || strings.HasPrefix(target, "/") || !exists(file) {
			return target + ", which is no file of the project"
		}
	}
	if text, ok := documents[file]; anchor != "" && ok && !anchors(text)[anchor] {
		return fmt.Sprintf("#%s, which is no heading of %s", anchor, file)
	}
	return ""
}

func TestLinksLeadSomewhere(t *testing.T) {
	report(t, brokenLinks(projectDocuments(t), func(file string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
		return err == nil
	}))
}

func TestLinksLeadSomewhereCanFail(t *testing.T) {
	files := map[string]bool{"README.md": true, "docs/costs.md": true, "docs": true}
	const fence = "```"
	wantViolations(t, brokenLinks(map[string]string{
		"README.md": "[costs](docs/costs.md#one-more--other), [docs](docs), [gone](docs/gone.md)\n[a](https://example.com/a.md#b) [top](#top)\n" +
			"`m[i](x)`\n" + fence + "\nf[int](y)\n# Top\n" + fence + "\n[ref]: docs/ref.md\n# Up\n[up](#up), [other](docs/costs.md#x), [third](docs/costs.md#up-2)\n",
		"docs/costs.md": "[up](../README.md), [out](../../x.md), [root](/README.md), ![picture](picture.png)\n# One `more` & Other\n## Up\n## Up\n[second](#up-1)\n",
	}, func(file string) bool { return files[file] }),
		"README.md:1: link to docs/gone.md",
		"README.md:2: link to #top, which is no heading of README.md",
		"README.md:8: link to docs/ref.md",
		"README.md:10: link to #x, which is no heading of docs/costs.md",
		"README.md:10: link to #up-2, which is no heading of docs/costs.md",
		"docs/costs.md:1: link to ../../x.md",
		"docs/costs.md:1: link to /README.md",
		"docs/costs.md:1: link to picture.png",
	)
}
