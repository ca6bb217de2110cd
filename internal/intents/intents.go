// Package intents defines what package eventual does for package patterns: it stores and delivers intents, so that a
// change set with effects outside of its partition is finished even if its writer dies.
package intents

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
)

// Intent names the effects of a change set outside of its partition that may still be incomplete.
type Intent struct {
	ID      string // ID of the change set
	Members []Member
}

// ErrChanging reports that an entity has changed during every attempt to apply an intent's effects. The
// message does not count as failed: a later delivery continues.
var ErrChanging = errors.New("the entity has changed during every attempt; a worker goes on with a later delivery")

// Member is one entity of a change set that has effects outside of its partition.
type Member struct {
	Repository string // Schema.Name
	Key        entity.Key
	// Outside holds, for each pattern by name, the keys outside of the entity's partition that the change affects. Each
	// pattern has its own notation for them.
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

// Outside returns what the intent names, as "pattern: key".
func (i *Intent) Outside() (all []string) {
	for _, m := range i.Members {
		for pattern, keys := range m.Outside {
			for _, key := range keys {
				all = append(all, pattern+": "+key)
			}
		}
	}
	return all
}

// Repository returns the name of the first member's repository, for logs. In an intent that ByRepository has
// returned, all members have the same repository.
func (i *Intent) Repository() string {
	if len(i.Members) == 0 {
		return ""
	}
	return i.Members[0].Repository
}

// Runner makes change sets with effects outside of their partition safe against crashes. In production it is the queue
// of a patterns.Store.
type Runner interface {
	// Register sets the function that completes intents whose writer died. The function gets the members of
	// one repository. NewRepository calls it once. A name that is already registered is an error.
	Register(repository string, reconcile func(ctx context.Context, intent Intent) error) error
	// Run stores the intent durably, calls commit, then apply, and deletes the intent after apply and the Rest that
	// apply returns have succeeded, or after commit has failed and certainly nothing was committed. If the
	// process dies, or a call fails with an unknown outcome, a worker later calls the registered functions with the
	// intent. All functions may send requests only while their contexts are alive. If commit fails, errors.Is finds its
	// error in the error of Run. Once commit has returned nil the change is made, so Run returns nil even if apply
	// fails, since the intent still exists.
	//
	// Run may return before the Rest is done. Then a later Run for one of the entities waits for that Rest before it
	// calls its commit. Otherwise the holder of the earlier intent could overwrite outside rows of the later change. A
	// Run under the lease of another message does not wait, since the Rest that it would wait for may itself have
	// called this Run.
	Run(ctx context.Context, intent Intent, commit func(context.Context) error, apply func(context.Context) (Rest, error)) error
}

// Rest is the work that remains for an intent after its writer has applied its own share of the effects.
type Rest struct {
	// Close reads the entities again and applies the effects once more if they have changed. If Close is nil and
	// Workers is false, the intent is deleted at once.
	Close func(context.Context) error
	// Workers leaves the intent to workers: effects remain that the writer does not apply.
	Workers bool
}

// RunnerCloser is a Runner whose Run may return before the Rest of its change is done.
type RunnerCloser interface {
	Runner
	// Close waits until the Rest of every change whose Run has returned is done. A later Run returns only after the Rest of its
	// change is done.
	Close(ctx context.Context) error
}

// Messages is the contents of an eventual.Queue for the packages of this module that send and handle messages of their own, whose types
// begin with "tablepatterns.".
type Messages interface {
	// HandleOwn makes all workers of the queue in this process handle messages of a type with h. Errors name the operation op.
	HandleOwn(op, messageType string, h func(context.Context, Message) (verdict.Verdict, error)) error
	// SendOwn puts a message on the queue.
	SendOwn(ctx context.Context, op, messageType string, body any) error
	// Runner returns the queue as the runner of a repository's intents. mostOpen is the maximum number of intents that are still open
	// although their changes have returned; with 0 or less, each change closes its intent before it returns.
	Runner(mostOpen int) RunnerCloser
}

// Message is one delivery of a message of the library.
type Message interface {
	// Decode reads the body into the value that v points to.
	Decode(v any) error
}

// Of returns the contents of an eventual.Queue, nil for one that eventual.NewQueue has not made.
func Of(queue *handle.Any) Messages {
	if queue == nil {
		return nil
	}
	of, _ := queue.Value().(Messages)
	return of
}
