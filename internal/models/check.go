package models

import (
	"strings"
	"testing"
)

// Rules is a set of rules of a protocol, with one bit for each. A walk can drop some of them.
type Rules uint32

// Case is what all worlds of a model have. The type of a model's worlds embeds it.
type Case struct {
	Name string
	// Shows are the rules without which the walk finds a violation in this world.
	Shows []Rules
	// Large says that only thorough tests walk through the world.
	Large bool
	// Drop are the rules that the walk drops.
	Drop Rules
}

// At returns the case of a world that every test walks through.
func At(name string, shows ...Rules) Case { return Case{Name: name, Shows: shows} }

// Thorough returns the case of a large world.
func Thorough(name string) Case { return Case{Name: "thorough: " + name, Large: true} }

// Keeps reports whether the walk keeps a rule.
func (c *Case) Keeps(r Rules) bool { return c.Drop&r == 0 }

// Drops reports whether the walk drops a rule.
func (c *Case) Drops(r Rules) bool { return c.Drop&r != 0 }

// About returns the case of a world that embeds it.
func (c Case) About() Case { return c }

// World is a small world of a model.
type World interface {
	About() Case
	// Walk explores the world without some of the rules.
	Walk(drop Rules) Result
}

// Check walks through every world, the large ones only if thorough. It requires that no world has a violation and each has
// final states. For each rule, a world must have a violation if the rule is dropped. names are the names of the rules, from
// the lowest bit.
func Check[W World](t *testing.T, worlds []W, names []string, thorough bool) {
	t.Helper()
	states, shown := 0, Rules(0)
	for _, w := range worlds {
		c := w.About()
		if c.Large && !thorough {
			continue
		}
		r := w.Walk(0)
		if r.Violation != "" || r.Quiet == 0 {
			t.Errorf("%s: %d final states, %s after\n%s", c.Name, r.Quiet, r.Violation, strings.Join(r.Trace, "\n"))
		}
		t.Logf("%s: %d states, %d of them final", c.Name, r.States, r.Quiet)
		states += r.States
		for _, rule := range c.Shows {
			shown |= rule
			checkFails(t, w, rule, names)
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
func checkFails[W World](t *testing.T, w W, rule Rules, names []string) {
	t.Helper()
	c, r := w.About(), w.Walk(rule)
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
