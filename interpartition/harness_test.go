package interpartition_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Email      string
	Badge      string
}

func jones() *employee {
	return &employee{Department: "Sales", ID: 223, Name: "June Jones", Email: "jonesj@contoso.com", Badge: "B-1"}
}

// kind is how a world's effects are applied, whether its keys are reserved, and whether intents are closed in the background.
type kind struct{ async, unique, background bool }

func (k kind) String() string {
	return map[bool]string{false: "sync", true: "async"}[k.async] + map[bool]string{false: "", true: "-unique"}[k.unique] + map[bool]string{false: "", true: "-background"}[k.background]
}

// carrier returns what carries the intents of a process.
func (k kind) carrier(queue *eventual.Queue) intents.RunnerCloser {
	open := 0
	if k.background {
		open = 64
	}
	return intents.Of((*handle.Any)(queue)).Runner(open)
}

// world is where the tests' processes work: names, and how they keep employees.
type world struct {
	kind
	table, badges, queue string

	hidden time.Duration // the visibility timeout; 0 is the constant visibility
	term   time.Duration // of reservations; 0 is the package's own
}

func (w *world) visibility() time.Duration { return cmp.Or(w.hidden, visibility) }

func newWorld(t testing.TB, s *storagetest.Service, k kind) *world {
	t.Helper()
	w := &world{kind: k, table: s.TableName(t), badges: s.TableName(t), queue: s.QueueName(t)}
	p := harness.Must[*process](t)(w.start(s))
	for _, err := range []error{p.repo.Table().Create(t.Context()), p.badges.Create(t.Context()), p.queue.Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// process is what one process has: clients, handles, a repository with two inter-partition indexes.
type process struct {
	repo  *patterns.Repository[employee]
	queue *eventual.Queue
	close func(context.Context) error     // waits for what goes on in the background
	email *interpartition.Index[employee] // in the same table, by department
	badge *interpartition.Index[employee] // in the table badges: a global index with a projection

	badges *tables.Table
}

const visibility = 10 * time.Second

func (w *world) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: w.visibility()})
	if err != nil {
		return nil, err
	}
	carrier := w.carrier(queue)
	p := &process{queue: queue, close: carrier.Close, badges: account.Table(w.badges),
		email: interpartition.NewIndex("email", func(e *employee) compoundkey.Part { return text(e.Email) }, &interpartition.Options[employee]{ByPartition: true, Unique: w.unique}),
		badge: interpartition.NewIndex("badge", func(e *employee) compoundkey.Part { return text(e.Badge) }, &interpartition.Options[employee]{
			Table:   account.Table(w.badges),
			Project: []string{"Name"},
			Unique:  w.unique,
		}),
	}
	schema := patterns.Schema[employee]{Key: keyOf, Rows: compoundkey.Starting("empid")}
	all := []patterns.Pattern[employee]{p.email, p.badge}
	if w.term > 0 {
		all = []patterns.Pattern[employee]{briefly{p.email, w.term}, briefly{p.badge, w.term}}
	}
	p.repo, err = patterns.NewRepository(harness.In(account.Table(w.table), carrier), schema, harness.AsyncIf(w.async, all...)...)
	return p, err
}

func keyOf(e *employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

// text is the key of a text, none for "".
func text(s string) compoundkey.Part {
	if s == "" {
		return compoundkey.Part{}
	}
	return compoundkey.String(s)
}

// openQueue opens the queue as a process does.
func (w *world) openQueue(s *storagetest.Service) (*eventual.Queue, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	return p.queue, nil
}

// drain lets every message appear and workers handle them, until none is left.
func (w *world) drain(ctx context.Context, s *storagetest.Service) error {
	return harness.Drain(ctx, s, w.visibility(), w.openQueue)
}

// drainNow handles what is visible now.
func (w *world) drainNow(ctx context.Context, p *process) error {
	return harness.DrainNow(ctx, p.queue)
}

// check holds the indexes against the employees, and returns these as texts by key.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]string, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found := map[tables.Key]string{}
	wanted := map[string]string{}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found[e.Key()] = textOf(e)
		if e.Email != "" {
			wanted["email_"+e.Department+" "+e.Email] = joined(e.Name, e.Email, e.Badge, e.Key().Row, string(e.ETag))
		}
		if e.Badge != "" {
			wanted["badge "+e.Badge] = joined(e.Name, e.Key().Row, string(e.ETag))
		}
	}
	got, err := w.copies(ctx, p)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("the indexes hold\n%s\nand should hold\n%s", lines(got), lines(wanted))
	}
	return found, nil
}

// copies reads the rows of both indexes as they are stored, each of which must have its claim.
func (w *world) copies(ctx context.Context, p *process) (map[string]string, error) {
	got, claims := map[string]string{}, map[string]int{}
	for _, table := range []*tables.Table{p.repo.Table(), p.badges} {
		for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return nil, err
			}
			raw, err := rawRow(ctx, table, row.Key)
			if err != nil {
				return nil, err
			}
			at := row.Key.Partition + " " + row.Key.Row
			switch {
			case raw["_tpClaim"] != "":
				claims[row.Key.Partition+" "+raw["_tpClaim"]]++
				if raw["_tpReserved"] != "" {
					return nil, fmt.Errorf("row %q reserves a key", at)
				}
			case raw["_tpReserved"] != "":
				return nil, fmt.Errorf("row %q is reserved", at)
			case raw["_tpPrimary"] != "":
				got[at] = joined(raw["Name"], raw["Email"], raw["Badge"], raw["_tpPrimary"], raw["_tpVersion"])
			}
		}
	}
	for at := range got {
		if claims[at] != 1 {
			return nil, fmt.Errorf("copy %q has %d claims", at, claims[at])
		}
	}
	if len(claims) != len(got) {
		return nil, fmt.Errorf("%d claims of %d copies", len(claims), len(got))
	}
	return got, nil
}

// rawRow reads a row with its system properties, which the library does not show.
func rawRow(ctx context.Context, table *tables.Table, key tables.Key) (map[string]string, error) {
	answer, err := table.Client().GetEntity(ctx, key.Partition, key.Row, nil)
	if err != nil {
		return nil, err
	}
	return decode(answer.Value)
}

// joined is what there is of some texts.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " ")
}

func textOf(e *employee) string { return fmt.Sprintf("%s <%s> %s", e.Name, e.Email, e.Badge) }

func lines(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\t%s: %s\n", key, m[key])
	}
	return b.String()
}
