package mover_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/mover"
)

// TestModel: no acknowledged change is lost, nothing is poisoned without a reason, nothing is left behind.
func TestModel(t *testing.T) {
	cases := map[string]mover.Case{
		"one message":  {Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1, Requeues: 1},
		"two messages": {Messages: 2, SourceChanges: 1, CopyChanges: 1},
		"replaces":     {Messages: 1, SourceChanges: 1, CopyChanges: 2, Lates: 1, Replace: true},
	}
	if harness.Thorough() {
		cases["two messages, a late request"] = mover.Case{Messages: 2, SourceChanges: 1, CopyChanges: 1, Lates: 1}
		cases["two messages, two changes each"] = mover.Case{Messages: 2, SourceChanges: 2, CopyChanges: 2}
		cases["two messages, replaces"] = mover.Case{Messages: 2, SourceChanges: 1, CopyChanges: 2, Replace: true}
	}
	for name, c := range cases {
		r := c.Walk()
		t.Logf("%s: %d states, %d at rest", name, r.States, r.Quiet)
		if r.Violation != "" || r.Quiet == 0 {
			t.Errorf("%s: %s, after\n%s", name, r.Violation, strings.Join(r.Trace, "\n"))
		}
	}
}

// TestEveryRuleIsNeeded: without any one of its rules the protocol breaks a promise.
func TestEveryRuleIsNeeded(t *testing.T) {
	for name, drop := range map[string]mover.Rules{
		"Mark": {Mark: true}, "MarkInTransaction": {MarkInTransaction: true}, "SameWrite": {SameWrite: true},
		"CopyETag": {CopyETag: true}, "SourceETag": {SourceETag: true}, "MarkBeforeSource": {MarkBeforeSource: true},
		"Trace": {Trace: true}, "TraceWithdraws": {TraceWithdraws: true}, "TraceWrite": {TraceWrite: true},
		"MarkBeforeTrace": {MarkBeforeTrace: true}, "MarkAgain": {MarkAgain: true}, "PoisonFirst": {PoisonFirst: true},
		"Incarnation": {Incarnation: true}, "Lease": {Lease: true}, "CleanUp": {CleanUp: true},
	} {
		if r := firstViolation(drop); r.Violation == "" || r.Stopped {
			t.Errorf("without %s: no violation", name)
		} else {
			t.Logf("without %s: %s, after %d states and %d steps", name, r.Violation, r.States, len(r.Trace))
		}
	}
}

// firstViolation walks from the smallest world to the largest, until one shows what is wrong.
func firstViolation(drop mover.Rules) (r models.Result) {
	for _, c := range []mover.Case{{Messages: 1, SourceChanges: 1, CopyChanges: 1, Lates: 1}, {Messages: 2, SourceChanges: 1}, {Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1},
		{Messages: 2, SourceChanges: 1, CopyChanges: 1}, {Messages: 2, SourceChanges: 2, CopyChanges: 1}} {
		c.Drop = drop
		if r = c.Walk(); r.Violation != "" {
			break
		}
	}
	return r
}
