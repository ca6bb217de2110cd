package archive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// order has lines, which are in its partition and counted in it.
type order struct {
	tables.Meta
	Tenant, ID string
	Lines      int
}

type line struct {
	tables.Meta
	Tenant, Order string
	Number        int
	Product       string
}

func orderKey(tenant, id string) tables.Key {
	return tables.Key{Partition: tenant, Row: compoundkey.Join("order", compoundkey.String(id))}
}

// shop is where the processes of a test with orders work.
type shop struct {
	current, archive, queue string
	replaces                bool
}

// shopProcess is one process: the repositories at both ends, and the mover.
type shopProcess struct {
	orders, archivedOrders *patterns.Repository[order]
	lines, archivedLines   *patterns.Repository[line]
	queue                  *eventual.Queue
	mover                  *archive.Mover[order]
	rekeyed                atomic.Int64 // lines
}

func newShop(t testing.TB, s *storagetest.Service) (*shop, *shopProcess) {
	t.Helper()
	x := &shop{current: s.TableName(t), archive: s.TableName(t), queue: s.QueueName(t)}
	p := assert.Must[*shopProcess](t)(x.start(s))
	assert.Check(t, p.orders.Table().Create(t.Context()), p.archivedOrders.Table().Create(t.Context()), p.queue.Create(t.Context()))
	return x, p
}

// linesOf finds the lines of an order.
func linesOf(lines tables.Query[line], o *order) tables.Query[line] {
	return lines.Partition(o.Tenant).Rows(compoundkey.Starting("line", compoundkey.String(o.ID)))
}

func (x *shop) start(s *storagetest.Service) (p *shopProcess, err error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p = &shopProcess{}
	if p.queue, err = eventual.NewQueue(account, x.queue, &eventual.QueueOptions{VisibilityTimeout: moverVisibility}); err != nil {
		return nil, err
	}
	open := func(table string, counts bool) (orders *patterns.Repository[order], lines *patterns.Repository[line], err error) {
		if orders, err = patterns.NewRepository(account.Table(table), patterns.Schema[order]{Name: "orders", Prefix: "order",
			Key: func(o *order) tables.Key { return orderKey(o.Tenant, o.ID) }}); err != nil {
			return nil, nil, err
		}
		attached := []patterns.Pattern[line]{intrapartition.NewUnique("product", func(l *line) string { return l.Order + l.Product }, nil)}
		if counts {
			attached = append(attached, relationships.NewParentCount("lines", orders, func(l *line) (tables.Key, bool) { return orderKey(l.Tenant, l.Order), true },
				func(o *order) *int { return &o.Lines }))
		}
		lines, err = patterns.NewRepository(account.Table(table), patterns.Schema[line]{Name: "lines", Prefix: "line", Key: func(l *line) tables.Key {
			return tables.Key{Partition: l.Tenant, Row: compoundkey.Join("line", compoundkey.String(l.Order), compoundkey.Int(l.Number, 4))}
		}}, attached...)
		return orders, lines, err
	}
	if p.orders, p.lines, err = open(x.current, true); err != nil {
		return nil, err
	}
	if p.archivedOrders, p.archivedLines, err = open(x.archive, false); err != nil {
		return nil, err
	}
	p.mover, err = archive.New(p.queue, "archive-orders", p.orders,
		archive.ToRepository(p.archivedOrders, nil, archive.Along(p.lines, linesOf, p.archivedLines, func(*line) { p.rekeyed.Add(1) })), &archive.Options{Replace: x.replaces})
	return p, err
}

// place inserts an order with its lines.
func (p *shopProcess) place(ctx context.Context, id string, products ...string) (*order, error) {
	o := &order{Tenant: "contoso", ID: id}
	transaction := p.orders.Table().NewTransaction()
	p.orders.StageInsert(transaction, o)
	for i, product := range products {
		p.lines.StageInsert(transaction, &line{Tenant: o.Tenant, Order: id, Number: i, Product: product})
	}
	_, err := transaction.Commit(ctx)
	return o, err
}

func (p *shopProcess) work(ctx context.Context) error {
	w, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 8, RetryDelay: atOnce})
	if err == nil {
		_, err = w.Drain(ctx)
	}
	return err
}

// read returns an order at one end with the products of its lines, "" if it is not there.
func read(ctx context.Context, orders *patterns.Repository[order], lines *patterns.Repository[line], id string) (string, error) {
	o, err := orders.Get(ctx, orderKey("contoso", id))
	there := err == nil
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return "", err
	}
	var products []string
	for l, err := range linesOf(lines.Query(), &order{Tenant: "contoso", ID: id}).All(ctx) {
		if err != nil {
			return "", err
		}
		products = append(products, l.Product)
	}
	switch {
	case !there && len(products) > 0:
		return "", fmt.Errorf("lines %q have no order", products)
	case !there:
		return "", nil
	case o.Lines != len(products):
		return "", fmt.Errorf("the order counts %d lines, and has %q", o.Lines, products)
	}
	return "order " + strings.Join(products, " "), nil
}

// ends returns what is at the source and at the destination. An order without all of its lines is an error.
func (p *shopProcess) ends(ctx context.Context, id string) (string, error) {
	current, err := read(ctx, p.orders, p.lines, id)
	archived, err2 := read(ctx, p.archivedOrders, p.archivedLines, id)
	return current + "|" + archived, errors.Join(err, err2)
}

// checkRows finds rows that no order, line or index has, such as those of the mover.
func (p *shopProcess) checkRows(ctx context.Context) error {
	for _, r := range []struct {
		orders *patterns.Repository[order]
		lines  *patterns.Repository[line]
	}{{p.orders, p.lines}, {p.archivedOrders, p.archivedLines}} {
		want := 0
		for _, err := range r.orders.Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			want++
		}
		for _, err := range r.lines.Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			want += 2
		}
		var rows []string
		for e, err := range r.orders.Table().Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			rows = append(rows, e.Key.Row)
		}
		if len(rows) != want {
			return fmt.Errorf("rows are %q, want %d", rows, want)
		}
	}
	return nil
}

// wantEnds fails unless the order is where it should be.
func wantEnds(t testing.TB, p *shopProcess, id, want string) {
	t.Helper()
	got, err := p.ends(t.Context(), id)
	if err = errors.Join(err, p.checkRows(t.Context())); err != nil || got != want {
		t.Errorf("order %s is %q, %v; want %q", id, got, err, want)
	}
}

// TestMoverMovesAlong: an order moves with its lines and their index rows, and others stay.
func TestMoverMovesAlong(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	x, _ := newShop(t, s)
	counted, counter := counting(s)
	p := assert.Must[*shopProcess](t)(x.start(counted))
	o := assert.Must[*order](t)(p.place(ctx, "1", "bolt", "nut"))
	empty := assert.Must[*order](t)(p.place(ctx, "10"))
	assert.Must[*order](t)(p.place(ctx, "2", "screw"))
	counter.Reset()
	assert.Check(t, p.mover.Move(ctx, o), p.work(ctx))
	if n := counter.Count(); n != 1+8+emptyPolls { // one more than without lines: to read them
		t.Errorf("%d requests: %v", n, counter.Kinds())
	}
	assert.Check(t, p.mover.Move(ctx, empty), p.work(ctx))
	wantEnds(t, p, "1", "|order bolt nut")
	wantEnds(t, p, "10", "|order ")
	wantEnds(t, p, "2", "order screw|")
}

// TestMoverAlongRefuses: what cannot be in one transaction is refused when the mover is made, or goes to the poison queue with a reason.
func TestMoverAlongRefuses(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	_, p := newShop(t, s)
	elsewhere := assert.Must[*patterns.Repository[line]](t)(patterns.NewRepository(p.queue.Account().Table("Elsewhere"), patterns.Schema[line]{Key: p.lines.KeyOf, Prefix: "line"}))
	for want, part := range map[string]archive.Part[order]{
		"is nil; use Along":           nil,
		"a nil repository":            archive.Along(p.lines, linesOf, nil, nil),
		"a nil repository or":         archive.Along(nil, linesOf, p.archivedLines, nil),
		"a nil repository or functio": archive.Along[order](p.lines, nil, p.archivedLines, nil),
		"deletes both":                archive.Along(elsewhere, linesOf, p.archivedLines, nil),
		"inserts both":                archive.Along(p.lines, linesOf, elsewhere, nil),
	} {
		if _, err := archive.New(p.queue, "m", p.orders, archive.ToRepository(p.archivedOrders, nil, part), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	long := assert.Must[*order](t)(p.place(ctx, "1"))
	for i := range 99 {
		assert.Check(t, p.lines.Insert(ctx, &line{Tenant: "contoso", Order: "1", Number: i, Product: fmt.Sprint(i)}))
	}
	assert.Check(t, p.mover.Move(ctx, long), p.work(ctx))
	entries := assert.Must[[]eventual.PoisonMessage](t)(p.queue.Poison().Peek(ctx, 32))
	if len(entries) != 1 || !strings.Contains(entries[0].Reason, "98 children") {
		t.Errorf("poisoned is %+v", entries)
	}
}

// shopUser changes an order at one end, while its move is under way.
type shopUser func(ctx context.Context, p *shopProcess) error

// shopUsers come to an order with the lines bolt and nut. ends are what may be stored in the end.
func shopUsers() map[string]struct {
	come  shopUser
	ends  []string
	floor int // of the points of the sweep
} {
	type user = struct {
		come  shopUser
		ends  []string
		floor int
	}
	key := func(n int) tables.Key {
		return tables.Key{Partition: "contoso", Row: compoundkey.Join("line", compoundkey.String("1"), compoundkey.Int(n, 4))}
	}
	change := func(repo func(*shopProcess) *patterns.Repository[line], n int, product string) shopUser {
		return func(ctx context.Context, p *shopProcess) error {
			_, err := repo(p).Update(ctx, key(n), func(l *line) error { l.Product = product; return nil })
			return err
		}
	}
	atSource := func(p *shopProcess) *patterns.Repository[line] { return p.lines }
	atCopy := func(p *shopProcess) *patterns.Repository[line] { return p.archivedLines }
	return map[string]user{
		"nobody":         {func(context.Context, *shopProcess) error { return nil }, []string{"|order bolt nut"}, 356},
		"changes a line": {change(atSource, 1, "screw"), []string{"|order bolt screw"}, 628},
		"adds a line": {func(ctx context.Context, p *shopProcess) error {
			return p.lines.Insert(ctx, &line{Tenant: "contoso", Order: "1", Number: 2, Product: "screw"})
		}, []string{"|order bolt nut screw"}, 628},
		"deletes a line":             {func(ctx context.Context, p *shopProcess) error { return p.lines.DeleteUnconditional(ctx, key(0)) }, []string{"|order nut"}, 628},
		"changes a line of the copy": {change(atCopy, 1, "screw"), []string{"|order bolt screw"}, 356},
		"changes a line at both ends": {func(ctx context.Context, p *shopProcess) error {
			return errors.Join(change(atSource, 0, "cog")(ctx, p), change(atCopy, 1, "screw")(ctx, p))
		}, []string{"order cog nut|order bolt screw"}, 552},
	}
}

// TestSweepMoverAlong: whatever goes wrong with any request of a worker, and whoever changes the lines just after they were copied, an order
// and its lines stay together, and no change is lost.
func TestSweepMoverAlong(t *testing.T) {
	for name, u := range shopUsers() {
		t.Run(name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: u.floor, Every: harness.WideSweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return sweptShop(t, s, u.come, u.ends)
			}})
		})
	}
}

func sweptShop(t testing.TB, s *storagetest.Service, come shopUser, ends []string) storagetest.World {
	x, plain := newShop(t, s)
	o := assert.Must[*order](t)(plain.place(t.Context(), "1", "bolt", "nut"))
	assert.Check(t, plain.mover.Move(t.Context(), o))
	var once sync.Once
	came, missed := false, false
	between := func() {
		once.Do(func() {
			came = true
			err := come(context.Background(), plain)
			if missed = tables.KindOf(err) == tables.ErrNotFound || tables.KindOf(err) == tables.ErrMissingReference; err != nil && !missed {
				t.Error(err)
			}
		})
	}
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			p, err := x.start(hooked(s, hook{storagetest.Batch, 0, true, between}))
			if err != nil {
				return err
			}
			return p.work(ctx)
		},
		Recover: func(ctx context.Context, s *storagetest.Service) error {
			for range 3 {
				s.Wait(2 * moverVisibility)
				p, err := x.start(s)
				if err == nil {
					_, err = p.queue.Poison().Requeue(ctx, nil)
				}
				if err == nil {
					err = p.work(ctx)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(ctx context.Context, _ *storagetest.Service, _ storagetest.Ending) error {
			got, err := plain.ends(ctx, "1")
			if !came {
				ends = []string{"|order bolt nut"} // the worker got no message
			}
			if err == nil && !missed && !slices.Contains(ends, got) {
				err = fmt.Errorf("the order is %q, want one of %q", got, ends)
			}
			return errors.Join(err, plain.checkRows(ctx))
		},
	}
}

// TestWalkMoverAlong walks through the interleavings of a worker that may die with somebody who changes the lines at one end.
func TestWalkMoverAlong(t *testing.T) {
	for name, u := range shopUsers() {
		if name == "changes a line at both ends" || name != "changes a line" && !harness.Thorough() {
			continue // at both ends are two changes, of which one alone may be made
		}
		stage := func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
			x, plain := newShop(t, s)
			o := assert.Must[*order](t)(plain.place(t.Context(), "1", "bolt", "nut"))
			assert.Check(t, plain.mover.Move(t.Context(), o))
			told := tables.Key{Partition: "user", Row: "told"} // a row that the user writes who was told that the change is made
			ledger := s.TableName(t)
			assert.Check(t, plain.queue.Account().Table(ledger).Create(t.Context()))
			return explore.InterleavingStage{Queues: []string{x.queue},
				Processes: []explore.Actor{func(ctx context.Context, s *storagetest.Service) error {
					p, err := x.start(s)
					if err == nil {
						err = u.come(ctx, p)
					}
					if tables.KindOf(err) == tables.ErrNotFound || tables.KindOf(err) == tables.ErrMissingReference {
						return nil // it came too early or too late
					}
					if err != nil {
						return err
					}
					return p.queue.Account().Table(ledger).Entities().Upsert(ctx, &tables.Entity{Key: told})
				}},
				Workers: []explore.Actor{func(ctx context.Context, s *storagetest.Service) error {
					p, err := x.start(harness.OneGet(s))
					if err == nil {
						err = p.work(ctx)
					}
					return err
				}},
				Check: func(ctx context.Context, s *storagetest.Service) error {
					p, err := x.start(s)
					if err != nil {
						return err
					}
					ends := u.ends
					if _, err := p.queue.Account().Table(ledger).Entities().Get(ctx, told); errors.Is(err, tables.ErrNotFound) {
						ends = append([]string{"|order bolt nut"}, ends...)
					}
					got, err := p.ends(ctx, "1")
					if err == nil && !slices.Contains(ends, got) {
						err = fmt.Errorf("the order is %q, want one of %q", got, ends)
					}
					return errors.Join(err, p.checkRows(ctx))
				}}
		}
		explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: stage, Crashes: 1, Pause: moverVisibility + time.Second}).MustConverge(t)
	}
}

// TestMoverAlongTakenKey: a line at the destination that belongs to no order there is named, and the move goes on once it is gone.
func TestMoverAlongTakenKey(t *testing.T) {
	ctx := t.Context()
	_, p := newShop(t, storagetest.Open(t))
	o := assert.Must[*order](t)(p.place(ctx, "1", "bolt", "nut"))
	alone := &line{Tenant: "contoso", Order: "1", Number: 1, Product: "alone"}
	assert.Check(t, p.archivedLines.Insert(ctx, alone), p.mover.Move(ctx, o), p.work(ctx))
	entries := assert.Must[[]eventual.PoisonMessage](t)(p.queue.Poison().Peek(ctx, 32))
	if len(entries) != 1 || !strings.Contains(entries[0].Reason, "a child's key is taken") {
		t.Fatalf("poisoned is %+v", entries)
	}
	assert.Check(t, p.archivedLines.Delete(ctx, alone))
	assert.Must[int](t)(p.queue.Poison().Requeue(ctx, nil))
	assert.Check(t, p.work(ctx))
	wantEnds(t, p, "1", "|order bolt nut")
}

// TestAlongRekeysOnce: a move calls the function that changes the keys once for each child.
func TestAlongRekeysOnce(t *testing.T) {
	_, p := newShop(t, storagetest.Simulator(t, nil))
	o := assert.Must[*order](t)(p.place(t.Context(), "7", "pen", "ink", "paper"))
	assert.Check(t, p.mover.Move(t.Context(), o))
	p.rekeyed.Store(0) // Move itself may look at the keys
	assert.Check(t, p.work(t.Context()))
	if ends := assert.Must[string](t)(p.ends(t.Context(), "7")); ends != "|order pen ink paper" || p.rekeyed.Load() != 3 {
		t.Errorf("%q; 3 lines were given to rekey %d times", ends, p.rekeyed.Load())
	}
}
