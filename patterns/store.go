package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/background"
	"github.com/tablepatterns/tablepatterns/patterns/internal/eachof"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/jobs"
	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Store gives access to everything that a program stores in one storage account. The program opens its tables
// with the Store's methods, its containers with blobstorage.Open and its queues with eventual.OpenQueue, so Create
// can create those that are missing. If a pattern has effects outside of the partition, the Store has a queue on
// which repositories put the intents of such changes, and Start runs the worker that finishes the changes of
// processes that died. Open only one Store of each name in a process: a worker postpones intents of repositories
// that belong to another Store. A Store is safe for concurrent use.
type Store handle.Any

// root is the contents of a Store.
type root struct {
	account     *tables.Account
	prefix      string
	intents     string // the full name of the queue of intents
	queueing    stores.Options
	provisioned bool // StoreOptions.Provisioned
	noWorker    bool // StoreOptions.NoWorker
	readOnly    bool // StoreOptions.ReadOnly
	started     atomic.Bool
	rest        *background.Tasks

	uses stores.Register

	mu      sync.Mutex
	queue   stores.Queue     // nil until a package that needs it opens it
	engines []*engine.Engine // of the store's repositories
}

// root returns the contents, nil for a Store that Open has not made.
func (s *Store) root() *root {
	if s == nil {
		return nil
	}
	of, _ := (*handle.Any)(s).Value().(*root)
	return of
}

// StoreOptions are the options of Open; nil is the same as the zero value.
type StoreOptions struct {
	// Account is the storage account (default nil: the one that the environment names; see tables.NewAccountFromEnv).
	Account *tables.Account
	// Prefix begins the name of every table, queue and container of the store (default none), so that one account can hold several
	// environments. It consists of ASCII letters and digits and begins with a letter. Queues and containers get it in lower case,
	// with a hyphen after it.
	Prefix string
	// Intents opens the queue of intents: set it to what eventual.IntentQueue returns to give the queue or its worker options, and for an
	// OpenRepository. By default the first pattern that needs the queue opens it, without options.
	Intents driver.IntentQueue
	// MaxOpen is the maximum number of changes whose rest is done in the background after they have returned
	// (default 64): copies in other partitions are settled, and the intents of other effects are closed. Beyond it, and after
	// the stop of Store.Start, a change does the rest before it returns, the copies for at most 2 seconds. A negative limit makes
	// every change do so.
	MaxOpen int
	// ReadOnly makes reads leave the copies of indexes over partitions as they are (default false: a read that finds a copy
	// which the change of a dead process has marked settles it in the background). Set it if the credential cannot write.
	ReadOnly bool
	// Provisioned says that something else creates Resources, such as infrastructure code: Start then creates none, and returns the
	// error of Ready if one is missing.
	Provisioned bool
	// NoWorker makes Start run no worker (default false). Set it in a process whose store has workers in other processes.
	NoWorker bool
	// OpenRepository makes the repositories of tables that are made at run time, such as one for each tenant.
	// The worker calls it to finish a change in a repository that this process has not made yet. It needs Intents. name is that
	// repository's Schema.Name, by default the name of its table. The function calls NewRepository with a table
	// from Store.RunTimeTable, in the same way as the program does when it opens a tenant. It must return an
	// error for a name that the program does not know, since names come from messages and may be forged. The worker
	// calls it for one name at a time. A repository stays in the Store until the process ends. If
	// OpenRepository is nil or returns an error, the change waits for a worker that knows the repository, up to
	// WorkerOptions.PostponeTimeout; then its message is poisoned.
	OpenRepository func(name string) error
}

const (
	defaultOpen   = 64 // the default of StoreOptions.MaxOpen
	intentsSuffix = "-intents"
	longestSuffix = "-poison" // of the storage queues and the container that belong to the queue
)

// Open opens a store in StoreOptions.Account, by default in the account that the environment names (tables.NewAccountFromEnv). The name of its
// queue of intents is name followed by "-intents", so name must consist of characters that a queue's name can have. Programs that
// share repositories must use the same name, and other programs in the account a different one. Requests: 0.
func Open(name string, options *StoreOptions) (*Store, error) {
	const op = "Open"
	var o StoreOptions
	if options != nil {
		o = *options
	}
	if o.Account == nil {
		var err error
		if o.Account, err = tables.NewAccountFromEnv(nil); err != nil {
			return nil, errs.Wiringf(op, "", "StoreOptions.Account is nil, and the environment names no account: %w", err)
		}
	}
	open := cmp.Or(o.MaxOpen, defaultOpen)
	s := &root{account: o.Account, prefix: o.Prefix, provisioned: o.Provisioned, noWorker: o.NoWorker, readOnly: o.ReadOnly, rest: background.New(open),
		queueing: stores.Options{OpenRepository: o.OpenRepository, MaxOpen: open}}
	s.intents = s.Lower(name + intentsSuffix)
	opener := stores.Opener(o.Intents)
	switch {
	case o.Account.TableService() == nil:
		return nil, errs.Wiringf(op, "", "StoreOptions.Account was not made by tables.NewAccount; make it so, or leave it nil for the account of the environment")
	case name == "":
		return nil, errs.Wiringf(op, "", "the store's name is empty; give the program's name, such as \"contoso\"")
	case s.prefix != "" && rows.CheckTableName(s.prefix+"Table") != nil:
		return nil, errs.Wiringf(op, "", "StoreOptions.Prefix is %q; it must have at most 58 characters, only ASCII letters and digits, and begin with a letter", s.prefix)
	case resource.CheckName(s.intents+longestSuffix) != nil:
		return nil, errs.Wiringf(op, "", "the store's name is %q, and its queues would be %q and %q; use lower-case letters, digits and single hyphens, such as \"contoso\", so that they have at most 63 characters", name, s.intents, s.intents+longestSuffix)
	case o.OpenRepository != nil && opener.IsZero():
		return nil, errs.Wiringf(op, "", "StoreOptions.OpenRepository is set without Intents, the queue of the repositories that it makes; set Intents to eventual.IntentQueue(nil, nil)")
	}
	queue, err := s.Intents(opener)
	if err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if queue != nil && o.OpenRepository != nil {
		s.Know(queue.Entry()) // repositories that are made later need the queue
	}
	made := Store(handle.New(s))
	return &made, nil
}

// Account returns the account to which the store belongs.
func (s *Store) Account() *tables.Account {
	if of := s.root(); of != nil {
		return of.account
	}
	return nil
}

// Table returns a handle for a table of the store; give it to NewRepository and to patterns. With an illegal name every operation
// returns tables.ErrWiring. Requests: 0.
func (s *Store) Table(name string) *tables.Table {
	of := s.root()
	if of == nil {
		return s.Account().Table(name) // the operations of this table return an error that says that it has no account
	}
	table := ownedBy(of.account.Table(of.prefix+name), of)
	of.knowTable((*core.Table)(table))
	return table
}

// RunTimeTable returns a handle for a table that the program itself creates and drops, and makes the store's
// queue carry its intents. Examples are the tables of package highvolumedelete, and a table for each tenant
// (see StoreOptions.OpenRepository). Create does not create this table, nor the tables, queues and containers
// of patterns of its repositories. Give the result of Account.Table as table. Requests: 0.
func (s *Store) RunTimeTable(table *tables.Table) *tables.Table {
	return ownedBy(table, runTime{s.root()})
}

// runTime is the owner of a RunTimeTable.
type runTime struct{ *root }

// Create creates the tables, queues and containers that do not exist: those opened with the store,
// those of the patterns of its repositories and, if a pattern needs it, the queue of intents. Then it stores
// initial contents that packages need, such as the first data key of an encryption.Registry. Several processes
// may call Create at once. If one of these steps fails, Create continues with the others and returns the joined
// errors. Requests: 1 for each table and container; for each queue 3, and 1 more for each shard after the
// first; for a registry 1, and 3 more for its first data key, one of which goes to the key service.
func (s *Store) Create(ctx context.Context) error {
	of := s.root()
	return errors.Join(of.create(ctx, false), of.create(ctx, true))
}

// create creates the entries that are late or not.
func (s *root) create(ctx context.Context, late bool) error {
	var creating []func(context.Context) error
	for _, e := range s.uses.Entries() {
		if e.Late == late {
			creating = append(creating, func(ctx context.Context) error {
				if err := e.Create(ctx); err != nil {
					return fmt.Errorf("create %s: %w", e.Name, err)
				}
				return nil
			})
		}
	}
	return readiness.All(ctx, creating)
}

// Register makes Create of the table's Store call create after the tables, queues and containers exist. It is
// for packages that store something before the first write, as package encryption stores the first data key.
// create must do nothing if the contents are already stored, and several processes may call it at once. name
// identifies what create stores: if Register gets one name several times, only the first function is called.
// For a table that Store.Table has not returned, Register does nothing. Requests: 0.
func Register(table *tables.Table, name string, create func(context.Context) error) {
	if s, ok := (*core.Table)(table).Owner().(*root); ok {
		s.uses.Add(stores.Entry{ID: stores.ID{Account: (*core.Account)(table.Account()), Name: name}, Create: create, Late: true})
	}
}

// Account implements stores.Store.
func (s *root) Account() *core.Account { return (*core.Account)(s.account) }

// Lower implements stores.Store.
func (s *root) Lower(name string) string {
	if s.prefix == "" {
		return name
	}
	return strings.ToLower(s.prefix) + "-" + name
}

// Know implements stores.Store.
func (s *root) Know(e stores.Entry) {
	for i := range e.Parts {
		e.Parts[i].Source = cmp.Or(e.Parts[i].Source, s.account.Source())
	}
	s.uses.Add(e)
}

// Intents implements stores.Store.
func (s *root) Intents(open stores.Opener) (stores.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil || open.IsZero() || s.account.Endpoints().Queue == "" {
		return s.queue, nil
	}
	queue, err := open.Open(s.Account(), s.intents, s.queueing)
	if err == nil {
		s.queue = queue
	}
	return s.queue, err
}

// Needed implements stores.Store.
func (s *root) Needed() bool {
	queue, _ := s.Intents(stores.Opener{}) // opens nothing, so there is no error
	return queue != nil && s.uses.Has(queue.Entry().ID)
}

func (s *root) knowTable(t *core.Table) {
	if t != nil {
		s.Know(stores.Entry{ID: stores.ID{Account: t.Account(), Name: "table " + t.Name()}, Create: t.CreateIfMissing, Parts: []resource.Resource{readiness.OfTable(t)}})
	}
}

// ownedBy returns another handle for the same table, with this owner.
func ownedBy(table *tables.Table, owner any) *tables.Table {
	return (*tables.Table)((*core.Table)(table).Owned(owner))
}

// storeOf returns the store that made the table's handle, or nil if Account.Table made it.
func storeOf(table *core.Table) *root {
	switch owner := table.Owner().(type) {
	case *root:
		return owner
	case runTime:
		return owner.root
	}
	return nil
}

// runner returns the runner of the repository's intents, nil if no pattern needs one, if the table has no store, or if the account of
// its store has no queue.
func runner(r *engine.Engine) (intents.Runner, error) {
	reaching, open := "", stores.Opener{}
	for _, p := range r.Patterns {
		if p.Effect.OutsideKeys != nil {
			reaching = cmp.Or(reaching, p.Name)
			if open.IsZero() {
				open = stores.Opener(p.Intents)
			}
		}
	}
	s := storeOf(r.Table)
	if reaching == "" || s == nil {
		runner, _ := r.Table.Owner().(intents.Runner) // a test gives its table a runner instead of a store
		return runner, nil
	}
	queue, err := s.Intents(open)
	if queue == nil && err == nil && s.account.Endpoints().Queue != "" {
		err = fmt.Errorf("pattern %q has effects outside of the partition and names no queue for their intents; set its Implementation.Intents, or StoreOptions.Intents, to eventual.IntentQueue(nil, nil)", reaching)
	}
	if queue == nil {
		return nil, err
	}
	return queue, nil
}

// refuseOverlap returns an error if another repository of the store could treat the entities, index rows and lists of
// this repository as its own.
func (s *root) refuseOverlap(r *engine.Engine) error {
	if _, passes := r.Table.Owner().(runTime); s == nil || passes {
		return nil // the store does not know repositories on a RunTimeTable, so only one order of construction would be an error
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &r.Schema.Own
	for _, other := range s.engines {
		if other.Name() == r.Name() && other.Codec.Type() == r.Codec.Type() && own.Equal(&other.Schema.Own) {
			continue // the program has made the same repository twice
		}
		o := &other.Schema.Own
		if other.Table.Same(r.Table) && own.Span.Overlaps(o.Span) && !(own.Chosen() && o.Chosen()) {
			return fmt.Errorf("repository %s of %s on the same table can have the same row keys; give each a Schema.Prefix of its own, or both Where or Mine", other.Name(), other.Codec.Type())
		}
		for _, p := range r.Patterns {
			for _, q := range other.Patterns {
				if p.Name == q.Name && r.Mixes(p, other, q) {
					return fmt.Errorf("repository %s of %s also has a pattern %q, which stores its rows or lists at the same places, so they could not be distinguished; give one of the two patterns another name", other.Name(), other.Codec.Type(), p.Name)
				}
			}
		}
	}
	return nil
}

// knowAll registers the resources of the repository and its patterns.
func knowAll(r *engine.Engine) {
	s := storeOf(r.Table)
	if s == nil {
		return
	}
	if queue, _ := s.Intents(stores.Opener{}); queue != nil && r.Intends() {
		s.Know(queue.Entry())
	}
	if _, passes := r.Table.Owner().(runTime); passes {
		return // Create must not create the resources of a RunTimeTable's patterns, which may include the table itself
	}
	s.mu.Lock()
	s.engines = append(s.engines, r)
	s.mu.Unlock()
	s.knowTable(r.Table)
	for _, p := range r.Patterns {
		if p.Outside != nil {
			s.knowTable(engine.OutsideTable(p))
		}
		for _, table := range p.Tables {
			s.knowTable((*core.Table)(table))
		}
		for _, c := range engine.Containers(p) {
			s.Know(c)
		}
	}
}

// Verify runs Repository.Verify for all repositories of the store, one after another, and returns the sum of
// their reports. Found gets the findings of all repositories; Finding.Table and Finding.Entity name the entity.
// Resume continues an earlier run of the same store. It returns ErrWiring if JobOptions.Partitions, Patterns or
// Rows is set, since their values concern one repository. It skips repositories on a RunTimeTable.
// Report.Estimate and ETA are 0.
func (s *Store) Verify(ctx context.Context, options *JobOptions) (VerifyReport, error) {
	return tally.Of[VerifyReport](s.runAll(ctx, jobs.Verify, options))
}

// Repair runs Repository.Repair for all repositories of the store; see Verify.
func (s *Store) Repair(ctx context.Context, options *JobOptions) (RepairReport, error) {
	return tally.Of[RepairReport](s.runAll(ctx, jobs.Repair, options))
}

// Rebuild runs Repository.Rebuild for all repositories of the store; see Verify.
func (s *Store) Rebuild(ctx context.Context, options *JobOptions) (RebuildReport, error) {
	return tally.Of[RebuildReport](s.runAll(ctx, jobs.Rebuild, options))
}

// runAll runs a job on the store's repositories in the order of their names.
func (s *Store) runAll(ctx context.Context, op string, options *JobOptions) (tally.Report, error) {
	o := JobOptions{}
	if options != nil {
		o = *options
	}
	if o.Partitions != nil || o.Patterns != nil || o.Rows != 0 {
		return tally.Report{}, errs.Wiringf(op, "", "JobOptions.Partitions, Patterns or Rows is set, and they belong to one repository; leave them out, or call %s of the repository", op)
	}
	all := s.root().enginesByName()
	job := eachof.Job{Op: op, Names: slices.Sorted(maps.Keys(all)), Resume: o.Resume, Progress: o.Progress}
	job.Run = func(ctx context.Context, repository int, resume string, progress func(tables.Progress)) (tally.Report, error) {
		here := o
		here.Resume, here.Progress = resume, progress
		return jobs.Run(ctx, all[job.Names[repository]], op, here.options())
	}
	return job.All(ctx)
}

// enginesByName returns the store's repositories under names that are distinct, so that a resumed job continues in the
// repository in which it has stopped. The repositories' own names can be equal: the default is the table's name, and
// only repositories with intents must have different names.
func (s *root) enginesByName() map[string]*engine.Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	identity := func(r *engine.Engine) string {
		return fmt.Sprintf("%s\t%s\t%s", r.Name(), r.Table.Name(), &r.Schema.Own)
	}
	equal := map[string]int{}
	for _, r := range s.engines {
		equal[identity(r)]++
	}
	all := make(map[string]*engine.Engine, len(s.engines))
	for _, r := range s.engines {
		name := identity(r)
		if equal[name] > 1 { // only then, so that a token survives a type's new name
			name += "\t" + r.Codec.Type().String()
		}
		for all[name] != nil { // the program has made the same repository twice
			name += "\tagain"
		}
		all[name] = r
	}
	return all
}

// Resource is a table, queue or container that a store uses.
type Resource struct {
	Kind string // "table", "queue" or "container"
	Name string // includes StoreOptions.Prefix; for a container, its URL, since a container can be in another account
	Role string // the built-in role that lets a program write to it; a program that only reads needs the corresponding Reader role
}

// Resources lists everything that Create creates: the resources of the store's repositories and patterns, and
// those opened with the store, in the order in which the program has opened them. Use the list in
// infrastructure code that creates the resources and grants the roles. A queue is listed with its shards, its
// poison queue and the container of its large bodies. Requests: 0.
func (s *Store) Resources() []Resource {
	var all []Resource
	for _, e := range s.root().uses.Entries() {
		for _, part := range e.Parts {
			all = append(all, Resource{Kind: string(part.Kind), Name: part.Name, Role: part.Kind.Role()})
		}
	}
	return all
}

// Ready returns nil if everything in Resources exists and the account's credential can read it, for a readiness
// probe. Otherwise it returns joined errors, one for each failed resource, each of which names the resource and
// says what to do: tables.ErrMissingResource, tables.ErrBeingDeleted, tables.ErrDenied or
// tables.ErrUnavailable. It does not check whether the credential may write. Requests: 1 for each of Resources,
// at most 8 at once. When Ready first succeeds, it makes up to 2 more for each repository whose schema has
// Prefix, Rows, Mine or Where. It logs a line (rows_unmatched) for a repository whose table has rows, of which none is
// an entity of the repository; it checks only tables that one request can search completely. Until it finds nothing wrong, it also compares the first
// entities of each repository, at most 20, with their copies in indexes, and returns tables.ErrWiring for an index that lacks most of them: it was never
// filled, or its key function has changed; call Rebuild. That takes 1 request, and at most 20 for each index, or 40 if it lacks copies.
func (s *Store) Ready(ctx context.Context) error {
	var checks []func(context.Context) error
	for _, e := range s.root().uses.Entries() {
		for _, part := range e.Parts {
			checks = append(checks, func(ctx context.Context) error { return readiness.Check(ctx, part) })
		}
	}
	if err := readiness.All(ctx, checks); err != nil {
		return err
	}
	of := s.root()
	of.mu.Lock()
	all := slices.Clone(of.engines)
	of.mu.Unlock()
	readiness.Warn(ctx, &of.uses, all)
	return readiness.Unfilled(ctx, &of.uses, all)
}
