package projectrules

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goName is code in a document that names something by a package or a type: tables.ErrExists, Queue.Send, Verify(ctx).
var goName = regexp.MustCompile("`([A-Za-z][A-Za-z0-9]*)\\.([A-Z][A-Za-z0-9]*)(?:\\.([A-Z][A-Za-z0-9]*))?(?:\\[[^`]*\\])?(?:\\([^`]*\\))?`")

// bareName is the name of an error, a test or a benchmark, or, with dots behind it, what several of them begin with.
var bareName = regexp.MustCompile("`((?:Err|Test|Example|Benchmark)[A-Z][A-Za-z0-9_]*)(\\.\\.\\.)?`")

// calledName is a call of something that is named without its package or type: Range(ctx, partition, span), RowsOf[T](table).
var calledName = regexp.MustCompile("`([A-Z][A-Za-z0-9]*)(?:\\[[^`]*\\])?\\([^`]*\\)`")

// telemetryNames are metrics and types of messages, which stand in the code as texts.
var telemetryNames = regexp.MustCompile("`(tablepatterns\\.eventual\\.[a-z_]+)`")

// declared are the names of the project's code: by package what it declares, by type its fields and methods and those of
// what it embeds. Types of one name in several packages count as one.
type declared struct {
	packages map[string]map[string]bool
	members  map[string]map[string]bool
	embedded map[string][]string
}

func declaredNames(sources []source) declared {
	d := declared{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string][]string{}}
	for _, s := range sources {
		pkg := path.Base(s.dir())
		if d.packages[pkg] == nil {
			d.packages[pkg] = map[string]bool{}
		}
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					d.packages[pkg][decl.Name.Name] = true
				} else {
					d.member(typeName(decl.Recv.List[0].Type), decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					d.spec(pkg, spec)
				}
			}
		}
	}
	return d
}

func (d declared) member(of, name string) {
	if d.members[of] == nil {
		d.members[of] = map[string]bool{}
	}
	d.members[of][name] = true
}

func (d declared) spec(pkg string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d.packages[pkg][name.Name] = true
		}
	case *ast.TypeSpec:
		name := spec.Name.Name
		d.packages[pkg][name] = true
		d.member(name, name)
		var fields *ast.FieldList
		switch t := spec.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			d.embedded[name] = append(d.embedded[name], typeName(spec.Type))
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				d.member(name, n.Name)
			}
			if len(f.Names) == 0 {
				d.embedded[name] = append(d.embedded[name], typeName(f.Type))
				d.member(name, typeName(f.Type))
			}
		}
	}
}

// typeName is the bare name of a type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func (d declared) has(of, name string) bool {
	return d.members[of][name] || slices.ContainsFunc(d.embedded[of], func(e string) bool { return e != of && d.has(e, name) })
}

// somewhere says whether a package declares the name, or one that begins with it.
func (d declared) somewhere(name string, begins bool) bool {
	for _, names := range d.packages {
		for n := range names {
			if n == name || begins && strings.HasPrefix(n, name) {
				return true
			}
		}
	}
	return false
}

// ofSomeType says whether a type has a field or a method of the name.
func (d declared) ofSomeType(name string) bool {
	for _, names := range d.members {
		if names[name] {
			return true
		}
	}
	return false
}

// unknownNames finds names in documents that the code does not have. What is of other projects' packages, such as
// azcore.ResponseError, is not looked at; others are the first words of names that look like types and are none.
func unknownNames(documents map[string]string, sources []source, others ...string) []string {
	var bad []string
	known := declaredNames(sources)
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		if name == "CHANGELOG.md" {
			continue // says what was
		}
		lines := proseLines(documents[name])
		for _, i := range slices.Sorted(maps.Keys(lines)) {
			at := fmt.Sprintf("%s:%d: ", name, i+1)
			for _, m := range goName.FindAllStringSubmatch(lines[i], -1) {
				first, second, third := m[1], m[2], m[3]
				pkg, isPackage := known.packages[first]
				switch {
				case slices.Contains(others, first):
				case isPackage && (!pkg[second] || third != "" && !known.has(second, third)):
					bad = append(bad, at+"no "+m[0])
				case !isPackage && first == strings.ToLower(first): // somebody else's package, or a variable
				case !isPackage && !known.has(first, second):
					bad = append(bad, at+"no "+m[0])
				}
			}
			for _, m := range bareName.FindAllStringSubmatch(lines[i], -1) {
				if !known.somewhere(m[1], m[2] != "") {
					bad = append(bad, at+"no "+m[0])
				}
			}
			for _, m := range calledName.FindAllStringSubmatch(lines[i], -1) {
				if !known.somewhere(m[1], false) && !known.ofSomeType(m[1]) {
					bad = append(bad, at+"no "+m[0])
				}
			}
			for _, m := range telemetryNames.FindAllStringSubmatch(lines[i], -1) {
				if !slices.ContainsFunc(sources, func(s source) bool { return !s.isTest() && strings.Contains(s.text, strings.TrimSuffix(m[1], ".")) }) {
					bad = append(bad, at+"no "+m[0])
				}
			}
		}
	}
	return bad
}

func TestNamesInDocumentsExist(t *testing.T) {
	report(t, unknownNames(projectDocuments(t), projectSources(t), "Edm"))
}

func TestNamesInDocumentsExistCanFail(t *testing.T) {
	sources := parse(t, map[string]string{
		"a/a.go": "package a\n\ntype T struct {\n\tE\n\tF int\n}\n\ntype E struct{ G int }\n\nfunc (t *T) M() {}\n\nconst C = \"tablepatterns.eventual.messages\"\n\ntype I interface{ N() }\n\nfunc Fn() {}\n\nvar ErrOne error\n",
	})
	wantViolations(t, unknownNames(map[string]string{
		"docs/good.md": "`a.T` `a.T.F` `a.C` `a.Fn(x)` `T.M()` `T.G` `T.E` `I.N` `Edm.String` `azcore.Gone` `policy.Options.Gone` `ErrOne` `ErrO...` `tablepatterns.eventual.messages` `Fn(x)` `Fn[T](x)` `M()` `N(ctx)`\n",
		"docs/bad.md":  "`a.U`\n`a.T.H`\n`T.H`\n`U.F`\n`tablepatterns.eventual.gone`\n`ErrO`\n`ErrTwo...`\n`Gn(x)`\n`Gn[T](x)`\n",
		"CHANGELOG.md": "`a.Old`\n",
	}, sources, "Edm"),
		"docs/bad.md:1: no `a.U`", "docs/bad.md:2: no `a.T.H`", "docs/bad.md:3: no `T.H`", "docs/bad.md:4: no `U.F`", "docs/bad.md:5: no `tablepatterns.eventual.gone`",
		"docs/bad.md:6: no `ErrO`", "docs/bad.md:7: no `ErrTwo...`", "docs/bad.md:8: no `Gn(x)`", "docs/bad.md:9: no `Gn[T](x)`")
}
