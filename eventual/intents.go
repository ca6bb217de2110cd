package eventual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const intentType = ownTypes + "intent"

// intentBody is the stored form of an intents.Intent, which must stay compatible. With several members, it names no repository itself, so an older
// build that does not know the list leaves the message to other workers.
type intentBody struct {
	ID string `json:"id"`
	intentMember
	Members []intentMember `json:"members,omitempty"` // only if the change set has several
}

type intentMember struct {
	Repository string              `json:"repository"`
	Partition  string              `json:"partition"`
	Row        string              `json:"row"`
	Outside    map[string][]string `json:"outside"`
}

func bodyOf(i intents.Intent) intentBody {
	members := make([]intentMember, len(i.Members))
	for n, m := range i.Members {
		members[n] = intentMember{m.Repository, m.Key.Partition, m.Key.Row, m.Outside}
	}
	if len(members) == 1 {
		return intentBody{ID: i.ID, intentMember: members[0]}
	}
	return intentBody{ID: i.ID, Members: members}
}

func (b *intentBody) intent() intents.Intent {
	i := intents.Intent{ID: b.ID}
	members := b.Members
	if len(members) == 0 {
		members = []intentMember{b.intentMember}
	}
	for _, m := range members {
		i.Members = append(i.Members, intents.Member{Repository: m.Repository, Key: tables.Key{Partition: m.Partition, Row: m.Row}, Outside: m.Outside})
	}
	return i
}

// reconcilers holds the functions that reconcile the intents of a queue, by repository name.
type reconcilers struct {
	mu     sync.RWMutex
	byName map[string]func(context.Context, intents.Intent) error

	opening sync.Mutex
	open    func(name string) error // StoreOptions.OpenRepository, which makes a missing repository; may be nil
}

func (r *reconcilers) add(name string, reconcile func(context.Context, intents.Intent) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]func(context.Context, intents.Intent) error{}
	}
	if _, taken := r.byName[name]; taken {
		return fmt.Errorf("another repository named %q has its intents on the queue; share the repository, or give one a Schema.Name", name)
	}
	r.byName[name] = reconcile
	return nil
}

func (r *reconcilers) get(name string) func(context.Context, intents.Intent) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// find returns the function that reconciles a repository's intents, and opens the repository if the program has not made it yet. The lock makes a
// concurrent delivery for the same repository wait.
func (r *reconcilers) find(name string) (func(context.Context, intents.Intent) error, error) {
	if reconcile := r.get(name); reconcile != nil {
		return reconcile, nil
	}
	if r.open == nil {
		return nil, fmt.Errorf("no repository named %q is registered with the queue in this program: %w", name, errUnknownRepository)
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	if reconcile := r.get(name); reconcile != nil {
		return reconcile, nil
	}
	if err := r.open(name); err != nil {
		return nil, fmt.Errorf("StoreOptions.OpenRepository(%q): %w; %w", name, err, errUnknownRepository)
	}
	if reconcile := r.get(name); reconcile != nil {
		return reconcile, nil
	}
	return nil, fmt.Errorf("StoreOptions.OpenRepository(%q) made no repository with this name whose patterns have effects outside of the partition: %w", name, errUnknownRepository)
}

// runner has the methods of a Queue for repositories, which programs should not see.
type runner struct {
	*queue
	open openIntents
}

// Register implements intents.Runner.
func (r *runner) Register(repository string, reconcile func(context.Context, intents.Intent) error) error {
	return r.repositories.add(repository, reconcile)
}

// Run implements intents.Runner: it puts the intent on the queue as a hidden message, which it holds while it commits the change and applies its
// effects. Then it closes the intent, in the background if it can: it deletes the message or, if workers have effects left to apply, makes it
// visible. Requests: 2, and those of the change.
//
// If the outcome is unknown, the message stays hidden until its visibility timeout is over: by then all requests of the change have arrived.
func (r *runner) Run(ctx context.Context, intent intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	h, err := r.putIntent(ctx, intent)
	if err != nil {
		return err
	}
	deferred := false
	defer func() {
		if !deferred {
			h.stop()
		}
	}()
	// A change that a handler makes, or that is made while an intent is closed, could wait for that very intent, and so for itself.
	nested := lease.From(ctx) != nil
	if !nested {
		err = r.open.wait(h.work, &intent)
	}
	if err == nil {
		err = commit(h.work)
	}
	switch {
	case err == nil:
		rest, failure := apply(h.work)
		// Close in the background only if the message is renewed, which one that may exist twice is not; and never within a handler, whose requests
		// may be sent only while its own message is held.
		if later := rest.Close != nil || rest.Workers; later && failure == nil && h.renewal != nil && !nested {
			deferred = r.open.start(&intent, func() { r.closeBehind(h, &intent, rest) })
		}
		if !deferred {
			r.closeNow(h.work, h, &intent, rest, failure)
		}
	case lease.Lost(h.work, nil) && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", context.Cause(h.work), err) // the caller has not cancelled ctx
	case !errors.Is(err, tables.ErrUnknownOutcome) && h.work.Err() == nil:
		r.closeNow(h.work, h, &intent, intents.Rest{}, nil)
	}
	return err
}

// Close implements intents.RunnerCloser.
func (r *runner) Close(ctx context.Context) error {
	if left := r.open.drain(ctx, true); left > 0 {
		return &tables.Error{Op: "Close", Table: r.name, Err: fmt.Errorf("the context ended while %d intents were still being closed; a worker closes them if this process ends now: %w", left, context.Cause(ctx))}
	}
	return nil
}

// closeBehind is closeNow after the change has returned. After one visibility timeout its requests are cancelled, and a worker gets the message.
func (q *queue) closeBehind(h *holding, intent *intents.Intent, rest intents.Rest) {
	defer h.stop()
	defer time.AfterFunc(h.visibility, func() { h.lease.End(ErrLeaseLost) }).Stop()
	defer func() {
		if p := recover(); p != nil { // no caller could recover it, so it would end the program
			q.logEffect(h.own, intent, fmt.Errorf("a pattern has panicked: %T", p))
		}
	}()
	q.closeNow(h.own, h, intent, rest, nil)
}

// closeNow closes an intent. If failure is set, or rest.Close fails, it leaves the intent to the workers.
func (q *queue) closeNow(ctx context.Context, h *holding, intent *intents.Intent, rest intents.Rest, failure error) {
	if failure == nil && rest.Close != nil {
		failure = rest.Close(ctx)
	}
	if failure != nil {
		q.logEffect(ctx, intent, failure)
	}
	if failure != nil || rest.Workers {
		if err := h.release(0, ""); err != nil {
			q.logMessage(h.own, intent, telemetry.LineIntentHidden, err) // the message becomes visible when its visibility timeout is over
		}
		q.wake.all()
		return
	}
	if h.lease.Unsure() {
		return
	}
	err := q.removeClaim(h.own, h.envelope)
	if err == nil {
		err = h.finish()
	}
	if err != nil {
		q.logMessage(ctx, intent, telemetry.LineIntentNotDeleted, err)
	}
}

// putIntent stores an intent. After an error the change is not made; if the message was stored anyway, a worker finds nothing to do for it.
func (q *queue) putIntent(ctx context.Context, intent intents.Intent) (*holding, error) {
	const op = "PutIntent"
	e, err := q.newEnvelope(op, intentType, bodyOf(intent))
	if err != nil {
		return nil, err
	}
	h, err := q.sendHidden(ctx, op, e)
	if err == nil {
		h.envelope = e
	}
	if errors.Is(err, tables.ErrUnknownOutcome) && ctx.Err() != nil {
		return nil, &tables.Error{Op: op, Table: q.name, Err: fmt.Errorf("the context ended while the intent was put on the queue, so the change was not begun: %w", context.Cause(ctx))}
	}
	if errors.Is(err, tables.ErrUnknownOutcome) {
		return nil, &tables.Error{Op: op, Table: q.name, Kind: tables.ErrUnavailable,
			Err: fmt.Errorf("no response to the put of the intent on the queue, so the change was not begun; repeat it: %v", err)}
	}
	return h, err
}

// oldIntent is the age above which a worker logs an intent.
const oldIntent = 10 * time.Minute

func (q *queue) handleIntent(ctx context.Context, m *Message) (verdict.Verdict, error) {
	var body intentBody
	if err := m.Decode(&body); err != nil {
		return verdict.Verdict{}, err
	}
	if age := time.Since(m.Sent); age > oldIntent {
		intent := body.intent()
		q.signals().Log(ctx, telemetry.LineIntentOld, q.name, append(aboutIntent(q, &intent), slog.Duration("age", age.Round(time.Second)), slog.Int("dequeues", m.Dequeues))...)
	}
	err := q.reconcileAll(ctx, body.intent())
	if err == nil && m.holding.lease.Unsure() {
		return verdict.Verdict{Action: verdict.Leave}, nil
	}
	for _, patient := range []error{errUnknownRepository, driver.ErrUnknownPattern, errTurn, tables.ErrInvalid, tables.ErrWiring} {
		if errors.Is(err, patient) {
			return verdict.Verdict{Delay: q.visibility}, err
		}
	}
	return verdict.Verdict{}, err
}

// reconcileAll reconciles an intent, repository by repository. It begins only if the queue knows all of them. It continues after a failure, since
// the members do not depend on each other.
func (q *queue) reconcileAll(ctx context.Context, intent intents.Intent) error {
	parts := intent.ByRepository()
	reconcile := make([]func(context.Context, intents.Intent) error, len(parts))
	for i := range parts {
		var err error
		if reconcile[i], err = q.repositories.find(parts[i].Repository()); err != nil {
			return err
		}
	}
	if len(parts) == 1 {
		return reconcile[0](ctx, parts[0])
	}
	failures := make([]error, len(parts))
	for i := range parts {
		failures[i] = reconcile[i](ctx, parts[i])
	}
	return errors.Join(failures...)
}

// openIntents are intents that are closed in the background: their changes have returned and their effects are applied; the entities are still to
// be read again and the messages deleted. If the process dies before, a worker does that.
//
// Until an intent is closed, this process may find that the entity has changed, and write its rows in other partitions once more. So the next
// change of the entity in this process waits: otherwise its caller could read an earlier version through an index after the change has returned.
// Changes by other processes do not wait, since no caller here knows of them.
type openIntents struct {
	mu     sync.Mutex
	most   int
	closed bool
	open   []*openIntent
}

type openIntent struct {
	members []intents.Member
	done    chan struct{} // closed when the intent is closed
}

func (o *openIntents) limit(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = most
}

// start closes an intent in the background. It returns false if too many are open or after drain with last: then the caller must close the intent.
func (o *openIntents) start(intent *intents.Intent, closeIntent func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.open) >= o.most {
		return false
	}
	x := &openIntent{members: intent.Members, done: make(chan struct{})}
	o.open = append(o.open, x)
	go func() {
		defer func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.open = slices.DeleteFunc(o.open, func(other *openIntent) bool { return other == x })
			close(x.done)
		}()
		closeIntent()
	}()
	return true
}

func (o *openIntents) wait(ctx context.Context, intent *intents.Intent) error {
	for {
		x := o.about(intent)
		if x == nil {
			return nil
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return &tables.Error{Op: "PutIntent", Err: fmt.Errorf("the context ended while the intent of an earlier change of the entity was closed, so the change was not begun: %w", context.Cause(ctx))}
		}
	}
}

// about returns an open intent that shares an entity with the given one, or nil.
func (o *openIntents) about(intent *intents.Intent) *openIntent {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.open {
		for i := range x.members {
			for j := range intent.Members {
				if x.members[i].Key == intent.Members[j].Key && x.members[i].Repository == intent.Members[j].Repository {
					return x
				}
			}
		}
	}
	return nil
}

// drain waits until the intents that are open now are closed, or ctx ends, and returns how many are left. With last, start refuses further ones.
func (o *openIntents) drain(ctx context.Context, last bool) (left int) {
	o.mu.Lock()
	o.closed = o.closed || last
	open := slices.Clone(o.open)
	o.mu.Unlock()
	for i, x := range open {
		select {
		case <-x.done:
		case <-ctx.Done():
			return len(open) - i
		}
	}
	return 0
}

// A committed change returns nil even if an effect outside of the partition failed: a worker applies it. Until the intent is poisoned, only the
// account's log shows the failure.

// logEffect logs an effect that the writer could not apply.
func (q *queue) logEffect(ctx context.Context, intent *intents.Intent, err error) {
	about := aboutIntent(q, intent)
	if e, ok := errors.AsType[*tables.Error](err); ok {
		about = append(about, slog.String("pattern", e.Pattern), slog.String("table", tableIn(e)))
	}
	q.signals().EffectFailed(ctx, intent.Repository(), err)
	q.signals().Log(ctx, telemetry.LineEffectFailed, q.name, append(about, q.signals().Error(err), slog.String("action", actionFor(err)))...)
}

func (q *queue) signals() *telemetry.Telemetry {
	return (*core.Account)(q.account).Telemetry()
}

// logMessage logs a failed request about an intent's message. line describes the consequence.
func (q *queue) logMessage(ctx context.Context, intent *intents.Intent, line telemetry.Line, err error) {
	q.signals().Log(ctx, line, q.name, append(aboutIntent(q, intent), q.signals().Error(err))...)
}

func aboutIntent(q *queue, intent *intents.Intent) []any {
	return []any{slog.String("queue", q.name), slog.String("repository", intent.Repository()), slog.String("intent", intent.ID)}
}

// tableIn returns the table that an error names, or "" for a blob, whose name may contain the program's data.
func tableIn(e *tables.Error) string {
	if rows.CheckTableName(e.Table) != nil {
		return ""
	}
	return e.Table
}

func actionFor(err error) string {
	var e *tables.Error
	table := "the table"
	if errors.As(err, &e) {
		table = cmp.Or(tableIn(e), table)
	}
	switch {
	case errors.Is(err, tables.ErrMissingResource):
		return "create " + table + "; then requeue intents that are on the poison queue"
	case errors.Is(err, tables.ErrDenied):
		return "give the program's credential the right to write to " + table + "; then requeue intents that are on the poison queue"
	case errors.Is(err, tables.ErrUnavailable), errors.Is(err, tables.ErrUnknownOutcome):
		return "none if it is rare; otherwise spread the keys of " + table + " over more partitions, and requeue intents that are on the poison queue"
	}
	return "see that a worker of the queue runs, and watch the poison queue"
}
