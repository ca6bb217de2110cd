package projectrules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// patternPackages are the packages of single patterns; none of them knows another.
var patternPackages = []string{
	"intrapartition", "interpartition", "indexentities", "denormalization", "logtail", "highvolumedelete", "dataseries",
	"widentities", "largeentities", "scatter", "logdata", "heterogeneous", "relationships", "encryption", "access",
}

// basePackages are the internal packages below package entity.
var basePackages = []string{"internal/carry", "internal/edm", "internal/filter", "internal/kinds", "internal/odata", "internal/refusal", "internal/handle", "internal/resource", "internal/rows", "internal/tally", "internal/verdict", "internal/wire"}

// mayImport says which layers the code of a layer may import, tests apart.
var mayImport = map[string][]string{
	"compoundkey": {},
	"base":        {"compoundkey", "base"}, // what the vocabulary needs; without I/O
	"entity":      {"compoundkey", "base"},
	"internal":    {"internal", "base", "entity", "compoundkey"},
	"tables":      {"internal", "base", "entity", "compoundkey"},
	"driver":      {"internal", "base", "entity", "compoundkey", "tables"},
	"tablescan":   {"internal", "base", "entity", "compoundkey", "tables"}, // the scans of the jobs of patterns and backup
	"backup":      {"internal", "base", "entity", "compoundkey", "tables", "tablescan"},
	"patterns":    {"internal", "base", "entity", "compoundkey", "tables", "driver", "tablescan"},
	"eventual":    {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns"}, // the queue of a Store, and its worker
	"blobstorage": {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns"}, // the containers of a Store
	"keyindex":    {"internal", "base", "entity", "compoundkey", "tables", "driver"},             // what the index packages share
	"pattern":     {"internal", "base", "entity", "compoundkey", "tables", "driver", "keyindex", "patterns", "eventual", "blobstorage"},
	"httpapi":     {"internal", "base", "entity", "compoundkey", "tables"},
	"inspect":     {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns"},
	"storagetest": {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns", "eventual", "blobstorage", "pattern", "storagetest"},
	"harness":     {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns", "eventual", "blobstorage", "storagetest"}, // of the tests; nobody's code imports it
	"application": {"internal", "base", "entity", "compoundkey", "tables", "driver", "patterns", "eventual", "blobstorage", "pattern", "inspect", "backup", "httpapi", "storagetest", "application"},
}

// layer names the layer of a package, given by its directory; "" for one that no layer knows.
func layer(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	switch {
	case dir == "patterns/driver":
		return "driver"
	case slices.Contains(patternPackages, top), dir == "eventual/archive":
		return "pattern"
	case top == "examples" || top == "cmd" || dir == "internal/inserttrace":
		return "application"
	case slices.Contains(basePackages, dir):
		return "base"
	case dir == "internal/keyindex" || dir == "internal/tablescan":
		return strings.TrimPrefix(dir, "internal/")
	case dir == "internal/harness" || dir == "internal/leaks" || dir == "internal/explore" || dir == "internal/interop/jsclient":
		return "harness"
	case mayImport[top] != nil:
		return top
	}
	return ""
}

// isLibrary says whether a package is one that users import.
func isLibrary(dir string) bool {
	l := layer(dir)
	return l != "" && l != "internal" && l != "base" && l != "keyindex" && l != "tablescan" && l != "harness" && l != "application" && !strings.Contains(dir, "/internal/")
}

// badImports finds imports that point against the arrows. Within a pattern's own directory, packages may import each other.
func badImports(sources []source) []string {
	var bad []string
	for _, s := range sources {
		from := layer(s.dir())
		if from == "" {
			bad = append(bad, s.path+": no layer is known for this package; name it in mayImport or patternPackages")
			continue
		}
		if s.isTest() {
			continue
		}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(name, modulePath+"/")
			if !ours || allowed(s.dir(), from, to) {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: %s must not import %s", s.at(spec), s.dir(), to))
		}
	}
	return bad
}

func allowed(dir, from, to string) bool {
	top := func(dir string) string { first, _, _ := strings.Cut(dir, "/"); return first }
	if from != "compoundkey" && top(dir) == top(to) && layer(to) == from {
		return true
	}
	return slices.Contains(mayImport[from], layer(to))
}

func TestImportsPointOneWay(t *testing.T) {
	report(t, badImports(projectSources(t)))
}

func TestImportsPointOneWayCanFail(t *testing.T) {
	file := func(imports ...string) string {
		text := "package p\n"
		for _, i := range imports {
			text += "import _ \"" + modulePath + "/" + i + "\"\n"
		}
		return text
	}
	wantViolations(t, badImports(parse(t, map[string]string{
		"a/a.go":                 file(),
		"compoundkey/k.go":       file("internal/edm"),
		"encryption/good.go":     file("patterns", "eventual", "compoundkey", "internal/wire", "encryption/sub"),
		"eventual/e.go":          file("intrapartition", "eventual/archive", "patterns"),
		"eventual/archive/a.go":  file("eventual", "patterns", "encryption"),
		"examples/contoso/ok.go": file("storagetest", "encryption", "patterns"),
		"internal/harness/h.go":  file("patterns", "storagetest", "eventual", "internal/race", "scatter"),
		"internal/wire/w.go":     file("internal/edm", "compoundkey", "patterns", "internal/harness"),
		"intrapartition/i.go":    file("indexentities"),
		"intrapartition/ok.go":   "package p\nimport _ \"fmt\"\nimport _ \"" + modulePath + "other/x\"\n",
		"intrapartition/x_test.go": file(
			"storagetest", "indexentities"),
		"logtail/l.go":         file("storagetest"),
		"patterns/driver/d.go": file("tables", "internal/wire", "patterns"),
		"patterns/p.go":        file("compoundkey", "internal/wire", "eventual", "encryption"),
		"tables/t.go":          file("compoundkey", "internal/wire", "patterns"),
		"storagetest/s.go":     file("patterns", "examples/contoso", "internal/harness"),
	})),
		"a/a.go: no layer",
		"compoundkey/k.go:2: compoundkey must not import internal/edm",
		"eventual/archive/a.go:4: eventual/archive must not import encryption",
		"eventual/e.go:2: eventual must not import intrapartition",
		"eventual/e.go:3: eventual must not import eventual/archive",
		"internal/harness/h.go:6: internal/harness must not import scatter",
		"internal/wire/w.go:4: internal/wire must not import patterns",
		"internal/wire/w.go:5: internal/wire must not import internal/harness",
		"intrapartition/i.go:2: intrapartition must not import indexentities",
		"logtail/l.go:2: logtail must not import storagetest",
		"patterns/driver/d.go:4: patterns/driver must not import patterns",
		"patterns/p.go:4: patterns must not import eventual",
		"patterns/p.go:5: patterns must not import encryption",
		"storagetest/s.go:3: storagetest must not import examples/contoso",
		"storagetest/s.go:4: storagetest must not import internal/harness",
		"tables/t.go:4: tables must not import patterns",
	)
}
