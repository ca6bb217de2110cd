package projectrules

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// indexPage links to every page of the documentation.
const indexPage = "docs/README.md"

// docsFolders are the folders of docs, one for each need of a reader. Each holds at least one page.
var docsFolders = []string{"explanation", "howto", "reference", "tutorial"}

// namedPage is a page of the documentation that a Go file names in a comment or a text.
var namedPage = regexp.MustCompile(`\bdocs/[a-z/-]*\.md\b`)

// unindexed finds pages outside of the four folders, folders without a page, and pages that the index does not link to.
func unindexed(documents map[string]string) []string {
	linked := map[string]bool{}
	for _, line := range proseLines(documents[indexPage]) {
		for _, m := range inlineLink.FindAllStringSubmatch(line, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			linked[path.Join("docs", target)] = true
		}
	}
	var bad []string
	filled := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		if !strings.HasPrefix(name, "docs/") || name == indexPage {
			continue
		}
		folder := strings.TrimPrefix(path.Dir(name), "docs/")
		filled[folder] = true
		if !slices.Contains(docsFolders, folder) {
			bad = append(bad, fmt.Sprintf("%s: move the page to one of the folders %s of docs", name, strings.Join(docsFolders, ", ")))
		}
		if !linked[name] {
			bad = append(bad, fmt.Sprintf("%s: %s has no link to it", name, indexPage))
		}
	}
	for _, folder := range docsFolders {
		if !filled[folder] {
			bad = append(bad, fmt.Sprintf("docs/%s: the folder has no page", folder))
		}
	}
	return bad
}

// misnamedPages finds pages that a Go file names and that do not exist. The rules themselves name pages that must not exist.
func misnamedPages(documents map[string]string, sources []source) []string {
	var bad []string
	for _, s := range sources {
		if s.dir() == "internal/projectrules" {
			continue
		}
		for i, line := range strings.Split(s.text, "\n") {
			for _, page := range namedPage.FindAllString(line, -1) {
				if _, ok := documents[page]; !ok {
					bad = append(bad, fmt.Sprintf("%s:%d: there is no %s", s.path, i+1, page))
				}
			}
		}
	}
	return bad
}

func TestPagesAreIndexed(t *testing.T) {
	report(t, unindexed(projectDocuments(t)))
}

func TestGoNamesPagesThatExist(t *testing.T) {
	report(t, misnamedPages(projectDocuments(t), projectSources(t)))
}

func TestPagesAreIndexedCanFail(t *testing.T) {
	wantViolations(t, unindexed(map[string]string{
		indexPage:                 "[one](howto/one.md#x), [two](reference/two.md), [four](four.md)\n```\n[three](reference/three.md)\n```\n",
		"README.md":               "",
		"docs/four.md":            "",
		"docs/howto/one.md":       "",
		"docs/reference/two.md":   "",
		"docs/reference/three.md": "",
		"docs/tutorial/five.md":   "",
	}),
		"docs/four.md: move the page",
		"docs/reference/three.md: docs/README.md has no link",
		"docs/tutorial/five.md: docs/README.md has no link",
		"docs/explanation: the folder has no page",
	)
}

func TestGoNamesPagesThatExistCanFail(t *testing.T) {
	wantViolations(t, misnamedPages(map[string]string{"docs/reference/a.md": ""}, parse(t, map[string]string{
		"logtail/a.go":               "package logtail\n\n// docs/reference/a.md has more, docs/a.md too.\nconst page = \"../docs/howto/b.md\"\n",
		"internal/projectrules/x.go": "package projectrules\n\nconst page = \"docs/c.md\"\n",
	})),
		"logtail/a.go:3: there is no docs/a.md",
		"logtail/a.go:4: there is no docs/howto/b.md",
	)
}
