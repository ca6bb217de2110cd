package patterns_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// careless is the environment variable that tells this test binary, run again by the test, to let the sweep fail.
const careless = "SWEEP_CARELESS"

// TestSweepFindsTwoWrites: the rows of the transaction written one by one, as a program without the library would.
func TestSweepFindsTwoWrites(t *testing.T) {
	if os.Getenv(careless) != "" {
		c := sweptTransaction()
		c.states[1] = "p/a=new p/b=new"
		c.operate = func(ctx context.Context, s *storagetest.Service, name string) error {
			table, err := openTable(s, name)
			if err != nil {
				return err
			}
			for _, row := range []string{"a", "b"} {
				if err := table.Entities().Upsert(ctx, harness.Bag("p", row, "new")); err != nil {
					return err
				}
			}
			return nil
		}
		c.run(t)
		return
	}
	self := assert.Must[string](t)(os.Executable())
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSweepFindsTwoWrites$", "-test.v")
	cmd.Env = append(os.Environ(), careless+"=1")
	out, err := cmd.CombinedOutput()
	said := regexp.MustCompile(`sweep TestSweepFindsTwoWrites: 56 points, ([1-9]\d*) divergences`).FindString(string(out))
	if err == nil || said == "" || !strings.Contains(string(out), "there is: p/a=new p/b=old") {
		t.Fatalf("two writes without an agreement were not caught: %v\n%s", err, out)
	}
	t.Log("as expected: " + said)
}
