package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// office is a source whose name many members hold.
type office struct {
	tables.Meta
	Code, City string
}

// member says itself which office it belongs to.
type member struct {
	tables.Meta
	ID         int
	Office     string
	Note       string
	OfficeCity string
}

func officeKey(code string) tables.Key {
	return tables.Key{Partition: code, Row: compoundkey.Join("office", compoundkey.String(code))}
}

func memberKey(id int) tables.Key {
	return tables.Key{Partition: "members", Row: compoundkey.Join("member", compoundkey.Int(id, 6))}
}

// offices is a world of offices and their members.
type offices struct {
	table, queue string
	limit        int
	required     bool
}

type officeProcess struct {
	offices *patterns.Repository[office]
	members *patterns.Repository[member]
	city    *seen[office] // the link's Source
	queue   *eventual.Queue
}

func (w *offices) start(s *storagetest.Service) (*officeProcess, error) {
	account, queue, err := connect(s, w.queue)
	if err != nil {
		return nil, err
	}
	p := &officeProcess{queue: queue}
	link := cityLink()
	link.Required = w.required
	copies := denormalization.New("city", link, &denormalization.Options{Limit: w.limit})
	p.members, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), memberSchema(), copies.Holder())
	if err != nil {
		return nil, err
	}
	p.city = &seen[office]{pattern: copies.Source()}
	p.offices, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), patterns.Schema[office]{Name: "offices", Prefix: "office", Key: func(o *office) tables.Key { return officeKey(o.Code) }}, p.city)
	return p, err
}

func memberSchema() patterns.Schema[member] {
	return patterns.Schema[member]{Name: "members", Prefix: "member", Key: func(m *member) tables.Key { return memberKey(m.ID) }}
}

// cityLink copies an office's city into all its members.
func cityLink() denormalization.Link[office, member] {
	return denormalization.Link[office, member]{
		Properties: []string{"OfficeCity"},
		Find: func(members tables.Query[member], source tables.Key) tables.Query[member] {
			return members.Partition("members").Where(tables.Eq("Office", source.Partition))
		},
		Copy: func(o *office, m *member) {
			if o == nil {
				o = &office{}
			}
			m.OfficeCity = o.City
		},
		SourceOf: func(m *member) (tables.Key, bool) { return officeKey(m.Office), m.Office != "" },
	}
}

func newOffices(t testing.TB, s *storagetest.Service, members int) *offices {
	t.Helper()
	w := &offices{table: s.TableName(t), queue: s.QueueName(t)}
	p := assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, p.members.Table().Create(t.Context()), p.queue.Create(t.Context()))
	// The members are older than the link.
	_, err := w.unlinked(t, s).BulkNonAtomic(t.Context(), func(yield func(*member, error) bool) {
		for id := range members {
			if !yield(&member{ID: id, Office: "L", Note: "kept"}, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	return w
}

// unlinked is the members' repository in a program that does not know the link.
func (w *offices) unlinked(t testing.TB, s *storagetest.Service) *patterns.Repository[member] {
	t.Helper()
	account, _, err := connect(s, w.queue)
	if err != nil {
		t.Fatal(err)
	}
	return assert.Must[*patterns.Repository[member]](t)(patterns.NewRepository(account.Table(w.table), memberSchema()))
}

func (w *offices) drain(ctx context.Context, s *storagetest.Service) error {
	return harness.Drain(ctx, s, visibility, func(s *storagetest.Service) (*eventual.Queue, error) {
		p, err := w.start(s)
		if err != nil {
			return nil, err
		}
		return p.queue, nil
	})
}

// checkCopies compares each member with its office, and returns the number of members by city.
func (w *offices) checkCopies(ctx context.Context, s *storagetest.Service) (map[string]int, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	cities, cityOf := map[string]int{}, map[string]string{}
	for o, err := range p.offices.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		cityOf[o.Code] = o.City
	}
	for m, err := range p.members.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		if m.OfficeCity != cityOf[m.Office] || m.Note != "kept" {
			return nil, fmt.Errorf("member %d of office %q, in %q, has %q and note %q", m.ID, m.Office, cityOf[m.Office], m.OfficeCity, m.Note)
		}
		cities[m.OfficeCity]++
	}
	return cities, nil
}

// TestFanOut: 1,000 members hold the city of their office.
func TestFanOut(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 1000)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := assert.Must[*officeProcess](t)(w.start(&counted))
	o := &office{Code: "L", City: "London"}
	want := func(city string, requests int) {
		t.Helper()
		// On a slow machine the intent's message is renewed meanwhile.
		if got := counter.Count() - counter.CountOf(storagetest.UpdateMessage); got != requests {
			t.Errorf("%d requests, want %d: %v", got, requests, counter.Kinds())
		}
		if cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s)); cities[city] != 1000 {
			t.Fatalf("cities are %v", cities)
		}
		counter.Reset()
	}
	assert.Check(t, p.offices.Insert(ctx, o))
	want("London", 1+2+1+1000/50+1)
	o.City = "Leeds"
	assert.Check(t, p.offices.Replace(ctx, o))
	want("Leeds", 1+2+1+1000/50+1)
	assert.Check(t, p.offices.Replace(ctx, o)) // nothing in it changes
	want("Leeds", 1+2+1+1)
	assert.Check(t, p.offices.Delete(ctx, o))
	want("", 1+2+1+1000/50+1)
}

// TestFanOutGoesOn: a process dies in the middle, and the next one does only what is left.
func TestFanOutGoesOn(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 1000)
	dying, faults := s.Faulty(storagetest.On(storagetest.Batch, storagetest.OnIndex(12, storagetest.DiesBefore)))
	alive, cancel := faults.Context(ctx)
	defer cancel()
	assert.Check(t, assert.Must[*officeProcess](t)(w.start(dying)).offices.Insert(alive, &office{Code: "L", City: "London"}))
	if !faults.Dead() {
		t.Fatal("it lives")
	}
	if cities, err := w.checkCopies(ctx, s); err == nil {
		t.Fatalf("all copies are correct although the writer died: %v", cities)
	}
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	assert.Check(t, w.drain(ctx, &counted))
	if cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s)); cities["London"] != 1000 {
		t.Fatalf("cities are %v", cities)
	}
	if n := counter.Kinds()[storagetest.Batch]; n < 8 || n > 16 {
		t.Fatalf("the second process wrote %d transactions of 50 members, and 8 were left of 20", n)
	}
}

// TestMovedMember: a member that moves to another office, or to one that does not exist, has its city, or none.
func TestMovedMember(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 3)
	p := assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, p.offices.Insert(ctx, &office{Code: "L", City: "London"}), p.offices.Insert(ctx, &office{Code: "P", City: "Paris"}))
	move := func(id int, code string) {
		t.Helper()
		_, err := p.members.Update(ctx, memberKey(id), func(m *member) error { m.Office = code; return nil })
		assert.Check(t, err)
	}
	move(1, "P")
	cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s))
	if cities["Paris"] != 1 || cities["London"] != 2 {
		t.Fatalf("cities are %v", cities)
	}
	move(2, "X") // there is no such office
	cities = assert.Must[map[string]int](t)(w.checkCopies(ctx, s))
	if cities[""] != 1 {
		t.Fatalf("cities are %v", cities)
	}
}

// TestTooManyHolders: the office is written, and its intent ends on the poison queue with the reason.
func TestTooManyHolders(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 20)
	w.limit = 10
	p := assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, p.offices.Insert(ctx, &office{Code: "L", City: "London"}))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1}))
	_, err := worker.Drain(ctx)
	assert.Check(t, err)
	entries := assert.Must[[]eventual.PoisonMessage](t)(p.queue.Poison().Peek(ctx, 10))
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	t.Log(entries[0].Reason)
	w.limit = 100
	again := assert.Must[*officeProcess](t)(w.start(s))
	_, err = again.queue.Poison().Requeue(ctx, func(eventual.PoisonMessage) bool { return true })
	assert.Check(t, err, drainNow(ctx, again.queue))
	if cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s)); cities["London"] != 20 {
		t.Fatalf("cities are %v", cities)
	}
}

// TestOneBadHolder: a holder that cannot be written does not keep the others from it.
func TestOneBadHolder(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 20)
	faulty, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool {
		return c.Kind == storagetest.Batch || c.Kind == storagetest.ReplaceEntity && strings.Contains(c.Path, memberKey(3).Row)
	}, storagetest.Always(storagetest.NotSent)))
	p := assert.Must[*officeProcess](t)(w.start(faulty.WithRetries(-1)))
	assert.Check(t, p.offices.Insert(ctx, &office{Code: "L", City: "London"}))
	one := assert.Must[*member](t)(p.members.Get(ctx, memberKey(3)))
	if one.OfficeCity != "" {
		t.Fatal("the member was written")
	}
	if _, err := w.checkCopies(ctx, s); err == nil {
		t.Fatal("all copies are correct")
	}
	last := assert.Must[*member](t)(p.members.Get(ctx, memberKey(19)))
	if last.OfficeCity != "London" {
		t.Fatal("the last member was not written")
	}
	assert.Check(t, w.drain(ctx, s))
	assert.Must[map[string]int](t)(w.checkCopies(ctx, s))
}

// TestPanicOfACopy: a panic of the caller's function reaches the caller, and not the program.
func TestPanicOfACopy(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 1)
	p := assert.Must[*officeProcess](t)(w.start(s))
	link := cityLink()
	link.SourceOf = func(m *member) (tables.Key, bool) {
		if m.ReadRow() == m.Key().Row {
			panic(errors.New("mine"))
		}
		return tables.Key{}, false
	}
	copies := denormalization.New("panics", link, nil)
	_, err := patterns.NewRepository(harness.In(p.members.Table(), p.queue), patterns.Schema[member]{Name: "panicking members", Key: p.members.KeyOf}, copies.Holder())
	assert.Check(t, err)
	source := &seen[office]{pattern: copies.Source()}
	_, err = patterns.NewRepository(harness.In(p.offices.Table(), p.queue), patterns.Schema[office]{Name: "panics", Key: p.offices.KeyOf}, source)
	assert.Check(t, err)
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	_ = harness.ReconcileOne(ctx, source.Effect.Reconcile, &driver.Reconciliation{Key: officeKey("L"), Entity: &office{Code: "L"}, Keys: []string{"members\t" + memberKey(0).Row}})
}

// TestHoldersNamedTwice: a holder that its source names several times counts once, for the source's writers and for the holder's.
func TestHoldersNamedTwice(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	account, queue, err := connect(s, s.QueueName(t))
	assert.Check(t, err, queue.Create(ctx))
	table := harness.In(account.Table(s.TableName(t)), queue)
	assert.Check(t, table.Create(ctx))
	link := cityLink()
	link.Find, link.Holders = nil, func(*office) []tables.Key { return []tables.Key{memberKey(1), memberKey(1), memberKey(2)} }
	link.Properties, link.Copy = []string{"Office", "OfficeCity"}, func(o *office, m *member) {
		if o == nil {
			o = &office{}
		}
		m.Office, m.OfficeCity = o.Code, o.City
	}
	copies := denormalization.New("city", link, &denormalization.Options{Limit: 2})
	members := assert.Must[*patterns.Repository[member]](t)(patterns.NewRepository(table, memberSchema(), copies.Holder()))
	all := assert.Must[*patterns.Repository[office]](t)(patterns.NewRepository(table,
		patterns.Schema[office]{Name: "offices", Prefix: "office", Key: func(o *office) tables.Key { return officeKey(o.Code) }}, copies.Source()))
	for id := range 3 {
		assert.Check(t, members.Insert(ctx, &member{ID: id}))
	}
	assert.Check(t, all.Insert(ctx, &office{Code: "L", City: "London"}))
	for id, want := range []string{"", "London", "London"} {
		written := assert.Must[*member](t)(members.Update(ctx, memberKey(id), func(m *member) error { m.OfficeCity = "elsewhere"; return nil }))
		if stored := assert.Must[*member](t)(members.Get(ctx, memberKey(id))); written.OfficeCity != want || stored.OfficeCity != want {
			t.Errorf("member %d has %q, and in the table %q, want %q", id, written.OfficeCity, stored.OfficeCity, want)
		}
	}
}
