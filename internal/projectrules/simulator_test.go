package projectrules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const simulatorDir = "internal/simulator"

// simulatorServices do not know each other.
var simulatorServices = []string{"queues", "blobs", "tables"}

// simulatorOrder are the simulator's packages from its front door down; each may import those behind it. Those of probe are for
// tests, and have no place in it.
var simulatorOrder = slices.Concat([]string{"."}, simulatorServices, []string{
	"tables/screen", "tables/request", "tables/entity", "exchange", "authorization", "document", "environment", "snapshot", "protocol"})

// upwards finds imports among the simulator's packages that point against their order, and packages without a place in it.
func upwards(sources []source) []string {
	var bad []string
	for _, s := range sources {
		from, ours := simulatorPackage(s.dir())
		if !ours || s.isTest() || strings.HasPrefix(from, "probe") {
			continue
		}
		place := slices.Index(simulatorOrder, from)
		if place < 0 {
			bad = append(bad, s.path+": the package has no place in simulatorOrder")
			continue
		}
		for _, spec := range s.file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			to, ours := simulatorPackage(strings.TrimPrefix(name, modulePath+"/"))
			services := slices.Contains(simulatorServices, from) && slices.Contains(simulatorServices, to)
			if ours && (services || slices.Index(simulatorOrder, to) <= place) {
				bad = append(bad, fmt.Sprintf("%s: %s must not import %s", s.at(spec), from, to))
			}
		}
	}
	return bad
}

// simulatorPackage names a package of the simulator by its directory below it.
func simulatorPackage(dir string) (name string, ours bool) {
	if dir == simulatorDir {
		return ".", true
	}
	return strings.CutPrefix(dir, simulatorDir+"/")
}

func TestSimulatorImportsPointDown(t *testing.T) {
	report(t, upwards(projectSources(t)))
}

func TestSimulatorImportsPointDownCanFail(t *testing.T) {
	file := func(imports ...string) string {
		text := "package p\n"
		for _, i := range imports {
			text += "import _ \"" + modulePath + "/" + simulatorDir + i + "\"\n"
		}
		return text
	}
	wantViolations(t, upwards(parse(t, map[string]string{
		"internal/simulator/s.go":             file("/tables", "/protocol"),
		"internal/simulator/new/n.go":         file(),
		"internal/simulator/probe/p.go":       file(""),
		"internal/simulator/protocol/p.go":    file("", "/environment"),
		"internal/simulator/tables/t.go":      file("/tables/request", "/blobs", "/probe"),
		"internal/simulator/tables/t_test.go": file("", "/queues"),
		"storagetest/s.go":                    file("/tables/screen"),
	})),
		"new/n.go: the package has no place",
		"protocol/p.go:2: protocol must not import .",
		"protocol/p.go:3: protocol must not import environment",
		"tables/t.go:3: tables must not import blobs",
		"tables/t.go:4: tables must not import probe",
	)
}
