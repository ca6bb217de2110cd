package projectrules

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// stateAllowed are the package variables that change, each with the reason.
var stateAllowed = map[string]string{
	"internal/carry.find":         "package entity sets it once, before any function of the library runs: nothing else reaches an unexported field of an exported type",
	"internal/rowreader.memories": "memory that one reader leaves to the next; what a reader returns does not depend on it",
	"internal/wire.buffers":       "memory that one response leaves to the next, cleared between them",
	"storagetest.shared":          "one Azurite for each test binary, without a TestMain, has nowhere else to live",
}

// packageState finds init functions, and variables of library and internal packages that change or that others can
// change. A variable may stay if it is an error made by errors.New, an assertion (_), an embedded file, or unexported,
// set where it is declared, and not written to, or pointed to, anywhere in its package.
func packageState(sources []source, allowed map[string]string) []string {
	var bad []string
	packages := map[string][]source{}
	for _, s := range sources {
		bad = append(bad, initFunctions(s)...)
		if !s.isTest() && layer(s.dir()) != "application" {
			packages[s.dir()] = append(packages[s.dir()], s)
		}
	}
	unused := maps.Clone(allowed)
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		written := writtenNames(packages[dir])
		for _, s := range packages[dir] {
			for _, v := range variables(s) {
				name := dir + "." + v.name.Name
				reason := v.state(written)
				if reason == "" {
					continue
				}
				if delete(unused, name); allowed[name] == "" {
					bad = append(bad, fmt.Sprintf("%s: package variable %s %s", s.at(v.name), v.name.Name, reason))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		bad = append(bad, name+" is listed as a variable that changes, and is none")
	}
	return bad
}

func initFunctions(s source) []string {
	var bad []string
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			bad = append(bad, s.at(f)+": init function")
		}
	}
	return bad
}

// variable is one package variable with its value, if it is given one of its own.
type variable struct {
	name     *ast.Ident
	value    ast.Expr
	embedded bool
}

func variables(s source) []variable {
	var all []variable
	for _, d := range s.file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, sp := range decl.Specs {
			spec := sp.(*ast.ValueSpec)
			for i, name := range spec.Names {
				v := variable{name: name, embedded: embeds(decl.Doc) || embeds(spec.Doc)}
				if len(spec.Values) > 0 {
					v.value = spec.Values[min(i, len(spec.Values)-1)]
				}
				all = append(all, v)
			}
		}
	}
	return all
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// state says why the variable is state, or "".
func (v variable) state(written map[string]bool) string {
	name := v.name.Name
	switch {
	case name == "_":
		return ""
	case written[name]:
		return "is written to, or its address is taken"
	case strings.HasPrefix(strings.ToLower(name), "err") && (isCall(v.value, "errors.New", "fmt.Errorf") || isErrorOf(v.value)):
		return ""
	case v.name.IsExported():
		return "can be changed by every package: only errors may be exported variables"
	case v.embedded:
		return ""
	case v.value == nil:
		return "is declared without a value, so it is there to be changed"
	case holdsState(v.value):
		return "holds state: a pointer, a make, or something of sync"
	}
	return ""
}

// isErrorOf finds another package's error, given a name here.
func isErrorOf(e ast.Expr) bool {
	x, ok := e.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(x.Sel.Name, "Err")
}

func isCall(e ast.Expr, names ...string) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && slices.Contains(names, types.ExprString(call.Fun))
}

// holdsState finds what is no use unless it changes.
func holdsState(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // its body runs later
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND
		case *ast.CallExpr:
			found = found || isCall(n, "make", "new")
		case *ast.SelectorExpr:
			x := types.ExprString(n.X)
			found = found || x == "sync" || x == "atomic"
		}
		return !found
	})
	return found
}

// writtenNames are the package variables that some function of the package assigns to, counts up, empties, or takes the
// address of, themselves or a part of them. What a method changes behind a pointer, it does not see.
func writtenNames(sources []source) map[string]bool {
	var files []*ast.File
	for _, s := range sources {
		files = append(files, s.file)
	}
	// Types of other packages are of no interest here, only which name means which variable; so imports are not followed,
	// and errors, of which there are many then, are dropped.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, Importer: noImporter{}}
	pkg, _ := config.Check("p", sources[0].fset, files, info)

	written := map[string]bool{}
	mark := func(e ast.Expr) {
		id := rootOf(e)
		if id == nil {
			return
		}
		if v, ok := info.Uses[id].(*types.Var); ok && v.Parent() == pkg.Scope() {
			written[id.Name] = true
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			markWrites(n, mark)
			return true
		})
	}
	return written
}

func markWrites(n ast.Node, mark func(ast.Expr)) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			mark(e)
		}
	case *ast.IncDecStmt:
		mark(n.X)
	case *ast.RangeStmt:
		mark(n.Key)
		mark(n.Value)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			mark(n.X)
		}
	case *ast.CallExpr:
		if isCall(n, "delete", "clear", "copy") && len(n.Args) > 0 {
			mark(n.Args[0])
		}
	}
}

// rootOf is the name that an expression like a.b[c].d starts with, or nil.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

func TestPackageState(t *testing.T) {
	report(t, packageState(projectSources(t), stateAllowed))
}

func TestPackageStateCanFail(t *testing.T) {
	wantViolations(t, packageState(parse(t, map[string]string{
		"cmd/tool/main.go": "package main\nvar flags int\nfunc main() { flags++ }\n",
		"patterns/a_test.go": "package p\nvar seen = map[string]bool{}\n" +
			"func init() {}\n",
		"patterns/good.go": `package p
import ("embed"; "errors"; "io"; "regexp"; "time")
var ErrOther = io.ErrClosedPipe
var ErrGood = errors.New("good")
var errAlso, _ = errors.New("good"), 1
var _ error = (*T)(nil)
var pattern = regexp.MustCompile("x")
var table = map[string]bool{"a": true}
var base = time.Unix(0, 0)
//go:embed x
var files embed.FS
func f() { table, base := 1, 2; table++; base = table; _ = base }
`,
		"patterns/init.go": "package p\nfunc init() {}\n",
		"patterns/state.go": `package p
import "sync"
var Exported = []int{1}
var counter int
var assigned = 1
var cleared = map[string]bool{"a": true}
var indexed = []int{1}
var pointed = [3]int{}
var pointer = &T{}
var pool = sync.Pool{}
var made = make(map[string]int)
var listed = 1
func g() { assigned = 2; clear(cleared); indexed[0]++; h(&pointed[1]); listed = 2 }
`,
	}), map[string]string{"patterns.listed": "a test", "patterns.gone": "a test"}),
		"patterns/a_test.go:3: init function",
		"patterns/init.go:2: init function",
		"state.go:3: package variable Exported can be changed",
		"state.go:4: package variable counter is declared without",
		"state.go:5: package variable assigned is written",
		"state.go:6: package variable cleared is written",
		"state.go:7: package variable indexed is written",
		"state.go:8: package variable pointed is written",
		"state.go:9: package variable pointer holds",
		"state.go:10: package variable pool holds",
		"state.go:11: package variable made holds",
		"patterns.gone is listed",
	)
}
