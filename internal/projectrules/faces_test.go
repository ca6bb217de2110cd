package projectrules

import (
	"fmt"
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// internalNames finds exported functions, methods and fields of public packages that name a type of an internal package: nobody outside
// of the module can call or set them. A type may be defined as an internal one, since its contents stay closed.
func internalNames(sources []source) []string {
	var bad []string
	for _, s := range sources {
		if s.isTest() || !isLibrary(s.dir()) {
			continue
		}
		inside := map[string]bool{}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if !strings.HasPrefix(name, modulePath+"/") || !strings.Contains(name, "/internal/") {
				continue
			}
			local := path.Base(name)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			inside[local] = true
		}
		check := func(what string, node ast.Node) {
			ast.Inspect(node, func(n ast.Node) bool {
				if x, ok := n.(*ast.SelectorExpr); ok {
					if id, ok := x.X.(*ast.Ident); ok && inside[id.Name] {
						bad = append(bad, fmt.Sprintf("%s: %s names %s.%s, a type of an internal package", s.at(x), what, id.Name, x.Sel.Name))
					}
				}
				return true
			})
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					check(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok || !t.Name.IsExported() {
						continue
					}
					if t.Assign.IsValid() {
						check(t.Name.Name, t.Type)
					}
					ast.Inspect(t.Type, func(n ast.Node) bool {
						f, ok := n.(*ast.Field)
						if ok && (len(f.Names) == 0 || f.Names[0].IsExported()) {
							check(t.Name.Name, f.Type)
						}
						return !ok
					})
				}
			}
		}
	}
	return bad
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) (name string) {
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func TestFacesNameNoInternalType(t *testing.T) {
	report(t, internalNames(projectSources(t)))
}

func TestFacesNameNoInternalTypeCanFail(t *testing.T) {
	text := "package p\nimport x \"" + modulePath + "/internal/rows\"\n" +
		"func Open(x.Pass) {}\nfunc closed(x.Pass) {}\ntype Handle x.Pass\ntype Alias = x.Pass\ntype hidden struct{ P x.Pass }\n" +
		"func (hidden) Open() x.Pass { return 1 }\nfunc (Handle) Get() *x.Pass { return nil }\ntype Options struct {\n\tP []x.Pass\n\tq x.Pass\n}\n"
	wantViolations(t, internalNames(parse(t, map[string]string{"scatter/s.go": text, "internal/rows/r.go": text})),
		"scatter/s.go:3: Open names x.Pass",
		"scatter/s.go:6: Alias names x.Pass",
		"scatter/s.go:9: Get names x.Pass",
		"scatter/s.go:11: Options names x.Pass",
	)
}
