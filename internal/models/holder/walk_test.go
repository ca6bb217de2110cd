package holder

import "testing"

// TestWalk walks through every order of steps and crashes: in each final state the holder is as its source requires.
func TestWalk(t *testing.T) {
	states := 0
	for _, world := range Worlds() {
		found := world.Walk()
		if found.Divergence != "" || found.Ends == 0 {
			t.Errorf("%s: %d ends\n%s", world.Name, found.Ends, found.Divergence)
		}
		t.Logf("%s: %d states, %d ends", world.Name, found.States, found.Ends)
		states += found.States
	}
	t.Logf("%d states, 0 divergences", states)
}

// TestWalkCanFail drops each rule: a walk of a world that needs the rule finds a violation.
func TestWalkCanFail(t *testing.T) {
	shown := Rules(0)
	for _, world := range Worlds() {
		for _, rule := range world.Shows {
			world.Drop = rule
			found := world.Walk()
			if found.Divergence == "" {
				t.Errorf("%s: %d states, and no divergence without rule %b", world.Name, found.States, rule)
			}
			t.Logf("without rule %b, %s, after %d states:\n%s", rule, world.Name, found.States, found.Divergence)
			shown |= rule
		}
	}
	if every := SourceFirst<<1 - 1; shown != every {
		t.Errorf("no world shows the rules %b", every&^shown)
	}
}
