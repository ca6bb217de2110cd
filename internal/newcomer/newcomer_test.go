package newcomer

import (
	"bufio"
	"bytes"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// pasted are the examples, as directory and name, that TestNewcomer runs beside the first one of each package: they need the most types
// and functions of their files.
var pasted = map[string]bool{
	"eventual OnCommit": true, "eventual OnCommit_searchIndex": true, "eventual/archive Along": true, "eventual/archive ToFiles": true,
	"patterns Repository_Verify": true, "scatter NewNatural": true, "tables Query_AllParallel": true,
}

// TestNewcomer runs what newcomers copy, in a module of its own: the programs on the pages, the first example of each package, and pasted.
func TestNewcomer(t *testing.T) {
	readme := pagePrograms("readme", read(t, "README.md"))
	pages, err := filepath.Glob(filepath.Join(root, "docs/tutorial/[1-9]-*.md"))
	if err != nil || len(pages) != 6 || len(readme) != 1 {
		t.Fatalf("%d pages of the tutorial and %d programs in README.md (%v), want 6 and 1", len(pages), len(readme), err)
	}
	var programs []program
	texts := map[string][]string{}
	for _, page := range pages {
		name := "step" + path.Base(filepath.ToSlash(page))[:1]
		text := read(t, "docs/tutorial/"+filepath.Base(page))
		programs = append(programs, pagePrograms(name, text)...)
		texts[name] = codeBlocks(text, "text")
	}
	programs = append(programs, readme...)
	programs = append(programs, program{"simulator", read(t, "examples/tutorial/simulator/main.go")})

	fset := token.NewFileSet()
	outputs, missing := map[string]string{}, maps.Clone(pasted)
	for _, dir := range publicPackages(t) {
		example := assert.Must[*doc.Example](t)(presented(fset, filepath.Join(root, dir)))
		chosen := []*doc.Example{example}
		for _, other := range allExamples(t, fset, dir) {
			if pasted[dir+" "+other.Name] {
				chosen = append(chosen, other)
				delete(missing, dir+" "+other.Name)
			}
		}
		for _, example := range chosen {
			p, err := playable(fset, dir, example)
			if err != nil {
				t.Error(err)
				continue
			}
			programs = append(programs, p)
			outputs[p.name] = example.Output
		}
	}
	for id := range missing {
		t.Error("there is no example", id)
	}
	for name, text := range map[string]string{"README.md": read(t, "README.md"), pages[0]: read(t, "docs/tutorial/"+filepath.Base(pages[0]))} {
		if commands := strings.Join(codeBlocks(text, "sh"), ""); !strings.Contains(commands, "go mod init ") || !strings.Contains(commands, "go mod tidy") {
			t.Errorf("%s must say go mod init and go mod tidy: go get alone does not add the checksums of what the library imports", name)
		}
	}
	runner, top := build(t, programs)

	for name, want := range outputs {
		t.Run(name, func(t *testing.T) {
			if got := run(t, runner, "", name); strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("README", func(t *testing.T) {
		assert.Equal(t, run(t, runner, startSimulator(t, runner), "readme1"), "found Sales 223\n")
	})
	t.Run("tutorial on the simulator", func(t *testing.T) {
		t.Parallel()
		connection := startSimulator(t, runner)
		first := goCommand(t, top, "run", ".")
		first.Env = append(first.Env, storagetest.ConnectionStringVariable+"="+connection)
		out := assert.Must[[]byte](t)(first.Output())
		tutorial(t, runner, connection, string(out), texts)
	})
	simulated := assert.Must[bool](t)(storagetest.Simulated())
	if !simulated {
		t.Run("tutorial on Azurite", func(t *testing.T) {
			t.Parallel()
			connection := storagetest.Azurite(t).ConnectionString
			tutorial(t, runner, connection, run(t, runner, connection, "step11"), texts)
		})
	}
}

// tutorial follows the pages from the first to the last and compares what they show with what the programs print. inserted is what
// step 1 has printed.
func tutorial(t *testing.T, runner, connection, inserted string, texts map[string][]string) {
	expect := func(step string, block int, got string) {
		t.Helper()
		if len(texts[step]) <= block {
			t.Fatalf("%s has %d blocks of text, want more than %d", step, len(texts[step]), block)
		}
		if want := texts[step][block]; got != want {
			t.Errorf("%s, block %d of text: got\n%s\nwant\n%s", step, block+1, got, want)
		}
	}
	expect("step1", 0, inserted)
	expect("step1", 1, run(t, runner, connection, "step11"))
	expect("step2", 0, run(t, runner, connection, "step21"))
	expect("step3", 0, run(t, runner, connection, "step31"))
	expect("step4", 0, run(t, runner, connection, "step41"))
	expect("step5", 0, killed(t, runner, connection))
	expect("step5", 1, run(t, runner, connection, "step51", "look"))
	run(t, runner, connection, "step51", "change", "june@contoso.com")
	expect("step5", 2, run(t, runner, connection, "step51", "look"))
	expect("step5", 3, run(t, runner, connection, "step52"))
	serve(t, runner, connection, func(block int, got string) { expect("step6", block, got) })
}

// command prepares a program that reads the connection string.
func command(t *testing.T, runner, connection string, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.CommandContext(t.Context(), runner, arguments...)
	c.Env = append(os.Environ(), storagetest.ConnectionStringVariable+"="+connection, "ADDRESS=127.0.0.1:0")
	log := new(bytes.Buffer)
	c.Stderr = log
	return c, log
}

// run returns what a program prints.
func run(t *testing.T, runner, connection string, arguments ...string) string {
	t.Helper()
	c, log := command(t, runner, connection, arguments...)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", arguments, err, out, log)
	}
	return string(out)
}

// start starts a program and reads what it prints up to a line with the text, which it returns beside all lines before and itself. The
// rest of the output is read and dropped until wait, which waits for the program's end.
func start(t *testing.T, c *exec.Cmd, from func() (io.ReadCloser, error), until string) (line, all string, wait func() error) {
	t.Helper()
	pipe := assert.Must[io.ReadCloser](t)(from())
	assert.Check(t, c.Start())
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		all += lines.Text() + "\n"
		if strings.Contains(lines.Text(), until) {
			dropped := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, pipe) // a full pipe would stop the program
				dropped <- err
			}()
			return lines.Text(), all, func() error { <-dropped; return c.Wait() }
		}
	}
	t.Fatalf("the program ended without %q: %s", until, all)
	return "", "", nil
}

// startSimulator runs the simulator of the tutorial until the test ends, and returns its connection string.
func startSimulator(t *testing.T, runner string) string {
	t.Helper()
	c, _ := command(t, runner, "", "simulator")
	line, _, wait := start(t, c, c.StdoutPipe, "export ")
	t.Cleanup(func() { // the test's context has just killed it
		assert.Error(t, wait(), "the simulator ended by itself")
	})
	_, quoted, _ := strings.Cut(line, "=")
	return strings.Trim(quoted, "'")
}

// killed kills the program of step 5 at the moment at which the reader is told to.
func killed(t *testing.T, runner, connection string) string {
	t.Helper()
	c, _ := command(t, runner, connection, "step51", "kill", "jones@contoso.com")
	_, all, wait := start(t, c, c.StdoutPipe, "press Ctrl+C")
	assert.Check(t, c.Process.Kill())
	assert.Error(t, wait(), "the program ended well, although it was killed")
	return all
}

var serving = regexp.MustCompile(`"address":"([^"]*)"`)

// serve runs the service of step 6, asks it what the page asks, and stops it.
func serve(t *testing.T, runner, connection string, expect func(block int, got string)) {
	t.Helper()
	c, _ := command(t, runner, connection, "step61")
	c.Stderr = nil
	line, _, wait := start(t, c, c.StderrPipe, `"address":"`)
	address := "http://" + serving.FindStringSubmatch(line)[1]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, target, body string) string {
		t.Helper()
		req := assert.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, address+target, strings.NewReader(body)))
		resp := assert.Must[*http.Response](t)(client.Do(req))
		defer resp.Body.Close()
		got := assert.Must[[]byte](t)(io.ReadAll(resp.Body))
		return strings.TrimSpace(string(got)+"\n"+resp.Status[:3]) + "\n"
	}
	const lee = `{"Department":"Support","ID":9,"LastName":"Lopez","Email":"lee@contoso.com"}`
	expect(0, ask("POST", "/employees", lee))
	expect(1, ask("GET", "/employees/LEE@contoso.com", ""))
	expect(2, ask("POST", "/employees", strings.Replace(lee, "9", "10", 1)))
	expect(3, ask("GET", "/ready", ""))
	assert.Contains(t, ask("GET", "/metrics", ""), `"db.client.operation.duration"`, "metrics")
	assert.Check(t, c.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, wait(), "after SIGTERM")
}

// TestExamplesStandAlone holds that every example can be copied as it is, with the types that it uses.
func TestExamplesStandAlone(t *testing.T) {
	fset := token.NewFileSet()
	n := 0
	for _, dir := range publicPackages(t) {
		for _, example := range allExamples(t, fset, dir) {
			n++
			assert.Check(t, standsAlone(dir, example))
		}
	}
	if n < 90 {
		t.Errorf("found %d examples, want at least 90", n)
	}
}

// TestPlayableCanFail keeps the checks of examples from passing whatever they are given.
func TestPlayableCanFail(t *testing.T) {
	for text, want := range map[string]string{
		"package p_test\n\nfunc Example() {\n\tother()\n\t// Output: x\n}\n":                                                                                               "other files",
		"package p_test\n\nimport \"fmt\"\n\nfunc Example() {\n\tfmt.Print()\n}\n":                                                                                         "no Output",
		"package p_test\n\nimport \"" + modulePath + "/internal/edm\"\n\nfunc Example() {\n\tedm.X()\n\t// Output: x\n}\n":                                                 "no other module",
		"package p_test\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n":                                                                                            "no Example",
		"package p_test\n\nimport \"fmt\"\n\ntype X struct{}\n\nfunc Example() {\n\tfmt.Print(X{})\n\t// Output: {}\n}\n\nfunc ExampleX() {\n\tother()\n\t// Output:\n}\n": "",
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "example_test.go", text, parser.ParseComments)
		assert.Check(t, err)
		var example *doc.Example
		if all := doc.Examples(file); len(all) > 0 {
			example = all[0]
		}
		p, err := playable(fset, "p", example)
		if want == "" && (err != nil || !strings.Contains(p.text, "type X struct")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
}
