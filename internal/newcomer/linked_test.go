package newcomer

import (
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

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
	assert.NoError(assert.Fatal(t), err, "go list")
	return slices.DeleteFunc(slices.Clone(heavy), func(module string) bool { return !strings.Contains("\n"+string(out), "\n"+module) })
}

// TestFirstProgramLinksNoOtherClients: the program of README.md links the SDK's client for tables alone. With the package that has a queue it links
// those for queues and blobs, which the test could otherwise miss.
func TestFirstProgramLinksNoOtherClients(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", pagePrograms("readme", read(t, "README.md"))[0].text, parser.ImportsOnly)
	assert.Check(t, err)
	var all []string
	for _, spec := range file.Imports {
		path := assert.Must[string](t)(strconv.Unquote(spec.Path.Value))
		all = append(all, path)
	}
	if got := linked(t, all); len(got) > 0 {
		t.Errorf("a program that imports %q links %q; make the clients of a service in the package that uses them", all, got)
	}
	if got, want := linked(t, append(all, modulePath+"/eventual")), heavy[:2]; !slices.Equal(got, want) {
		t.Errorf("with a queue, the program links %q, want %q", got, want)
	}
}
