package projectrules

import (
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"testing"
)

// unwatched finds packages whose tests use a service, or which start goroutines, and whose TestMain does not look for those
// that are left over.
func unwatched(sources []source) []string {
	starts, tested, watched := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range sources {
		tested[s.dir()] = tested[s.dir()] || s.isTest()
		starts[s.dir()] = starts[s.dir()] || startsGoroutines(s) || s.isTest() && imports(s, modulePath+"/storagetest")
		watched[s.dir()] = watched[s.dir()] || s.isTest() && callsLeaks(s)
	}
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(starts)) {
		if starts[dir] && tested[dir] && !watched[dir] {
			bad = append(bad, dir+": no TestMain calls leaks.Main, so nobody sees a goroutine that its tests leave behind")
		}
	}
	return bad
}

func imports(s source, name string) bool {
	return slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool {
		path, _ := strconv.Unquote(spec.Path.Value)
		return path == name
	})
}

// startsGoroutines sees go statements and the Go of wait groups.
func startsGoroutines(s source) (found bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && sel.Sel.Name == "Go"
		}
		return !found
	})
	return found
}

// callsLeaks looks for a TestMain beside an import of leaks, which is for nothing else; that package itself calls its own.
func callsLeaks(s source) bool {
	own := s.dir() == "internal/leaks"
	return (own || imports(s, modulePath+"/internal/leaks")) && slices.ContainsFunc(s.file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == "TestMain"
	})
}

func TestGoroutinesAreWatched(t *testing.T) {
	report(t, unwatched(projectSources(t)))
}

func TestGoroutinesAreWatchedCanFail(t *testing.T) {
	const service = "import \"" + modulePath + "/storagetest\"\nimport \"" + modulePath + "/internal/leaks\"\nvar _ = storagetest.Open\n"
	const other = "func TestMain(m *testing.M) { os.Exit(m.Run()) }\n"
	const main = "func TestMain(m *testing.M) { leaks.Main(m) }\n"
	wantViolations(t, unwatched(parse(t, map[string]string{
		"access/a_test.go":      "package access\n" + service,
		"compoundkey/k_test.go": "package compoundkey\n",
		"eventual/e.go":         "package eventual\nfunc f() { go f() }\n",
		"eventual/e_test.go":    "package eventual\n" + other,
		"logdata/l.go":          "package logdata\nfunc f(w *sync.WaitGroup) { w.Go(f) }\n",
		"logdata/m_test.go":     "package logdata\nimport \"" + modulePath + "/internal/leaks\"\n" + main,
		"scatter/s_test.go":     "package scatter_test\n" + service + main,
	})),
		"access: no TestMain",
		"eventual: no TestMain",
	)
}
