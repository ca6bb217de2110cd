package projectrules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxDeclarations is how many lines of a package's non-test files may begin with func, type, var or const.
const maxDeclarations = 300

// declares is such a line.
var declares = regexp.MustCompile(`(?m)^(func|type|var|const) `)

// tooLarge finds packages that do not fit in a reader's head. Tests are free, and so is the main job, which is many
// small programs.
func tooLarge(sources []source) []string {
	var bad []string
	declarations := map[string]int{}
	for _, s := range sources {
		if s.isTest() || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		declarations[s.dir()] += len(declares.FindAllString(s.text, -1))
	}
	for _, dir := range slices.Sorted(maps.Keys(declarations)) {
		if n := declarations[dir]; n > maxDeclarations {
			bad = append(bad, fmt.Sprintf("%s: %d declarations, at most %d", dir, n, maxDeclarations))
		}
	}
	return bad
}

func TestSizes(t *testing.T) {
	report(t, tooLarge(projectSources(t)))
}

func TestSizesCanFail(t *testing.T) {
	types := func(from, n int) string {
		text := "package p\n"
		for i := range n {
			text += fmt.Sprintf("type T%d int\n", from+i)
		}
		return text
	}
	wantViolations(t, tooLarge(parse(t, map[string]string{
		"examples/e/many.go": types(0, 301),
		"large/a.go":         types(0, 200),
		"large/b.go":         types(200, 101),
		"large/b_test.go":    types(400, 100),
		"fits/a.go":          types(0, 300),
	})),
		"large: 301 declarations, at most 300",
	)
}
