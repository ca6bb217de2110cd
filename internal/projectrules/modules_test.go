package projectrules

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// keyModules are all that compoundkey may import from outside the standard library.
var keyModules = []string{"github.com/google/uuid", "golang.org/x/text"}

// libraryModules are all that the other packages may import; an entry that ends in a slash stands for all below it.
var libraryModules = []string{
	"github.com/Azure/azure-sdk-for-go/sdk/",
	"github.com/go-json-experiment/json",
	"github.com/google/uuid",
	"go.opentelemetry.io/otel",
	"go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/trace",
	"golang.org/x/",
}

// testModules are all that tests may import besides. Go downloads them for every program whose go mod tidy reads the tests of a package
// that it imports, so that a module of test vectors has no place here.
var testModules = []string{
	"github.com/google/go-cmp",
	"github.com/klauspost/compress",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// pulledIn are the modules that those compile in, themselves; the project imports none of them.
var pulledIn = map[string]string{
	"github.com/AzureAD/microsoft-authentication-library-for-go": "azidentity",
	"github.com/cespare/xxhash/v2":                               "go.opentelemetry.io/otel",
	"github.com/go-logr/logr":                                    "go.opentelemetry.io/otel",
	"github.com/go-logr/stdr":                                    "go.opentelemetry.io/otel",
	"github.com/golang-jwt/jwt/v5":                               "azidentity",
	"github.com/kylelemons/godebug":                              "azidentity",
	"github.com/pkg/browser":                                     "azidentity",
	"go.opentelemetry.io/auto/sdk":                               "go.opentelemetry.io/otel",
	"go.opentelemetry.io/otel/log":                               "go.opentelemetry.io/otel",
}

// modulesOf are the modules that a package may import.
func modulesOf(dir string) []string {
	if layer(dir) == "compoundkey" {
		return keyModules
	}
	if layer(dir) == "backup" {
		return append(slices.Clip(libraryModules), "github.com/klauspost/compress") // zstd of chunks
	}
	return libraryModules
}

// within says whether a module, or a package of it, is one of the list.
func within(name string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return name == entry || strings.HasPrefix(name, strings.TrimSuffix(entry, "/")+"/")
	})
}

// foreignImports finds imports of modules that the package, or its tests, may not import. Applications are free.
func foreignImports(sources []source) []string {
	var bad []string
	for _, s := range sources {
		if layer(s.dir()) == "application" {
			continue
		}
		modules := modulesOf(s.dir())
		if s.isTest() || layer(s.dir()) == "harness" {
			modules = slices.Concat(libraryModules, testModules)
		}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			host, _, _ := strings.Cut(name, "/")
			ours := strings.HasPrefix(name, modulePath+"/")
			if !strings.Contains(host, ".") || ours || within(name, modules) {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: %s must not import %s", s.at(spec), s.dir(), name))
		}
	}
	return bad
}

// foreignModules finds modules that are compiled into a package and should not be, whoever imports them.
func foreignModules(dir string, modules []string) []string {
	var bad []string
	for _, m := range modules {
		if m == modulePath || within(m, modulesOf(dir)) {
			continue
		}
		if layer(dir) != "compoundkey" && pulledIn[m] != "" {
			continue
		}
		bad = append(bad, fmt.Sprintf("%s compiles in the module %s", dir, m))
	}
	return bad
}

func TestForeignImports(t *testing.T) {
	report(t, foreignImports(projectSources(t)))
}

func TestForeignModules(t *testing.T) {
	for _, dir := range libraryDirs(projectSources(t)) {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./"+dir)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("go list -deps ./%s: %v", dir, err)
			continue
		}
		modules := strings.Fields(string(out))
		slices.Sort(modules)
		modules = slices.Compact(modules)
		if !slices.Contains(modules, modulePath) {
			t.Errorf("go list -deps ./%s lists no package of ours: %q", dir, modules)
		}
		report(t, foreignModules(dir, modules))
	}
}

// libraryDirs are the packages that users import and that have code.
func libraryDirs(sources []source) []string {
	var dirs []string
	for _, s := range sources {
		if !s.isTest() && isLibrary(s.dir()) && !slices.Contains(dirs, s.dir()) {
			dirs = append(dirs, s.dir())
		}
	}
	return dirs
}

func TestForeignCodeRulesCanFail(t *testing.T) {
	file := func(name string) string { return "package p\nimport _ \"" + name + "\"\n" }
	const tables = "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	wantViolations(t, foreignImports(parse(t, map[string]string{
		"access/a.go":          file("github.com/Azure/azure-sdk-for-go-other/sdk/x"),
		"cmd/tool/c.go":        file("github.com/spf13/cobra"),
		"compoundkey/k.go":     file("golang.org/x/sync/errgroup"),
		"compoundkey/ok.go":    file("github.com/google/uuid"),
		"internal/wire/w.go":   file("go.opentelemetry.io/auto/sdk"),
		"patterns/json.go":     file("github.com/go-json-experiment/json/jsontext"),
		"patterns/p.go":        file("github.com/pkg/errors"),
		"patterns/p_test.go":   file("pgregory.net/rapid"),
		"patterns/v_test.go":   file("github.com/c2sp/wycheproof"),
		"patterns/standard.go": file("net/http"),
		"patterns/tables.go":   file(tables),
	})),
		"access/a.go:2: access must not import github.com/Azure/azure-sdk-for-go-other/sdk/x",
		"compoundkey/k.go:2: compoundkey must not import golang.org/x/sync",
		"internal/wire/w.go:2: internal/wire must not import go.opentelemetry.io/auto/sdk",
		"patterns/p.go:2: patterns must not import github.com/pkg/errors",
		"patterns/v_test.go:2: patterns must not import github.com/c2sp/wycheproof",
	)
	wantViolations(t, foreignModules("patterns", []string{modulePath, tables, "github.com/pkg/browser", "github.com/apache/arrow-go/v18"}),
		"patterns compiles in the module github.com/apache/arrow-go/v18")
	wantViolations(t, foreignModules("compoundkey", []string{modulePath, "github.com/google/uuid", "github.com/pkg/browser"}),
		"compoundkey compiles in the module github.com/pkg/browser")
}
