package models

import (
	"strings"
	"testing"
)

// Rules is a set of rules of a protocol, with one bit for each. A walk can drop some of them.
type Rules uint32

// Case is a small world of a model.
type Case struct {
	Name string
	// Shows are the rules without which the walk finds a violation in this world.
	Shows []Rules
	// Walk explores the world without some of the rules.
	Walk func(drop Rules) Result
}

// Check walks through every world. It requires that no world has a violation and each has final states. For
// each rule, a world must have a violation if the rule is dropped. names are the names of the rules, from the
// lowest bit.
func Check(t *testing.T, cases []Case, names []string) {
	t.Helper()
	states, shown := 0, Rules(0)
	for _, c := range cases {
		r := c.Walk(0)
		if r.Violation != "" || r.Quiet == 0 {
			t.Errorf("%s: %d final states, %s after\n%s", c.Name, r.Quiet, r.Violation, strings.Join(r.Trace, "\n"))
		}
		t.Logf("%s: %d states, %d of them final", c.Name, r.States, r.Quiet)
		states += r.States
		for _, rule := range c.Shows {
			shown |= rule
			checkFails(t, c, rule, names)
		}
	}
	t.Logf("%d states in all", states)
	for i, name := range names {
		if shown&(1<<i) == 0 {
			t.Errorf("no world shows the rule %s", name)
		}
	}
}

// checkFails requires that a walk without the rule finds a violation.
func checkFails(t *testing.T, c Case, rule Rules, names []string) {
	t.Helper()
	r := c.Walk(rule)
	var dropped []string
	for i, name := range names {
		if rule&(1<<i) != 0 {
			dropped = append(dropped, name)
		}
	}
	name := strings.Join(dropped, ", ")
	if r.Violation == "" || r.Stopped {
		t.Errorf("%s: no violation without %s in %d states", c.Name, name, r.States)
		return
	}
	t.Logf("%s, without %s: %s, after %d states and\n  %s", c.Name, name, r.Violation, r.States, strings.Join(r.Trace, "\n  "))
}
