package archive_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/archive"
)

// TestModel: no acknowledged change is lost, nothing is poisoned without a reason, nothing is left behind.
func TestModel(t *testing.T) {
	cases := map[string]archive.Case{
		"one message":  {Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1, Requeues: 1},
		"two messages": {Messages: 2, SourceChanges: 1},
		"replaces":     {Messages: 1, SourceChanges: 1, CopyChanges: 2, Lates: 1, Replace: true},
	}
	if harness.Thorough() {
		cases["two messages, users at both ends"] = archive.Case{Messages: 2, SourceChanges: 1, CopyChanges: 1}
		cases["two messages, a late request"] = archive.Case{Messages: 2, SourceChanges: 1, CopyChanges: 1, Lates: 1}
		cases["two messages, two changes each"] = archive.Case{Messages: 2, SourceChanges: 2, CopyChanges: 2}
		cases["two messages, replaces"] = archive.Case{Messages: 2, SourceChanges: 1, CopyChanges: 2, Replace: true}
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
	for name, drop := range map[string]archive.Rules{
		"Pending":            {Pending: true},
		"RecordBeforeFill":   {RecordBeforeFill: true},
		"Base":               {Base: true},
		"Unchanged":          {Unchanged: true},
		"SourceETag":         {SourceETag: true},
		"RecordInCommit":     {RecordInCommit: true},
		"RecordBeforeSource": {RecordBeforeSource: true},
		"First":              {First: true},
		"SourceAgain":        {SourceAgain: true},
		"UnmarkedAgain":      {UnmarkedAgain: true},
		"PoisonFirst":        {PoisonFirst: true},
		"CopyETag":           {CopyETag: true},
		"CleanPending":       {CleanPending: true},
		"Incarnation":        {Incarnation: true},
		"Lease":              {Lease: true},
	} {
		if r := firstViolation(drop); r.Violation == "" || r.Stopped {
			t.Errorf("without %s: no violation", name)
		} else {
			t.Logf("without %s: %s, after %d states and %d steps", name, r.Violation, r.States, len(r.Trace))
		}
	}
}

// firstViolation walks from the smallest world to the largest, until one shows what is wrong.
func firstViolation(drop archive.Rules) (r models.Result) {
	for _, c := range []archive.Case{{Messages: 1, SourceChanges: 1, CopyChanges: 1, Lates: 1}, {Messages: 2, SourceChanges: 1}, {Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1},
		{Messages: 2, SourceChanges: 1, CopyChanges: 1}, {Messages: 2, SourceChanges: 2, CopyChanges: 1}} {
		c.Drop = drop
		if r = c.Walk(); r.Violation != "" {
			break
		}
	}
	return r
}
