package projectrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/tablepatterns/tablepatterns"

// root is the project's directory, seen from this package, where go test runs its tests.
const root = "../.."

// source is one Go file; its path is relative to the project, with slashes.
type source struct {
	path string
	text string
	fset *token.FileSet
	file *ast.File
}

// dir is the file's package, as a path relative to the project.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at says where a node is, the way compilers do.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// parse makes sources of texts by path.
func parse(t *testing.T, texts map[string]string) []source {
	t.Helper()
	sources, err := parseFiles(texts)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func parseFiles(texts map[string]string) ([]source, error) {
	fset := token.NewFileSet()
	var sources []source
	for name, text := range texts {
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		sources = append(sources, source{path: name, text: text, fset: fset, file: file})
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return sources, nil
}

// projectFiles are all Go files of the project: each of the rules would parse them once more.
var projectFiles = sync.OnceValues(func() ([]source, error) {
	texts, err := findFiles(".go")
	if err != nil {
		return nil, err
	}
	return parseFiles(texts)
})

// projectSources are all Go files of the project. The rules only read them.
func projectSources(t *testing.T) []source {
	t.Helper()
	sources, err := projectFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 10 {
		t.Fatalf("only %d Go files found under %s: the rules would hold for want of anything to break them", len(sources), root)
	}
	return slices.Clone(sources)
}

// readFiles reads the project's files with the given ending, by path, leaving out what Go leaves out and what is installed.
func readFiles(t *testing.T, ending string) map[string]string {
	t.Helper()
	files, err := findFiles(ending)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func findFiles(ending string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		hidden := name != root && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
		if d.IsDir() && (hidden || base == "testdata" || base == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || hidden || !strings.HasSuffix(base, ending) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		files[filepath.ToSlash(relative)] = string(text)
		return err
	})
	return files, err
}

// report fails the test for each place that breaks a rule.
func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// wantViolations checks that a rule found just these places, each given by a part of the message.
func wantViolations(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d places found, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("found %q, want %q", got[i], w)
		}
	}
}
