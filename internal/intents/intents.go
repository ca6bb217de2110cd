// Package intents is what package eventual does for package patterns: it carries intents, so that a change set with effects outside of
// its partition is finished even if its writer dies.
package intents

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Intent names the effects of a change set outside of its partition that may still be incomplete.
type Intent struct {
	ID      string // ID of the change set
	Members []Member
}

// Member is one entity of a change set that has effects outside of its partition.
type Member struct {
	Repository string // Schema.Name
	Key        tables.Key
	// Outside are the keys by pattern, in the notation of each pattern.
	Outside map[string][]string
}

// ByRepository divides an intent into one for each repository, in the order of the members.
func (i *Intent) ByRepository() []Intent {
	var parts []Intent
	at := map[string]int{}
	for _, m := range i.Members {
		part, known := at[m.Repository]
		if !known {
			part = len(parts)
			at[m.Repository] = part
			parts = append(parts, Intent{ID: i.ID})
		}
		parts[part].Members = append(parts[part].Members, m)
	}
	return parts
}

// Repository is the name of the first member's repository, for logs, and for the parts of ByRepository the name of all.
func (i *Intent) Repository() string {
	if len(i.Members) == 0 {
		return ""
	}
	return i.Members[0].Repository
}

// Runner makes change sets with outside effects safe against crashes: in production, the queue of a patterns.Store.
type Runner interface {
	// Register sets the function that completes intents of a repository whose writer died: it is given the members of
	// that repository. NewRepository calls it once. A name that is already registered is an error.
	Register(repository string, reconcile func(ctx context.Context, intent Intent) error) error
	// Run stores the intent durably, calls commit, then reconcile, and deletes the intent once reconcile has returned
	// nil. It calls reconcile also if commit failed and it is known that nothing was committed. If the process dies,
	// or a call fails with an unknown outcome, a worker later calls the registered functions with the intent. Both
	// functions may send requests only while their contexts are alive. Run returns an error of commit such that
	// errors.Is finds it. Once commit has returned nil the change is made, so Run returns nil even if reconcile fails,
	// since the intent still exists.
	Run(ctx context.Context, intent Intent, commit, reconcile func(context.Context) error) error
}

// Runners are the two ways to carry the intents of one queue.
type Runners struct {
	Sync  Runner // the writer applies the effects of a change
	Async Runner // the effects are left to workers
}
