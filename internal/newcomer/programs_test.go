package newcomer

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

const modulePath = "github.com/tablepatterns/tablepatterns"

// root is the repository, seen from the folder of this package.
const root = "../.."

// program is a whole file of package main, as somebody would paste it into an empty module.
type program struct{ name, text string }

// codeBlocks returns the contents of the fenced blocks of a language on a page, in their order.
func codeBlocks(page, language string) []string {
	var found []string
	for _, part := range strings.Split(page, "```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		found = append(found, text)
	}
	return found
}

// pagePrograms returns the whole programs among a page's blocks of Go, named NAME1, NAME2 and so on.
func pagePrograms(name, page string) []program {
	var found []program
	for _, text := range codeBlocks(page, "go") {
		if strings.Contains("\n"+text, "\npackage main\n") {
			found = append(found, program{fmt.Sprint(name, len(found)+1), text})
		}
	}
	return found
}

// publicPackages are the directories of the packages that users import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./...")
	list.Dir = root
	out, err := list.Output()
	assert.NoError(assert.Fatal(t), err, "go list")
	var dirs []string
	for path := range strings.FieldsSeq(string(out)) {
		dir := strings.TrimPrefix(path, modulePath+"/")
		if top, _, _ := strings.Cut(dir, "/"); top != "examples" && top != "cmd" && !strings.Contains("/"+dir+"/", "/internal/") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// testExamples are the examples of a package by file, in the order of the files, and in each file in that of the text.
func testExamples(fset *token.FileSet, dir string) (files []string, examples map[string][]*doc.Example, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	examples = map[string][]*doc.Example{}
	for _, name := range names {
		file, failed := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if failed != nil {
			return nil, nil, failed
		}
		found := doc.Examples(file)
		slices.SortFunc(found, func(a, b *doc.Example) int { return a.Order - b.Order })
		examples[name] = found
	}
	return names, examples, err
}

// allExamples are the examples of all files of a package.
func allExamples(t *testing.T, fset *token.FileSet, dir string) (all []*doc.Example) {
	t.Helper()
	names, examples, err := testExamples(fset, filepath.Join(root, dir))
	assert.Check(t, err)
	for _, name := range names {
		all = append(all, examples[name]...)
	}
	return all
}

// presented returns the example of a package that its page on pkg.go.dev shows first: the package's own, or else the first of
// example_test.go. It is nil without one.
func presented(fset *token.FileSet, dir string) (*doc.Example, error) {
	names, examples, err := testExamples(fset, dir)
	if err != nil {
		return nil, err
	}
	var first *doc.Example
	for _, name := range names {
		for _, example := range examples[name] {
			switch {
			case example.Name == "": // Example, or Example_suffix
				return example, nil
			case first == nil && filepath.Base(name) == "example_test.go":
				first = example
			}
		}
	}
	return first, nil
}

// standsAlone says why pkg.go.dev cannot offer an example as a program that others can run.
func standsAlone(dir string, example *doc.Example) error {
	if example.Play == nil {
		return fmt.Errorf("%s: Example%s uses declarations of other files", dir, example.Name)
	}
	for _, spec := range importsOf(example.Play) {
		if strings.HasPrefix(spec, modulePath+"/internal/") {
			return fmt.Errorf("%s: Example%s imports %s, which no other module can", dir, example.Name, spec)
		}
	}
	return nil
}

// playable returns the program that pkg.go.dev offers to run, and what is wrong with it.
func playable(fset *token.FileSet, dir string, example *doc.Example) (program, error) {
	if example == nil {
		return program{}, fmt.Errorf("%s: there is no Example, and none in example_test.go", dir)
	}
	if err := standsAlone(dir, example); err != nil {
		return program{}, err
	}
	if example.Output == "" {
		return program{}, fmt.Errorf("%s: Example%s has no Output", dir, example.Name)
	}
	var text strings.Builder
	if err := format.Node(&text, fset, example.Play); err != nil {
		return program{}, err
	}
	return program{"example" + strings.NewReplacer("/", "", "_", "").Replace(dir+example.Name), text.String()}, nil
}

// importsOf lists the imports in the declarations of a file. The Imports of a file that go/doc made are empty.
func importsOf(file *ast.File) []string {
	var paths []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			if spec, ok := s.(*ast.ImportSpec); ok {
				paths = append(paths, strings.Trim(spec.Path.Value, `"`))
			}
		}
	}
	return paths
}

var packageClause, mainFunction = regexp.MustCompile(`(?m)^package main$`), regexp.MustCompile(`(?m)^func main\(\)`)

// renamed is the program as a package of its name with a function Main, so that one binary can have many programs: linking each by
// itself would take most of the time of this test.
func (p program) renamed() string {
	return mainFunction.ReplaceAllString(packageClause.ReplaceAllString(p.text, "package "+p.name), "func Main()")
}

// build builds programs in a module outside of the repository, as a user's program does, and returns a binary: its first argument is
// the name of a program. The first program is also put into the module's top folder, whose path it returns.
func build(t *testing.T, programs []program) (runner, top string) {
	t.Helper()
	top = t.TempDir()
	repository := assert.Must[string](t)(filepath.Abs(root))
	var imports, entries strings.Builder
	for _, p := range programs {
		write(t, filepath.Join(top, p.name, "main.go"), p.renamed())
		fmt.Fprintf(&imports, "\t%q\n", "example.com/hello/"+p.name)
		fmt.Fprintf(&entries, "\t%q: %s.Main,\n", p.name, p.name)
	}
	write(t, filepath.Join(top, "main.go"), programs[0].text)
	write(t, filepath.Join(top, "runner", "main.go"), "package main\n\nimport (\n\t\"os\"\n\n"+imports.String()+")\n\nvar programs = map[string]func(){\n"+
		entries.String()+"}\n\nfunc main() {\n\tname := os.Args[1]\n\tos.Args = append(os.Args[:1], os.Args[2:]...)\n\tprograms[name]()\n}\n")
	run := func(arguments ...string) {
		t.Helper()
		began := time.Now()
		command := goCommand(t, top, arguments...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		t.Logf("go %s: %.1f s, processor %.1f s", arguments[0], time.Since(began).Seconds(), (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds())
	}
	run("mod", "init", "example.com/hello")
	run("mod", "edit", "-replace="+modulePath+"="+repository, "-require="+modulePath+"@v0.0.0") // in place of the published version
	run("mod", "tidy")
	runner = filepath.Join(top, "runner.exe")
	// Inlining the library's generic code into each program would take longer than all else.
	run("build", "-gcflags=example.com/hello/...=-l -dwarf=false", "-ldflags=-s -w", "-o", runner, "./runner")
	return runner, top
}

// goCommand is the go command in a folder of another module.
func goCommand(t *testing.T, dir string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return command
}

func write(t *testing.T, path, text string) {
	t.Helper()
	assert.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	assert.Check(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := assert.Must[[]byte](t)(os.ReadFile(filepath.Join(root, path)))
	return string(text)
}
