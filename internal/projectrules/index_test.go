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

// glossaryPage defines each term under a heading of its own, which other pages link to.
const glossaryPage = "docs/reference/glossary.md"

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

// disorderedTerms finds terms of the glossary that are out of order, or that no sentence defines.
func disorderedTerms(glossary string) []string {
	var bad []string
	terms, order := headedSections(glossary)
	for i, term := range order {
		if i > 0 && strings.ToLower(order[i-1]) >= strings.ToLower(term) {
			bad = append(bad, fmt.Sprintf("%s: %q stands behind %q", glossaryPage, term, order[i-1]))
		}
		if !strings.HasSuffix(strings.TrimSpace(terms[term]), ".") {
			bad = append(bad, fmt.Sprintf("%s: %q has no definition", glossaryPage, term))
		}
	}
	if len(order) == 0 {
		bad = append(bad, glossaryPage+": there are no terms")
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

func TestTermsAreInOrder(t *testing.T) {
	report(t, disorderedTerms(projectDocuments(t)[glossaryPage]))
}

func TestTermsAreInOrderCanFail(t *testing.T) {
	wantViolations(t, disorderedTerms("# Glossary\n\n## Copy\n\nA row.\n\n## claim\n\nA row.\n\n## Lease\n\n## Lease\n\nA time.\n\n## Plan\n"),
		`"claim" stands behind "Copy"`,
		`"Lease" stands behind "Lease"`,
		`"Plan" has no definition`,
	)
	wantViolations(t, disorderedTerms(""), "there are no terms")
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
