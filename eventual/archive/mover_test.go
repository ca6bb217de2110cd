package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// everyOffice runs a test with each kind of destination.
func everyOffice(t *testing.T, o office, test func(t *testing.T, s *storagetest.Service, o *office)) {
	for _, toBlobs := range []bool{false, true} {
		t.Run(map[bool]string{false: "repository", true: "container"}[toBlobs], func(t *testing.T) {
			s := storagetest.Open(t)
			o.toBlobs = toBlobs
			test(t, s, newOffice(t, s, o))
		})
	}
}

// counting returns the service with a counter of the requests of its clients.
func counting(s *storagetest.Service) (*storagetest.Service, *storagetest.RequestCounter) {
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append([]policy.Policy{counter}, s.ClientOptions.PerRetryPolicies...)
	return &counted, counter
}

// drainMoves has a process handle what is visible, and returns the worker's counters.
func drainMoves(t testing.TB, p *officer) eventual.WorkerStats {
	t.Helper()
	return assert.Must[eventual.WorkerStats](t)(p.work(t.Context(), 5))
}

// wantPlaces fails unless a clerk is where it should be, in that state; "" is nowhere.
func wantPlaces(t testing.TB, p *officer, c *clerk, current, archived string) places {
	t.Helper()
	found := assert.Must[places](t)(p.find(t.Context(), c))
	for i, at := range []*clerk{found.current, found.archived} {
		want := []string{current, archived}[i]
		if (at == nil) != (want == "") || at != nil && at.state() != want {
			t.Fatalf("%v; want %q and %q", found, current, archived)
		}
	}
	assert.Check(t, p.checkRows(t.Context()))
	return found
}

// emptyPolls is how many polls of a Drain find nothing: the one that ends a round, and the round after it.
const emptyPolls = 2

// TestMoverMoves: the entity is there, whole, and its old rows are gone; it costs what the documentation says.
func TestMoverMoves(t *testing.T) {
	everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
		counted, counter := counting(s)
		p, c := o.open(t, counted), june()
		assert.Check(t, p.current.Insert(t.Context(), c))
		counter.Reset()
		assert.Check(t, p.mover.Move(t.Context(), c))
		if n := counter.Reset(); n != 1 {
			t.Errorf("%d requests to ask", n)
		}
		if stats := drainMoves(t, p); stats.Handled != 1 || stats.Failed != 0 {
			t.Errorf("%+v", stats)
		}
		if n := counter.Count(); n != 7+emptyPolls {
			t.Errorf("%d requests: %v", n, counter.Kinds())
		}
		found := wantPlaces(t, p, c, "", "first: hired")
		if a := found.archived; a.Department != c.Department || a.ID != c.ID || a.Email != c.Email {
			t.Errorf("archived as %+v", a)
		}
		if !o.toBlobs && (found.archived.Incarnation() == "" || found.archived.Incarnation() == c.Incarnation()) {
			t.Errorf("incarnation %q became %q", c.Incarnation(), found.archived.Incarnation())
		}
	})
}

// TestMoverAsks: what cannot be moved is refused before any request, and what was read in any way can be.
func TestMoverAsks(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := counting(s)
	p := newOffice(t, s, office{}).open(t, counted)
	assert.Check(t, p.current.Insert(ctx, june()))
	foreign := &clerk{Department: "Sales", ID: 9} // written by another program
	assert.Check(t, p.current.Table().Entities().Upsert(ctx, &tables.Entity{Key: clerkKey(foreign), Properties: tables.Properties{
		{Name: "Department", Value: tables.String("Sales")}, {Name: "ID", Value: tables.Int64(9)}, {Name: "Email", Value: tables.String("x")},
		{Name: "Note", Value: tables.String("foreign")}}}))
	read := assert.Must[*clerk](t)(p.current.Get(ctx, clerkKey(foreign)))
	counter.Reset()
	for _, c := range []*clerk{nil, june(), read} {
		wantKind(t, p.mover.Move(ctx, c), tables.ErrInvalid)
	}
	if n := counter.Count(); n != 0 {
		t.Errorf("%d requests", n)
	}
	assert.Check(t, p.current.Replace(ctx, read))
	assert.Check(t, p.mover.Move(ctx, read))
	for c, err := range p.current.Query().Partition("Sales").Select("Note").All(ctx) {
		assert.Check(t, err)
		assert.Check(t, p.mover.Move(ctx, c)) // the second time for one of them
	}
	drainMoves(t, p)
	wantPlaces(t, p, june(), "", "first: hired")
}

// TestNewMoverRefuses: what cannot work is known at once.
func TestNewMoverRefuses(t *testing.T) {
	s := storagetest.Open(t)
	o := newOffice(t, s, office{})
	p := o.open(t, s)
	to, blobs := archive.ToRepository(p.archive, nil), blobstorage.Container(p.queue.Account(), o.container)
	type pointed struct {
		*Embedded
		ID string
	}
	shared := assert.Must[*patterns.Repository[pointed]](t)(patterns.NewRepository(p.archive.Table(),
		patterns.Schema[pointed]{Key: func(v *pointed) tables.Key { return tables.Key{Partition: "pointed", Row: v.ID} }}))
	sealed := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(p.archive.Table(), patterns.Schema[clerk]{Key: clerkKey}, sealing{}))
	streamed := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(p.archive.Table(), patterns.Schema[clerk]{Key: clerkKey}, referring{}))
	for name, err := range map[string]error{
		"the queue is nil":                                        second(archive.New[clerk](nil, "m", p.current, to, nil)),
		"the mover's name is empty":                               second(archive.New(p.queue, "", p.current, to, nil)),
		"a control character":                                     second(archive.New(p.queue, "m\x00", p.current, to, nil)),
		"the source repository is nil":                            second(archive.New(p.queue, "m", nil, to, nil)),
		"the destination is nil; use ToRepository or ToContainer": second(archive.New(p.queue, "m", p.current, nil, nil)),
		"the repository is nil":                                   second(archive.New(p.queue, "m", p.current, archive.ToRepository[clerk](nil, nil), nil)),
		"the container is nil":                                    second(archive.New(p.queue, "m", p.current, archive.ToContainer(nil, clerkBlob), nil)),
		"the function that names the blobs is nil":                second(archive.New(p.queue, "m", p.current, archive.ToContainer[clerk](blobs, nil), nil)),
		"through a pointer":                                       second(archive.New(p.queue, "m", shared, archive.ToRepository(shared, nil), nil)),
		`pattern "sealing" encrypt`:                               second(archive.New(p.queue, "m", sealed, archive.ToContainer(blobs, clerkBlob), nil)),
		`pattern "referring" keeps`:                               second(archive.New(p.queue, "m", streamed, archive.ToContainer(blobs, clerkBlob), nil)),
		`"sealing" encrypts properties, and the destination`:      second(archive.New(p.queue, "m", sealed, to, nil)),
		"deleted with the entity, and the destination":            second(archive.New(p.queue, "m", streamed, to, nil)),
		"has a handler already":                                   second(archive.New(p.queue, "archive-clerks", p.current, to, nil)),
	} {
		if wantKind(t, err, tables.ErrWiring); !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	_, err := archive.New(p.queue, "m", p.current, to, nil)
	assert.Check(t, err)
}

// Embedded holds a Meta.
type Embedded struct{ tables.Meta }

// sealing stands for a pattern that encrypts.
type sealing struct{}

func (sealing) Attach(driver.Host, *clerk) (driver.Implementation, error) {
	return transforming("sealing", driver.Transform{Stage: driver.StageEncrypt}), nil
}

// transforming is a pattern that leaves properties as they are.
func transforming(name string, t driver.Transform) driver.Implementation {
	t.Store = func(_ context.Context, _ *driver.Change, p tables.Properties) (tables.Properties, error) {
		return p, nil
	}
	t.Load = func(_ context.Context, _ driver.Reading, p tables.Properties) (tables.Properties, error) {
		return p, nil
	}
	return driver.Implementation{Name: name, Transform: &t}
}

// referring stands for a pattern whose entities hold references as they are read.
type referring struct{}

func (referring) Attach(driver.Host, *clerk) (driver.Implementation, error) {
	return transforming("referring", driver.Transform{Stage: driver.StageSpill, Streams: true}), nil
}

func second[T any](_ T, err error) error { return err }

// between runs an action just after the copy was written, once: before the entity is deleted. A blob is pending before it is
// written.
func between(s *storagetest.Service, o *office, act func()) *storagetest.Service {
	if o.toBlobs {
		return hooked(s, hook{storagetest.PutBlob, 1, true, act})
	}
	return hooked(s, hook{storagetest.Batch, 0, true, act})
}

// TestMoverConcurrentWriters: what somebody else does to the entity between copy and delete counts.
func TestMoverConcurrentWriters(t *testing.T) {
	for name, test := range map[string]struct {
		act               func(ctx context.Context, p *officer, c *clerk) error
		current, archived string
		requests          [2]int // to a repository, to a container
	}{
		"update": {func(ctx context.Context, p *officer, c *clerk) error {
			_, err := p.current.Update(ctx, clerkKey(c), rewrite("promoted"))
			return err
		}, "", "first: promoted", [2]int{7 + 5, 7 + 6}},
		"delete": {func(ctx context.Context, p *officer, c *clerk) error {
			return p.current.DeleteUnconditional(ctx, clerkKey(c))
		}, "", "", [2]int{5 + 6, 7 + 6}}, // refused at everything, and removes the copy
		"re-insert": {func(ctx context.Context, p *officer, c *clerk) error {
			err := p.current.DeleteUnconditional(ctx, clerkKey(c))
			return errors.Join(err, p.current.Insert(ctx, &clerk{Department: c.Department, ID: c.ID, Email: c.Email, Life: "second"}))
		}, "second: ", "", [2]int{5 + 6, 7 + 6}},
		"copy written again": {func(ctx context.Context, p *officer, c *clerk) error {
			if p.toBlobs {
				return p.touchBlob(ctx, c)
			}
			return second(p.archive.Update(ctx, clerkKey(c), func(*clerk) error { return nil }))
		}, "", "first: hired", [2]int{7, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
				ctx, plain, c := t.Context(), o.open(t, s), june()
				assert.Check(t, plain.current.Insert(ctx, c))
				assert.Check(t, plain.mover.Move(ctx, c))
				counted, counter := counting(between(s, o, func() {
					if err := test.act(ctx, plain, c); err != nil {
						t.Error(err)
					}
				}))
				p := o.open(t, counted)
				if stats := drainMoves(t, p); stats.Handled != 1 || stats.Failed != 0 {
					t.Errorf("%+v", stats)
				}
				if n, want := counter.Count()-emptyPolls, test.requests[map[bool]int{true: 1}[o.toBlobs]]; n != want {
					t.Errorf("%d requests, want %d: %v", n, want, counter.Kinds())
				}
				wantPlaces(t, plain, c, test.current, test.archived)
			})
		})
	}
}

// touchBlob gives a clerk's blob another ETag.
func (p *officer) touchBlob(ctx context.Context, c *clerk) error {
	client := blobstorage.Container(p.queue.Account(), p.container).NewBlobClient(clerkBlob(c))
	answer, err := client.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	_, err = client.SetMetadata(ctx, maps.Clone(answer.Metadata), nil)
	return err
}

// TestMoverRedelivery: a message that comes again or late, in whatever state its entity is, does no harm.
func TestMoverRedelivery(t *testing.T) {
	for name, test := range map[string]struct {
		since             func(ctx context.Context, p *officer, c *clerk) error
		current, archived string
	}{
		"done":    {func(context.Context, *officer, *clerk) error { return nil }, "", "first: hired"},
		"deleted": {func(ctx context.Context, p *officer, c *clerk) error { return p.clear(ctx, c) }, "", ""},
		"inserted again": {func(ctx context.Context, p *officer, c *clerk) error {
			return p.current.Insert(ctx, &clerk{Department: c.Department, ID: c.ID, Email: c.Email, Life: "second", Note: "hired"})
		}, "second: hired", "first: hired"},
		"moved back": {func(ctx context.Context, p *officer, c *clerk) error {
			if p.toBlobs {
				found, err := p.find(ctx, c)
				if err != nil {
					return err
				}
				return errors.Join(p.current.Insert(ctx, found.archived), p.clear(ctx, c))
			}
			back, err := archive.New(p.queue, "back", p.archive, archive.ToRepository(p.current, nil), nil)
			if err != nil {
				return err
			}
			found, err := p.find(ctx, c)
			if err != nil {
				return err
			}
			if err := back.Move(ctx, found.archived); err != nil {
				return err
			}
			_, err = p.work(ctx, 5)
			return err
		}, "first: hired", ""},
	} {
		t.Run(name, func(t *testing.T) {
			everyOffice(t, office{}, func(t *testing.T, s *storagetest.Service, o *office) {
				ctx := t.Context()
				counted, counter := counting(s)
				p, c := o.open(t, counted), june()
				assert.Check(t, p.current.Insert(ctx, c))
				assert.Check(t, p.mover.Move(ctx, c))
				drainMoves(t, p)
				assert.Check(t, test.since(ctx, p, c))
				again := *c
				assert.Check(t, p.mover.Move(ctx, &again)) // the same message once more
				counter.Reset()
				if stats := drainMoves(t, p); stats.Failed != 0 {
					t.Errorf("%+v", stats)
				}
				if n := counter.Count() - emptyPolls; n != 5 {
					t.Errorf("%d requests: %v", n, counter.Kinds())
				}
				wantPlaces(t, p, c, test.current, test.archived)
			})
		})
	}
}

// clear removes a clerk from the archive.
func (p *officer) clear(ctx context.Context, c *clerk) error {
	if p.toBlobs {
		return second(blobstorage.Container(p.queue.Account(), p.container).NewBlobClient(clerkBlob(c)).Delete(ctx, nil))
	}
	return p.archive.DeleteUnconditional(ctx, clerkKey(c))
}

// TestMoverCrash: after a crash at any request, the next worker brings it to its end, also when the entity was changed
// meanwhile.
func TestMoverCrash(t *testing.T) {
	for i := range 7 {
		for _, mode := range []storagetest.Mode{storagetest.DiesBefore, storagetest.DiesAfter} {
			for _, update := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v at %d, update %v", mode, i, update), func(t *testing.T) {
					s := storagetest.Simulator(t, nil)
					o := newOffice(t, s, office{})
					ctx, plain, c := t.Context(), o.open(t, s), june()
					assert.Check(t, plain.current.Insert(ctx, c))
					assert.Check(t, plain.mover.Move(ctx, c))
					faulty, faults := s.WithRetries(0).Faulty(storagetest.OnIndex(i, storagetest.Always(mode)))
					dying, cancel := faults.Context(ctx)
					defer cancel()
					_, _ = o.open(t, faulty).work(dying, 5)
					if !faults.Dead() {
						t.Fatal("nobody died")
					}
					want := "first: hired"
					if update {
						if _, err := plain.current.Update(ctx, clerkKey(c), rewrite("promoted")); err == nil {
							want = "first: promoted"
						} else if !errors.Is(err, tables.ErrNotFound) {
							t.Fatal(err)
						}
					}
					assert.Check(t, o.recover(ctx, s))
					wantPlaces(t, plain, c, "", want)
				})
			}
		}
	}
}

// TestMoverRetryCost: what an earlier try has left costs what the documentation says.
func TestMoverRetryCost(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		s := storagetest.Simulator(t, nil)
		o := newOffice(t, s, office{toBlobs: toBlobs})
		ctx, plain, c := t.Context(), o.open(t, s), june()
		assert.Check(t, plain.current.Insert(ctx, c))
		assert.Check(t, plain.mover.Move(ctx, c))
		faulty, faults := s.Faulty(storagetest.OnIndex(map[bool]int{false: 2, true: 4}[toBlobs], storagetest.Always(storagetest.DiesAfter))) // the copy
		dying, cancel := faults.Context(ctx)
		defer cancel()
		_, _ = o.open(t, faulty).work(dying, 5)
		wantPlaces(t, plain, c, "first: hired", "first: hired")
		s.Wait(moverVisibility)
		counted, counter := counting(s)
		drainMoves(t, o.open(t, counted))
		if n := counter.Count() - emptyPolls; n != map[bool]int{false: 9, true: 8}[toBlobs] {
			t.Errorf("%d requests: %v", n, counter.Kinds())
		}
		wantPlaces(t, plain, c, "", "first: hired")
	}
}

// TestMoverReplace: who has the copy's key at the destination stays, unless the options say otherwise.
func TestMoverReplace(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		t.Run(fmt.Sprint(replaces), func(t *testing.T) {
			everyOffice(t, office{replaces: replaces}, func(t *testing.T, s *storagetest.Service, o *office) {
				ctx, p, c := t.Context(), o.open(t, s), june()
				assert.Check(t, p.current.Insert(ctx, c))
				assert.Check(t, p.mover.Move(ctx, c))
				drainMoves(t, p)
				next := &clerk{Department: c.Department, ID: c.ID, Email: "second@contoso.com", Life: "second", Note: "hired"}
				assert.Check(t, p.current.Insert(ctx, next))
				assert.Check(t, p.mover.Move(ctx, next))
				stats := drainMoves(t, p)
				if replaces {
					if stats.Failed != 0 {
						t.Errorf("%+v", stats)
					}
					wantPlaces(t, p, c, "", "second: hired")
					return
				}
				wantPlaces(t, p, c, "second: hired", "first: hired")
				poisoned := entries(t, p.queue)
				if len(poisoned) != 1 || !strings.Contains(poisoned[0].Reason, tables.ErrExists.Error()) {
					t.Fatalf("%+v", poisoned)
				}
				assert.Check(t, p.clear(ctx, c))
				if n := assert.Must[int](t)(p.queue.Poison().Requeue(ctx, nil)); n != 1 {
					t.Errorf("%d requeued", n)
				}
				drainMoves(t, p)
				wantPlaces(t, p, c, "", "second: hired")
			})
		})
	}
}

// TestMoverRekeys: into another partition of the same table; and never onto itself.
func TestMoverRekeys(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	o := newOffice(t, s, office{})
	p, c := o.open(t, s), june()
	left := assert.Must[*archive.Mover[clerk]](t)(archive.New(p.queue, "left", p.current, archive.ToRepository(p.current, func(c *clerk) { c.Department = "Left" }), nil))
	nowhere := assert.Must[*archive.Mover[clerk]](t)(archive.New(p.queue, "nowhere", p.current,
		archive.ToRepository(o.open(t, s).current, nil), &archive.Options{Replace: true}))
	assert.Check(t, p.current.Insert(ctx, c))
	if err := nowhere.Move(ctx, c); !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), "source and destination of the entity are the same") {
		t.Error(err)
	}
	wantPlaces(t, p, c, "first: hired", "")
	assert.Check(t, left.Move(ctx, c))
	drainMoves(t, p)
	wantPlaces(t, p, c, "", "")
	moved := &clerk{Department: "Left", ID: c.ID}
	wantPlaces(t, p, moved, "first: hired", "")
}

// TestMoverReachesOut: an entity with rows outside of its partition takes them along, and away.
func TestMoverReachesOut(t *testing.T) {
	everyOffice(t, office{reachesOut: true}, func(t *testing.T, s *storagetest.Service, o *office) {
		ctx, p, c := t.Context(), o.open(t, s), june()
		assert.Check(t, p.current.Insert(ctx, c))
		assert.Check(t, p.checkRows(ctx))
		assert.Check(t, p.mover.Move(ctx, c))
		drainMoves(t, p)
		wantPlaces(t, p, c, "", "first: hired")
		if n := assert.Must[int](t)(p.queue.Length(ctx)); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

// TestMoverOtherAccount: the archive may be anywhere.
func TestMoverOtherAccount(t *testing.T) {
	ctx, s, far := t.Context(), storagetest.Simulator(t, nil), storagetest.Simulator(t, &storagetest.SimulatorOptions{Account: "fabrikam"})
	p, there, c := newOffice(t, s, office{}).open(t, s), newOffice(t, far, office{}).open(t, far), june()
	mover := assert.Must[*archive.Mover[clerk]](t)(archive.New(p.queue, "far", p.current, archive.ToRepository(there.current, nil), nil))
	assert.Check(t, p.current.Insert(ctx, c))
	assert.Check(t, mover.Move(ctx, c))
	drainMoves(t, p)
	wantPlaces(t, p, c, "", "")
	wantPlaces(t, there, c, "first: hired", "")
}

// TestMoverUnknown: while nobody knows what became of a request, the message is neither deleted nor shown.
func TestMoverUnknown(t *testing.T) {
	for _, kind := range []storagetest.Kind{storagetest.Batch, storagetest.PutBlob} {
		t.Run(string(kind), func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			o := newOffice(t, s, office{toBlobs: kind == storagetest.PutBlob})
			ctx, plain, c := t.Context(), o.open(t, s), june()
			assert.Check(t, plain.current.Insert(ctx, c))
			assert.Check(t, plain.mover.Move(ctx, c))
			// The copy's first request is lost for good; so is what would tell about it.
			faulty, _ := s.WithRetries(0).Faulty(storagetest.On(kind, storagetest.Once(storagetest.Always(storagetest.Before500))))
			if stats := drainMoves(t, o.open(t, faulty)); stats.Handled != 0 || stats.Failed != 0 {
				t.Errorf("%+v", stats)
			}
			wantPlaces(t, plain, c, "first: hired", "")
			if stats := drainMoves(t, plain); stats != (eventual.WorkerStats{Polls: 1, EmptyPolls: 1}) {
				t.Errorf("the message is visible: %+v", stats)
			}
			s.Wait(moverVisibility)
			drainMoves(t, plain)
			wantPlaces(t, plain, c, "", "first: hired")
		})
	}
}

// TestMoverReplaceKeepsOccupant: where the entity cannot be written over what has its key, that stays.
func TestMoverReplaceKeepsOccupant(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, nil)
	a := q.Account()
	from, to := a.Table(s.TableName(t)), a.Table(s.TableName(t))
	assert.Check(t, from.Create(t.Context()))
	assert.Check(t, to.Create(t.Context()))
	source := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(from, patterns.Schema[clerk]{Key: clerkKey}))
	index := intrapartition.NewUnique("email", func(c *clerk) string { return c.Email }, nil)
	former := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(to, patterns.Schema[clerk]{Key: clerkKey}, index))
	m := assert.Must[*archive.Mover[clerk]](t)(archive.New(q, "a", source, archive.ToRepository(former, nil), &archive.Options{Replace: true}))
	occupant := &clerk{Department: "Sales", ID: 223, Email: "old@contoso.com", Note: "occupant"}
	assert.Check(t, former.Insert(t.Context(), occupant))
	assert.Check(t, former.Insert(t.Context(), &clerk{Department: "Sales", ID: 9, Email: "june@contoso.com", Note: "third"}))
	v := june()
	assert.Check(t, source.Insert(t.Context(), v))
	assert.Check(t, m.Move(t.Context(), v))
	drain(t, q)
	t.Log(entries(t, q)[0].Reason)
	_, atSource := source.Get(t.Context(), clerkKey(v))
	got, err := former.Get(t.Context(), clerkKey(v))
	if err != nil {
		t.Errorf("the occupant is gone (%v), and the entity is still at the source (%v): nothing was written over it", err, atSource)
	}
	_ = got
}

// TestQueuesThatNobodyMade: a queue that is nil or the zero one is refused, not by a panic.
func TestQueuesThatNobodyMade(t *testing.T) {
	account := newQueue(t, storagetest.Simulator(t, nil), nil).Account()
	plain := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(account.Table("Clerks"), patterns.Schema[clerk]{Key: clerkKey}))
	for what, q := range map[string]*eventual.Queue{"nil": nil, "zero": {}} {
		t.Run(what, func(t *testing.T) {
			wantKind(t, second(archive.New(q, "m", plain, archive.ToRepository(plain, nil), nil)), tables.ErrWiring)
		})
	}
}
