package projectrules

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// skipsAllowed are the functions, as path:name, that may skip a test, each with the reason. A skipped test reads as one
// that passed, so the list is short: but for the first one, which all others call, they are about Azurite, and are left out
// of a suite on the simulator. A suite on Azurite runs them.
var skipsAllowed = map[string]string{
	"backup/kill_test.go:TestKilled":                                     "kills processes, which a simulator in memory cannot serve",
	"eventual/kill_test.go:TestKilledWorkers":                            "kills worker processes, which a simulator in memory cannot serve",
	"eventual/outboxkill_test.go:TestKilledOutboxes":                     "kills processes, which a simulator in memory cannot serve",
	"logdata/kill_test.go:TestKilledWriters":                             "kills writer processes, which a simulator in memory cannot serve",
	"internal/chaos/check/chaos_test.go:TestChaos":                       "kills processes, which a simulator in memory cannot serve",
	"storagetest/open.go:AzuriteOnly":                                    "skips only where the environment asks for the simulator",
	"patterns/sweep_test.go:TestSweepOnAzurite":                          "the other sweeps are on the simulator",
	"interpartition/sweep_test.go:TestSweepOnAzurite":                    "the other sweeps are on the simulator",
	"storagetest/azurite_test.go:azurite":                                "for tests of the Azurite that a test binary shares",
	"storagetest/azurite_test.go:sharedAzurite":                          "for tests of Azurite beside Strict",
	"storagetest/azurite_test.go:start":                                  "for tests of an Azurite of their own",
	"storagetest/child_test.go:TestAzuriteEndsWithTheTestBinary":         "Azurite's process",
	"storagetest/child_test.go:TestTwoTestBinariesInstallOnce":           "Azurite's installation",
	"storagetest/child_test.go:TestWithoutNode":                          "Azurite's installation",
	"storagetest/conformance/target_test.go:targets":                     "compares Azurite with the simulator",
	"storagetest/example_azurite_test.go:TestExampleStartAzurite":        "Azurite's process",
	"storagetest/server_test.go:TestAServerThatCannotStartSaysWhy":       "Azurite's process",
	"storagetest/server_test.go:TestStopEndsAzuriteAndLeavesNoGoroutine": "Azurite's process",
}

// skipping are the functions that skip a test, or that may.
var skipping = []string{"Skip", "Skipf", "SkipNow", "AzuriteOnly"}

// skips finds tests that skip themselves.
func skips(sources []source, allowed map[string]string) []string {
	var bad []string
	unused := maps.Clone(allowed)
	for _, s := range sources {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.isTest() && layer(s.dir()) != "storagetest" {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || !slices.Contains(skipping, sel.Sel.Name) {
					return true
				}
				name := s.path + ":" + f.Name.Name
				if delete(unused, name); allowed[name] == "" {
					bad = append(bad, fmt.Sprintf("%s: %s skips; a test that cannot run must fail, or be listed", s.at(sel), f.Name.Name))
				}
				return true
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		bad = append(bad, name+" is listed as a test that skips, and does not")
	}
	return bad
}

var unfinishedWord = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// unfinished finds notes of work to do, in comments and documents: an issue is the place for those.
func unfinished(sources []source, documents map[string]string) []string {
	var bad []string
	for _, s := range sources {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if word := unfinishedWord.FindString(c.Text); word != "" {
					bad = append(bad, s.at(c)+": "+word)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		for i, line := range strings.Split(documents[name], "\n") {
			if word := unfinishedWord.FindString(line); word != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %s", name, i+1, word))
			}
		}
	}
	return bad
}

func TestNoSkips(t *testing.T) {
	report(t, skips(projectSources(t), skipsAllowed))
}

func TestNoUnfinishedWork(t *testing.T) {
	report(t, unfinished(projectSources(t), projectDocuments(t)))
}

func TestNoSkipsCanFail(t *testing.T) {
	wantViolations(t, skips(parse(t, map[string]string{
		"logtail/a_test.go":    "package p\nfunc TestA(t *testing.T) {\n\tt.Skip(\"no Azurite\")\n}\n",
		"logtail/b_test.go":    "package p\nfunc FuzzB(f *testing.F) {\n\tf.Fuzz(func(t *testing.T) { t.SkipNow() })\n}\n",
		"logtail/c_test.go":    "package p\nfunc TestC(t *testing.T) {\n\tt.Skipf(\"listed\")\n}\n",
		"logtail/d.go":         "package p\nfunc d(r reader) {\n\tr.Skip()\n}\n",
		"logtail/e_test.go":    "package p\nfunc TestE(t *testing.T) {\n\tstoragetest.AzuriteOnly(t)\n}\n",
		"storagetest/start.go": "package p\nfunc start(t testing.TB) {\n\tt.Skip()\n}\n",
	}), map[string]string{"logtail/c_test.go:TestC": "a test", "logtail/c_test.go:TestGone": "a test"}),
		"logtail/a_test.go:3: TestA skips",
		"logtail/b_test.go:3: FuzzB skips",
		"logtail/e_test.go:3: TestE skips",
		"storagetest/start.go:3: start skips",
		"TestGone is listed",
	)
}

func TestNoUnfinishedWorkCanFail(t *testing.T) {
	wantViolations(t, unfinished(parse(t, map[string]string{
		"logtail/a.go": "package p\n\n// f works.\n// TODO: not yet\nfunc f() { g(context.TODO(), \"FIXME\") /* FIXME now */ }\n",
	}), map[string]string{"docs/a.md": "# A\n\nTODO\n"}),
		"logtail/a.go:4: TODO",
		"logtail/a.go:5: FIXME",
		"docs/a.md:3: TODO",
	)
}
