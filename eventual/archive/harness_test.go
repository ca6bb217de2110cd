package archive_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// openQueue opens a queue of this service, which need not be there.
func openQueue(s *storagetest.Service, name string, o *eventual.QueueOptions) (*eventual.Queue, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return eventual.NewQueue(account, name, o)
}

// newQueue makes a queue for one test.
func newQueue(t testing.TB, s *storagetest.Service, o *eventual.QueueOptions) *eventual.Queue {
	t.Helper()
	name := s.QueueName(t)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, "q"+name[len(name)-16:], o)) // with room for what is added to it
	assert.Check(t, q.Create(t.Context()))
	t.Cleanup(func() {
		if err := q.Drop(context.Background()); err != nil && !errors.Is(err, tables.ErrMissingResource) {
			t.Error(err)
		}
	})
	return q
}

// atOnce repeats failed messages without waiting, so that a Drain goes through all deliveries.
func atOnce(int) time.Duration { return 0 }

// drain has a worker that retries at once handle what is visible, and returns what it did.
func drain(t testing.TB, q *eventual.Queue) eventual.WorkerStats {
	t.Helper()
	w := assert.Must[*eventual.Worker](t)(eventual.NewWorker(q, nil, &eventual.WorkerOptions{RetryDelay: atOnce}))
	assert.Must[int](t)(w.Drain(t.Context()))
	return w.Stats()
}

// entries are all entries of the poison queue, of which there are at most 32.
func entries(t testing.TB, q *eventual.Queue) []eventual.PoisonMessage {
	t.Helper()
	return assert.Must[[]eventual.PoisonMessage](t)(q.Poison().Peek(t.Context(), 32))
}

// wantKind fails unless err is a tables.Error of that kind.
func wantKind(t testing.TB, err, kind error) {
	t.Helper()
	var e *tables.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v", err, kind)
	}
}

// clerk is what the movers' tests move. No two states of clerks have one Life and Note.
type clerk struct {
	tables.Meta
	Department string
	ID         int
	Email      string
	Life       string // the same from insert to delete
	Note       string // another one at each write
}

func clerkKey(c *clerk) tables.Key {
	return tables.Key{Partition: c.Department, Row: compoundkey.Join("empid", compoundkey.Int(c.ID, 6))}
}

func clerkBlob(c *clerk) string { return fmt.Sprintf("clerks/%s/%d.json", c.Department, c.ID) }

// june is the clerk that is moved where it takes only one.
func june() *clerk {
	return &clerk{Department: "Sales", ID: 223, Email: "june@contoso.com", Life: "first", Note: "hired"}
}

func (c *clerk) state() string { return c.Life + ": " + c.Note }

// elsewhere is an index with a copy in another table, whose changes go over the queue.
type elsewhere struct{ table *tables.Table }

func (e *elsewhere) Attach(driver.Host, *clerk) (driver.Implementation, error) {
	return driver.Implementation{Name: "elsewhere", Outside: &driver.Outside{Table: e.table,
		Copies: driver.Of(func(c *clerk) ([]driver.OutsideCopy, error) {
			return []driver.OutsideCopy{{Key: tables.Key{Partition: "clerks", Row: compoundkey.Join("clerk", compoundkey.String(c.Department), compoundkey.Int(c.ID, 6))}}}, nil
		})}}, nil
}

// office is where a test's processes work: names, and how their movers are made.
type office struct {
	toBlobs, replaces, reachesOut bool

	current, archive, outside, queue, container, ledger string

	visibility  time.Duration // moverVisibility for 0
	bothChanged bool          // a message that recover requeued said that users had changed both ends
}

const moverVisibility = 10 * time.Second

// newOffice makes the tables and whatever else a test needs.
func newOffice(t testing.TB, s *storagetest.Service, o office) *office {
	t.Helper()
	o.current, o.archive, o.outside, o.queue, o.container, o.ledger = s.TableName(t), s.TableName(t), s.TableName(t), s.QueueName(t), s.ContainerName(t), s.TableName(t)
	p := assert.Must[*officer](t)(o.start(s))
	assert.Check(t, p.current.Table().Create(t.Context()))
	assert.Check(t, p.archive.Table().Create(t.Context()))
	assert.Check(t, p.queue.Account().Table(o.outside).Create(t.Context()))
	assert.Check(t, p.ledger.Create(t.Context()))
	assert.Check(t, p.queue.Create(t.Context()))
	_, err := blobstorage.Container(p.queue.Account(), o.container).Create(t.Context(), nil)
	assert.Check(t, err)
	return &o
}

// officer is one process.
type officer struct {
	*office
	current, archive *patterns.Repository[clerk]
	queue            *eventual.Queue
	mover            *archive.Mover[clerk]
	ledger           *tables.Table
}

func (o *office) start(s *storagetest.Service) (*officer, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p := &officer{office: o}
	if p.queue, err = eventual.NewQueue(account, o.queue, &eventual.QueueOptions{VisibilityTimeout: cmp.Or(o.visibility, moverVisibility)}); err != nil {
		return nil, err
	}
	p.ledger = account.Table(o.ledger)
	email := func() patterns.Pattern[clerk] {
		return intrapartition.NewUnique("email", func(c *clerk) string { return c.Email }, nil)
	}
	current, schema := account.Table(o.current), patterns.Schema[clerk]{Key: clerkKey, Prefix: "empid"}
	attached := []patterns.Pattern[clerk]{email()}
	if o.reachesOut {
		current = harness.In(current, p.queue)
		attached = append(attached, &elsewhere{account.Table(o.outside)})
	}
	if p.current, err = patterns.NewRepository(current, schema, attached...); err != nil {
		return nil, err
	}
	if p.archive, err = patterns.NewRepository(account.Table(o.archive), patterns.Schema[clerk]{Key: clerkKey, Prefix: "empid"}, email()); err != nil {
		return nil, err
	}
	destination := archive.ToRepository(p.archive, nil)
	if o.toBlobs {
		destination = archive.ToContainer(blobstorage.Container(account, o.container), clerkBlob)
	}
	p.mover, err = archive.New(p.queue, "archive-clerks", p.current, destination, &archive.Options{Replace: o.replaces})
	return p, err
}

// open starts a process, or ends the test.
func (o *office) open(t testing.TB, s *storagetest.Service) *officer {
	t.Helper()
	return assert.Must[*officer](t)(o.start(s))
}

// work handles what is visible, one message after the other, so that a schedule's calls come in a fixed order. Failures are
// repeated at once, up to limit deliveries.
func (p *officer) work(ctx context.Context, limit int) (eventual.WorkerStats, error) {
	w, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: limit, RetryDelay: atOnce})
	if err != nil {
		return eventual.WorkerStats{}, err
	}
	_, err = w.Drain(ctx)
	return w.Stats(), err
}

// recover is what time and workers without faults do, and somebody who requeues.
func (o *office) recover(ctx context.Context, s *storagetest.Service) error {
	p, err := o.start(s)
	if err != nil {
		return err
	}
	for range 3 { // a message may put others on the queue
		s.Wait(2 * moverVisibility)
		if err := o.requeue(ctx, p); err != nil {
			return err
		}
		if _, err := p.work(ctx, 8); err != nil {
			return err
		}
	}
	if n, err := p.queue.Length(ctx); err != nil || n != 0 {
		return fmt.Errorf("%d messages are left (%w)", n, err)
	}
	return nil
}

// requeue puts poisoned messages back, and notes what they said.
func (o *office) requeue(ctx context.Context, p *officer) error {
	poisoned, err := p.queue.Poison().Peek(ctx, 32)
	if err != nil {
		return err
	}
	for _, e := range poisoned {
		o.bothChanged = o.bothChanged || strings.Contains(e.Reason, "left as")
	}
	_, err = p.queue.Poison().Requeue(ctx, nil)
	return err
}

// places is where a clerk is; nil where it is not.
type places struct{ current, archived *clerk }

func (p places) String() string {
	text := func(c *clerk) string {
		if c == nil {
			return "nothing"
		}
		return c.state()
	}
	return fmt.Sprintf("current has %s, the archive has %s", text(p.current), text(p.archived))
}

// find looks into both places.
func (p *officer) find(ctx context.Context, c *clerk) (places, error) {
	var found places
	var err error
	if found.current, err = p.current.Get(ctx, clerkKey(c)); err != nil && !errors.Is(err, tables.ErrNotFound) {
		return found, err
	}
	if p.toBlobs {
		found.archived, err = archive.Read[clerk](ctx, blobstorage.Container(p.queue.Account(), p.container), clerkBlob(c))
	} else {
		found.archived, err = p.archive.Get(ctx, clerkKey(c))
	}
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return found, err
	}
	return found, nil
}

// checkRows compares all rows of the tables with the clerks: each has its own and its indexes', and nothing else is there.
func (p *officer) checkRows(ctx context.Context) error {
	want := map[string]int{}
	got := map[string]int{}
	for _, repo := range []*patterns.Repository[clerk]{p.current, p.archive} {
		table := repo.Table().Name()
		for c, err := range repo.Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			want[table+" "+clerkKey(c).Row+" "+c.Note]++
			want[table+" email_"+c.Email+" "+c.Note]++
			if p.reachesOut && repo == p.current {
				want[p.outside+" "+compoundkey.Join("clerk", compoundkey.String(c.Department), compoundkey.Int(c.ID, 6))+" "+c.Note]++
			}
		}
	}
	for _, name := range []string{p.office.current, p.office.archive, p.outside} {
		table := p.queue.Account().Table(name)
		marked, err := harness.Marked(ctx, table)
		if err != nil {
			return err
		}
		for key := range marked { // the clerk, or nobody
			maps.DeleteFunc(want, func(row string, _ int) bool { return strings.HasPrefix(row, name+" "+key.Row+" ") })
		}
		for e, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			if note, ok := e.Get("Note").Text(); ok && !marked[e.Key] {
				got[name+" "+e.Key.Row+" "+note]++
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("rows are %v, and should be %v", got, want)
	}
	return nil
}

// rewrite changes a clerk's note, and its index key with it.
func rewrite(note string) func(*clerk) error {
	return func(c *clerk) error {
		c.Note, c.Email = note, strings.ReplaceAll(note, " ", "-")+"@contoso.com"
		return nil
	}
}
