package projectrules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageParts are the headings that the page of every pattern has, in this order; others may stand between them.
var pageParts = []string{"Problem", "What is stored", "Requests", "What a crash leaves", whenToUse, whenNotToUse, relatedPatterns}

const (
	whenToUse       = "When to use it"
	whenNotToUse    = "When not to use it"
	relatedPatterns = "Related patterns"
)

// pagesOfPatterns are the packages that have a page of this form: the patterns, and the three packages beneath them.
func pagesOfPatterns() []string {
	return append([]string{"compoundkey", "patterns", "eventual"}, patternPackages...)
}

var (
	quotedSection = regexp.MustCompile(`"([^"]+)"`)
	relatedLine   = regexp.MustCompile(`^- \[[^\]]+\]\([^)]+\).*: .+`)
)

// misshapenPages finds pages of patterns that lack a part. The opening paragraph names the package and a section of the
// guide; the parts come in their order, and none is empty; the two lists of when to use it stand side by side; each related
// pattern has a link; the page has a figure; some Go of the page stands in an example of the package.
func misshapenPages(documents map[string]string, sources []source, packages []string) []string {
	var bad []string
	for _, name := range packages {
		page := "docs/reference/" + name + ".md"
		text, ok := documents[page]
		if !ok {
			bad = append(bad, page+": there is no such page")
			continue
		}
		sections, order := headedSections(text)
		opening := sections[""]
		titles := quotedSection.FindAllStringSubmatch(opening, -1)
		if !slices.ContainsFunc(titles, func(m []string) bool { return slices.Contains(guideSections, m[1]) }) {
			bad = append(bad, page+": the opening names no section of the guide, in quotes")
		}
		if !strings.Contains(opening, "`"+name+"`") {
			bad = append(bad, page+": the opening does not name package `"+name+"`")
		}
		bad = append(bad, missingParts(page, sections, order)...)
		if at := slices.Index(order, whenToUse); at >= 0 && (at+1 == len(order) || order[at+1] != whenNotToUse) {
			bad = append(bad, fmt.Sprintf("%s: %q does not stand directly before %q", page, whenToUse, whenNotToUse))
		}
		for _, line := range strings.Split(sections[relatedPatterns], "\n") {
			if strings.HasPrefix(line, "- ") && !relatedLine.MatchString(line) {
				bad = append(bad, page+": a related pattern is a link and a reason: "+line)
			}
		}
		if len(diagrams(map[string]string{page: text})) == 0 {
			bad = append(bad, page+": no figure")
		}
		if !showsExample(page, text, name, sources) {
			bad = append(bad, page+": no Go of the page stands in an example of the package")
		}
	}
	return bad
}

// missingParts finds parts that a page lacks, or has in another order or without a word.
func missingParts(page string, sections map[string]string, order []string) []string {
	var bad []string
	last := -1
	for _, part := range pageParts {
		at := slices.Index(order, part)
		switch {
		case at < 0:
			bad = append(bad, fmt.Sprintf("%s: no heading %q", page, part))
			continue
		case at < last:
			bad = append(bad, fmt.Sprintf("%s: %q stands before the part that precedes it", page, part))
		case strings.TrimSpace(sections[part]) == "":
			bad = append(bad, fmt.Sprintf("%s: nothing under %q", page, part))
		}
		last = max(last, at)
	}
	return bad
}

// headedSections are the texts under the headings of the second level, deeper headings included, and their order. The
// text before the first has the name "".
func headedSections(text string) (sections map[string]string, order []string) {
	sections = map[string]string{}
	lines := proseLines(text)
	name := ""
	for i, line := range strings.Split(text, "\n") {
		if heading, ok := strings.CutPrefix(lines[i], "## "); ok {
			name = heading
			order = append(order, name)
			continue
		}
		sections[name] += line + "\n"
	}
	return sections, order
}

// showsExample says whether a snippet of the page stands in a file of the package's examples.
func showsExample(page, text, name string, sources []source) bool {
	return slices.ContainsFunc(sources, func(s source) bool {
		if s.dir() != name || !strings.HasPrefix(strings.TrimPrefix(s.path, name+"/"), "example") || !s.isTest() {
			return false
		}
		code := "\n" + strings.Join(plainLines(strings.Split(s.text, "\n")), "\n") + "\n"
		return slices.ContainsFunc(goSnippets(page, text), func(shown snippet) bool {
			return len(shown.lines) > 0 && strings.Contains(code, "\n"+strings.Join(shown.lines, "\n")+"\n")
		})
	})
}

func TestPagesHaveOneForm(t *testing.T) {
	report(t, misshapenPages(projectDocuments(t), projectSources(t), pagesOfPatterns()))
}

func TestPagesHaveOneFormCanFail(t *testing.T) {
	const fence = "```"
	const figure = fence + "mermaid\nflowchart TD\n    a --> b\n" + fence + "\n"
	good := "# A\n\nPackage `a`: \"Log tail pattern\".\n\n" + fence + "go\nx := one()\n" + fence + "\n\n" + figure
	parts := map[string]string{}
	for _, part := range pageParts {
		parts[part] = "## " + part + "\n\nText.\n\n"
	}
	parts[relatedPatterns] = "## " + relatedPatterns + "\n\n- [B](b.md): also.\n"
	all := func(without string) string {
		text := ""
		for _, part := range pageParts {
			if part != without {
				text += parts[part]
			}
		}
		return text
	}
	sources := parse(t, map[string]string{
		"a/example_test.go": "package a\n\nfunc Example() {\n\tx := one()\n}\n",
		"a/other_test.go":   "package a\n\nfunc Example() {\n\ty := two()\n}\n",
	})
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"good":    {good + all(""), nil},
		"no part": {good + all("Requests"), []string{`no heading "Requests"`}},
		"disorder": {good + all("Problem") + parts["Problem"], []string{`"What is stored" stands before`, `"Requests" stands before`, `"What a crash leaves" stands before`,
			`"When not to use it" stands before`, `"When to use it" stands before`, `"Related patterns" stands before`}},
		"empty":      {good + strings.Replace(all(""), "Text.", "", 1), []string{`nothing under "Problem"`}},
		"no use":     {good + all(whenToUse), []string{`no heading "When to use it"`}},
		"apart":      {good + strings.Replace(all(""), parts[whenNotToUse], "## Limits\n\n"+parts[whenNotToUse], 1), []string{`does not stand directly before`}},
		"no link":    {good + all("") + "- B: also.\n", []string{"a related pattern is a link and a reason: - B: also."}},
		"no reason":  {good + all("") + "- [C](c.md)\n", []string{"a related pattern is a link and a reason: - [C](c.md)"}},
		"no figure":  {strings.Replace(good, figure, "", 1) + all(""), []string{"no figure"}},
		"no section": {strings.Replace(good, "Log tail pattern", "Log tails", 1) + all(""), []string{"names no section"}},
		"no package": {strings.Replace(good, "`a`", "a", 1) + all(""), []string{"does not name package"}},
		"no example": {strings.Replace(good, "x := one()", "y := two()", 1) + all(""), []string{"no Go of the page"}},
	} {
		got := misshapenPages(map[string]string{"docs/reference/a.md": c.text}, sources, []string{"a"})
		if name == "disorder" {
			slices.Sort(got)
			slices.Sort(c.want)
		}
		wantViolations(t, got, c.want...)
	}
	wantViolations(t, misshapenPages(nil, nil, []string{"b"}), "docs/reference/b.md: there is no such page")
}
