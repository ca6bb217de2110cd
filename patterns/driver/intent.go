package driver

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Intent names what a change may have left undone outside of the entity's partition.
type Intent struct {
	ID         string // of the change
	Repository string // Schema.Name
	Key        tables.Key
	// Outside are the keys by pattern, in the words of each pattern.
	Outside map[string][]string
}

// IntentRunner makes changes with outside effects safe against crashes. eventual.Queue is the one for production.
type IntentRunner interface {
	// Register names the repository whose intents Run will get, and the function that carries on with one whose writer
	// died. NewRepository calls it once. A name that is taken is an error.
	Register(repository string, reconcile func(ctx context.Context, intent Intent) error) error
	// Run makes the intent durable, calls commit, then reconcile, also when commit failed and it is known that nothing
	// was committed, and forgets the intent once reconcile has returned nil. If the process dies on the way, or a call fails
	// so that nobody knows, somebody calls the registered function with the intent later. Both calls may only send while the
	// contexts they get are alive. An error of commit is returned as it is, or wrapped in one that errors.Is finds it in.
	// Once commit has returned nil the change is made: Run returns nil then, also when reconcile failed, since the intent
	// is still there.
	Run(ctx context.Context, intent Intent, commit, reconcile func(context.Context) error) error
}
