package projectrules

import (
	"go/ast"
	"go/doc"
	"slices"
	"strings"
	"testing"
)

// undocumented finds library packages without an example that go test runs or that no document mentions.
func undocumented(sources []source, documents map[string]string) []string {
	var bad []string
	testFiles := map[string][]*ast.File{}
	for _, s := range sources {
		if s.isTest() {
			testFiles[s.dir()] = append(testFiles[s.dir()], s.file)
		}
	}
	seen := map[string]bool{}
	for _, s := range sources {
		if s.isTest() || seen[s.dir()] || !isLibrary(s.dir()) {
			continue
		}
		seen[s.dir()] = true
		runs := func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }
		if !slices.ContainsFunc(doc.Examples(testFiles[s.dir()]...), runs) {
			bad = append(bad, s.dir()+": no Example with an Output comment, so none that go test runs")
		}
		if !mentioned(s.dir(), documents) {
			bad = append(bad, s.dir()+": neither README.md nor a page of docs mentions it, as `"+s.dir()+"` or by its import path")
		}
	}
	return bad
}

func mentioned(dir string, documents map[string]string) bool {
	for name, text := range documents {
		user := name == "README.md" || strings.HasPrefix(name, "docs/")
		if user && (strings.Contains(text, "`"+dir+"`") || strings.Contains(text, modulePath+"/"+dir)) {
			return true
		}
	}
	return false
}

func TestPackagesAreDocumented(t *testing.T) {
	report(t, undocumented(projectSources(t), projectDocuments(t)))
}

func TestPackagesAreDocumentedCanFail(t *testing.T) {
	wantViolations(t, undocumented(parse(t, map[string]string{
		"access/a.go":            "package access\n",
		"access/a_test.go":       "package access\nfunc ExampleA() { f() }\n",
		"cmd/tool/main.go":       "// Command tool works.\npackage main\n",
		"encryption/doc.go":      "// Package encryption encrypts.\npackage encryption\n",
		"encryption/e.go":        "package encryption\n",
		"encryption/e_test.go":   "package encryption_test\nfunc Example() {\n\tf()\n\t// Output: x\n}\n",
		"internal/wire/w.go":     "package wire\n",
		"logtail/l.go":           "// Package logtail is newest first.\npackage logtail\n",
		"logtail/l_test.go":      "package logtail\nfunc Example() {\n\tf()\n\t// Output:\n}\n",
		"compoundkey/c.go":       "// Package compoundkey joins.\npackage compoundkey\n",
		"compoundkey/ex_test.go": "package compoundkey\nfunc Example() {\n\tf()\n\t// Output:\n}\n",
	}), map[string]string{
		"README.md":    "Use `encryption`, and access it.",
		"CHANGELOG.md": "Added `logtail`.",
		"docs/keys.md": "import \"" + modulePath + "/compoundkey\"",
	}),
		"access: no Example",
		"access: neither README.md",
		"logtail: neither README.md",
	)
}
