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
// small programs. limits are packages with another limit than maxDeclarations.
func tooLarge(sources []source, limits map[string]int) []string {
	var bad []string
	declarations := map[string]int{}
	for _, s := range sources {
		if s.isTest() || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		declarations[s.dir()] += len(declares.FindAllString(s.text, -1))
	}
	for _, dir := range slices.Sorted(maps.Keys(declarations)) {
		most, n := maxDeclarations, declarations[dir]
		if limit, other := limits[dir]; other {
			most = limit
			if n <= maxDeclarations {
				bad = append(bad, fmt.Sprintf("%s: %d declarations; it needs no limit of its own", dir, n))
			}
		}
		if n > most {
			bad = append(bad, fmt.Sprintf("%s: %d declarations, at most %d", dir, n, most))
		}
	}
	return bad
}

// stillLarge are packages that are above the limit. None may grow.
var stillLarge = map[string]int{"patterns/internal/engine": 304}

func TestSizes(t *testing.T) {
	report(t, tooLarge(projectSources(t), stillLarge))
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
		"largest/a.go":       types(0, 311),
		"fits/a.go":          types(0, 300),
		"limited/a.go":       types(0, 310),
		"repaired/a.go":      types(0, 300),
	}), map[string]int{"largest": 310, "limited": 310, "repaired": 310}),
		"large: 301 declarations, at most 300",
		"largest: 311 declarations, at most 310",
		"repaired: 300 declarations; it needs no limit of its own",
	)
}
