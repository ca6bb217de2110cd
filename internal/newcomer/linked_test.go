package newcomer

import (
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// queueing are packages of README.md's first program that need a queue, whose large messages are blobs. A program whose index is in the
// partition has the other package instead, or none.
var queueing = map[string]string{
	modulePath + "/interpartition": modulePath + "/intrapartition",
	modulePath + "/eventual":       "",
}

// heavy are the modules that a program links only if it uses what needs them, by the beginning of their packages.
var heavy = []string{
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue",
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity",
}

// linked returns which of the heavy modules a program with these imports links.
func linked(t *testing.T, imports []string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, imports...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal("go list:", err)
	}
	return slices.DeleteFunc(slices.Clone(heavy), func(module string) bool { return !strings.Contains("\n"+string(out), "\n"+module) })
}

// TestFirstProgramLinksNoOtherClients: the program of README.md with its index in the partition, as README.md shows it, links the SDK's
// client for tables alone. With the index beyond the partition it links those for queues and blobs, which the test could otherwise miss.
func TestFirstProgramLinksNoOtherClients(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", pagePrograms("readme", read(t, "README.md"))[0].text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var all, inside []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
		if other, needs := queueing[path]; needs {
			path = other
		}
		if path != "" {
			inside = append(inside, path)
		}
	}
	if got := linked(t, inside); len(got) > 0 {
		t.Errorf("a program that imports %q links %q; make the clients of a service in the package that uses them", inside, got)
	}
	if got, want := linked(t, all), heavy[:2]; !slices.Equal(got, want) {
		t.Errorf("a program that imports %q links %q, want %q", all, got, want)
	}
}
