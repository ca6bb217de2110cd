package projectrules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pinnedAction is an action of a workflow at a full commit, whose version stands behind it as a comment.
var pinnedAction = regexp.MustCompile(`^uses: [A-Za-z0-9_./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)

// movableActions finds actions that a workflow names by a tag or a branch, which whoever can write to the action's repository can move.
func movableActions(workflows map[string]string) (bad []string) {
	for name, text := range workflows {
		number := 0
		for line := range strings.Lines(text) {
			number++
			step := strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if strings.HasPrefix(step, "uses:") && !pinnedAction.MatchString(step) {
				bad = append(bad, fmt.Sprintf("%s:%d: %q: name the action's commit by 40 digits, with the version as a comment", name, number, step))
			}
		}
	}
	return bad
}

func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.y*ml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	workflows := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		workflows[name] = string(text)
	}
	report(t, movableActions(workflows))
}

func TestActionsArePinnedCanFail(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	wantViolations(t, movableActions(map[string]string{"ci.yml": "steps:\n  - uses: a/b@" + commit + " # v1.2.3\n  - name: x\n    uses: a/b/c@" + commit + " # v1.2.3\n"}))
	for _, step := range []string{"a/b@v5", "a/b@main", "a/b", "a/b@" + commit, "a/b@" + commit[1:] + " # v1.2.3", "docker://image:1"} {
		wantViolations(t, movableActions(map[string]string{"ci.yml": "steps:\n  - uses: " + step + "\n"}), "ci.yml:2")
	}
}
