package projectrules

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

const (
	maxFileLines     = 400
	maxTestFileLines = 600
	maxFuncLines     = 60
)

// tooLong finds files and functions that do not fit in a reader's head. Functions of tests are free.
func tooLong(sources []source) []string {
	var bad []string
	for _, s := range sources {
		most := maxFileLines
		if s.isTest() {
			most = maxTestFileLines
		}
		if lines := strings.Count(s.text, "\n"); lines > most {
			bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d", s.path, lines, most))
		}
		if s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if lines > maxFuncLines {
				bad = append(bad, fmt.Sprintf("%s: func %s has %d lines, at most %d", s.at(f), f.Name.Name, lines, maxFuncLines))
			}
		}
	}
	return bad
}

func TestSizes(t *testing.T) {
	report(t, tooLong(projectSources(t)))
}

func TestSizesCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\n", n) }
	wantViolations(t, tooLong(parse(t, map[string]string{
		"p/func60.go":       "package p\nfunc f() {" + lines(59) + "}\n",
		"p/func61.go":       "package p\nfunc f() {" + lines(60) + "}\n",
		"p/func_test.go":    "package p\nfunc f() {" + lines(100) + "}\n",
		"p/lines400.go":     "package p" + lines(400),
		"p/lines401.go":     "package p" + lines(401),
		"p/lines_test.go":   "package p" + lines(600),
		"p/toolong_test.go": "package p" + lines(601),
	})),
		"p/func61.go:2: func f has 61 lines",
		"p/lines401.go: 401 lines",
		"p/toolong_test.go: 601 lines",
	)
}
