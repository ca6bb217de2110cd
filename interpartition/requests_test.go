package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counted is a process of a world whose requests are counted.
type counted struct {
	*process
	*world
	service  *storagetest.Service
	requests *storagetest.RequestCounter
}

func openCounted(t *testing.T, k kind) *counted {
	t.Helper()
	s := *storagetest.Open(t)
	return count(t, s, k)
}

func count(t *testing.T, s storagetest.Service, k kind) *counted {
	t.Helper()
	c := &counted{requests: &storagetest.RequestCounter{}}
	s.ClientOptions.PerRetryPolicies = append(slices.Clip(s.ClientOptions.PerRetryPolicies), c.requests)
	c.world, c.service = newWorld(t, &s, k), &s
	c.process = assert.Must[*process](t)(c.start(&s))
	return c
}

// step is a change of Jones, and what it does to her two copies.
type step struct {
	name string
	// before is not counted; it returns what do gets.
	before func() (*employee, error)
	do     func(*employee) error
	// The transactions that mark, as many that settle, and the requests before them, to read.
	marks, reads int
}

// none is for steps that read nothing before.
func none() (*employee, error) { return nil, nil }

// lifeOf are the changes in an entity's life. The copy in badge is a projection of the name.
func (c *counted) lifeOf(ctx context.Context, key tables.Key) []step {
	own := func() (*employee, error) { return c.repo.Get(ctx, key) }
	through := func() (*employee, error) {
		e, err := own()
		if err != nil {
			return nil, err
		}
		return c.email.In("Sales").Get(ctx, compoundkey.String(e.Email))
	}
	projected := func() (*employee, error) {
		e, err := own()
		if err != nil {
			return nil, err
		}
		return c.badge.Get(ctx, compoundkey.String(e.Badge))
	}
	insert := func(*employee) error { return c.repo.Insert(ctx, jones()) }
	replace := func(edit func(*employee)) func(*employee) error {
		return func(e *employee) error {
			edit(e)
			return c.repo.Replace(ctx, e)
		}
	}
	rename := func(e *employee) { e.Name += " Smith" }
	merge := func(e *employee) error {
		rename(e)
		return c.repo.Merge(ctx, e, "Name")
	}
	remove := func(e *employee) error { return c.repo.Delete(ctx, e) }
	return []step{
		{"Insert", none, insert, 2, 0},
		{"Replace", own, replace(rename), 2, 0},
		{"Replace of what the projection leaves out", own, replace(func(e *employee) { e.ID += 0; e.Email = "smith@contoso.com" }), 1, 0},
		{"Replace of two keys", own, replace(func(e *employee) { e.Email, e.Badge = "june@contoso.com", "B-2" }), 2, 0},
		{"Merge", own, merge, 2, 1},
		{"Replace of what was read through an index", through, replace(rename), 2, 0},
		{"Merge of what was read through an index", through, merge, 2, 1},
		{"Merge of what was read through a projection", projected, merge, 2, 1},
		{"Upsert", none, func(*employee) error { return c.repo.Upsert(ctx, jones()) }, 2, 1},
		{"Update", none, func(*employee) error {
			_, err := c.repo.Update(ctx, key, func(e *employee) error { rename(e); return nil })
			return err
		}, 2, 1},
		{"ReplaceUnconditional", none, func(*employee) error { return c.repo.ReplaceUnconditional(ctx, jones()) }, 2, 1},
		{"Delete", own, remove, 2, 0},
		{"Insert again", none, insert, 2, 0},
		{"Delete of what was read through an index", through, remove, 2, 0},
		{"Insert again", none, insert, 2, 0},
		{"Delete of what was read through a projection", projected, remove, 2, 1},
		{"Insert again", none, insert, 2, 0},
		{"DeleteUnconditional", none, func(*employee) error { return c.repo.DeleteUnconditional(ctx, key) }, 2, 1},
	}
}

// TestRequestCounts holds what the package comment and docs/reference/costs.md say of changes, with two indexes.
func TestRequestCounts(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kind{{}, {unique: true}} {
		t.Run(k.String(), func(t *testing.T) {
			c := openCounted(t, k)
			for _, step := range c.lifeOf(ctx, keyOf(jones())) {
				e, err := step.before()
				if err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				c.requests.Reset()
				if err := step.do(e); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if got, want := c.requests.Count(), step.reads+2*step.marks+1; got != want {
					t.Errorf("%s: %d requests, want %d: %v", step.name, got, want, c.requests.Kinds())
				}
			}
		})
	}
}

// roundTrip is how long each request takes in roundTrips.
const roundTrip = time.Second / 10

// slowly makes each request take a round trip.
func slowly(s *storagetest.Service) *storagetest.Service {
	return s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		return harness.Transport(func(req *http.Request) (*http.Response, error) {
			time.Sleep(roundTrip)
			return inner.Do(req)
		})
	})
}

// TestRoundTrips: one change of one index is 3 requests, of which its caller waits for 2, one after another; so is a transaction of 50 entities.
// Partitions of indexes are written at the same time.
func TestRoundTrips(t *testing.T) {
	const together = 50
	alone := func(change func(ctx context.Context, repo *patterns.Repository[employee], e *employee) error) func(context.Context, *patterns.Repository[employee], []*employee) error {
		return func(ctx context.Context, repo *patterns.Repository[employee], all []*employee) error {
			return change(ctx, repo, all[0])
		}
	}
	staged := func(stage func(repo *patterns.Repository[employee], x *tables.Transaction, e *employee)) func(context.Context, *patterns.Repository[employee], []*employee) error {
		return func(ctx context.Context, repo *patterns.Repository[employee], all []*employee) error {
			x := repo.Table().NewTransaction()
			for _, e := range all {
				stage(repo, x, e)
			}
			return second(x.Commit(ctx))
		}
	}
	changes := []struct {
		name string
		n    int // entities
		do   func(context.Context, *patterns.Repository[employee], []*employee) error
	}{
		{"Insert", 1, alone(func(ctx context.Context, repo *patterns.Repository[employee], e *employee) error {
			return repo.Insert(ctx, e)
		})},
		{"Replace", 1, alone(func(ctx context.Context, repo *patterns.Repository[employee], e *employee) error {
			e.Name += "!"
			return repo.Replace(ctx, e)
		})},
		{"Replace of the key", 1, alone(func(ctx context.Context, repo *patterns.Repository[employee], e *employee) error {
			e.Email, e.Badge = "new", "new"
			return repo.Replace(ctx, e)
		})},
		{"Delete", 1, alone(func(ctx context.Context, repo *patterns.Repository[employee], e *employee) error {
			return repo.Delete(ctx, e)
		})},
		{"a set of inserts", together, staged((*patterns.Repository[employee]).StageInsert)},
		{"a set of replacements", together, staged(func(repo *patterns.Repository[employee], x *tables.Transaction, e *employee) {
			e.Email, e.Badge = e.Email+"x", e.Badge+"x"
			repo.StageReplace(x, e)
		})},
		{"a set of deletes", together, staged((*patterns.Repository[employee]).StageDelete)},
	}
	for _, unique := range []bool{false, true} {
		for partitions := 1; partitions <= 2; partitions++ {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				var requests storagetest.RequestCounter
				counting := slowly(s)
				counting.ClientOptions.PerRetryPolicies = append(slices.Clip(s.ClientOptions.PerRetryPolicies), &requests)
				w := newWorld(t, s, kind{})
				p := assert.Must[*process](t)((&world{kind: kind{background: true}, table: w.table, other: w.other}).start(counting))
				indexes := []patterns.Pattern[employee]{newEither(unique, "by-email", emailOf, nil),
					newEither(unique, "by-badge", func(e *employee) compoundkey.Part { return text(e.Badge) }, nil)}
				repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.store.Table(w.other), staffSchema("other"), indexes[:partitions]...))
				var all []*employee
				for _, change := range changes {
					if change.name == "Insert" || change.name == "a set of inserts" {
						all = nil
						for i := range change.n {
							all = append(all, &employee{Department: "Sales", ID: i, Email: fmt.Sprint("e", i), Badge: fmt.Sprint("b", i)})
						}
					}
					requests.Reset()
					began := time.Now()
					if err := change.do(t.Context(), repo, all); err != nil {
						t.Fatalf("%s: %v", change.name, err)
					}
					trips := time.Since(began) / roundTrip
					time.Sleep(time.Second) // what is left is done in the background
					if got, want := requests.Count(), 2*partitions+1; got != want || trips != 2 {
						t.Errorf("%s, unique %v: %d requests, want %d; %d round trips: %v", change.name, unique, got, want, trips, requests.Kinds())
					}
				}
			})
		}
	}
}

// each reads to the end, and returns an error unless there are n entities.
func each(n int, all iter.Seq2[*employee, error]) error {
	found := 0
	for _, err := range all {
		if err != nil {
			return err
		}
		found++
	}
	if found != n {
		return fmt.Errorf("%d entities, want %d", found, n)
	}
	return nil
}

// TestRequestCountsOfReads holds what they say of reads.
func TestRequestCountsOfReads(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kind{{}, {unique: true}} {
		c := openCounted(t, k)
		for id := range 3 {
			e := jones()
			e.ID, e.Email, e.Badge = id, fmt.Sprintf("jones%d@contoso.com", id), fmt.Sprint("B-", id)
			if err := c.repo.Insert(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		badge, email := compoundkey.String("B-1"), compoundkey.String("jones1@contoso.com")
		for _, read := range []struct {
			name string
			want int
			do   func() error
		}{
			{"Get", 1, func() error { return second(c.email.In("Sales").Get(ctx, email)) }},
			{"Get of nobody", 1, func() error {
				if _, err := c.email.In("Sales").Get(ctx, compoundkey.String("nobody")); !errors.Is(err, tables.ErrNotFound) {
					return fmt.Errorf("nobody: %w", err)
				}
				return nil
			}},
			{"GetFull", 2, func() error { return second(c.badge.GetFull(ctx, badge)) }},
			{"All", 1, func() error { return each(1, c.email.In("Sales").All(ctx, email)) }},
			{"Range", 1, func() error { return each(3, c.email.In("Sales").Range(ctx)) }},
			{"Query", 1, func() error { return each(3, c.badge.Query(compoundkey.Prefix(compoundkey.String("B"))).All(ctx)) }},
		} {
			if read.name == "GetFull" && !k.unique {
				continue
			}
			c.requests.Reset()
			if err := read.do(); err != nil {
				t.Fatalf("%s: %v", read.name, err)
			}
			if got := c.requests.Count(); got != read.want {
				t.Errorf("%v: %s: %d requests, want %d: %v", k, read.name, got, read.want, c.requests.Kinds())
			}
		}
	}
}

// TestRequestCountsOfMarkedReads: a read of a copy that is marked costs a request more, and if no entity has the key two.
func TestRequestCountsOfMarkedReads(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kind{{}, {unique: true}, {unique: true, spread: true}} {
		for dies, want := range map[storagetest.Mode]int{storagetest.DiesBefore: 3, storagetest.DiesAfter: 2} {
			c := count(t, *storagetest.Simulator(t, nil), k)
			dying, _ := c.service.Faulty(c.atCommit(dies))
			if err := assert.Must[*process](t)(c.start(dying)).repo.Insert(ctx, jones()); err == nil {
				t.Fatal("the process did not die")
			}
			email, badge, found := c.email.In("Sales"), text(jones().Badge), 3-want
			reads := map[string]func() error{
				"Get":          func() error { return each(found, gotten(email.Get(ctx, emailOf(jones())))) },
				"Get by badge": func() error { return each(found, gotten(c.badge.Get(ctx, badge))) },
				"GetFull":      func() error { return each(found, gotten(c.badge.GetFull(ctx, badge))) },
				"All":          func() error { return each(found, c.badge.All(ctx, badge)) },
			}
			if !k.spread {
				reads["Range"] = func() error { return each(found, email.Range(ctx)) }
				reads["Query"] = func() error {
					return each(found, email.Query().Where(tables.Eq("Name", "June Jones")).All(ctx))
				}
			}
			for name, read := range reads {
				c.requests.Reset()
				if err := read(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if got := c.requests.Count(); got != want {
					t.Errorf("%v: %s: %d requests, want %d: %v", k, name, got, want, c.requests.Kinds())
				}
			}
		}
	}
}

// TestRequestCountsAfterMarkedReads: an entity that was read through a marked copy is changed as one that was read by its own key.
func TestRequestCountsAfterMarkedReads(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(c *counted, e *employee) error{
		"Replace": func(c *counted, e *employee) error { e.Name = "June Smith"; return c.repo.Replace(ctx, e) },
		"Delete":  func(c *counted, e *employee) error { return c.repo.Delete(ctx, e) },
	} {
		c := count(t, *storagetest.Simulator(t, nil), kind{unique: true})
		dying, _ := c.service.Faulty(c.atCommit(storagetest.DiesAfter))
		if err := assert.Must[*process](t)(c.start(dying)).repo.Insert(ctx, jones()); err == nil {
			t.Fatal("the process did not die")
		}
		e := assert.Must[*employee](t)(c.email.In("Sales").Get(ctx, emailOf(jones())))
		if own := assert.Must[*employee](t)(c.repo.Get(ctx, keyOf(e))); own.ETag != e.ETag {
			t.Errorf("the index gives ETag %s, the entity has %s", e.ETag, own.ETag)
		}
		c.requests.Reset()
		assert.Check(t, change(c, e))
		if got, want := c.requests.Count(), 2+1+2; got != want {
			t.Errorf("%s: %d requests, want %d: %v", name, got, want, c.requests.Kinds())
		}
		if _, err := c.check(ctx, c.service); err != nil {
			t.Error(err)
		}
	}
}

// atCommit is a fault at the commit of an insert, after the mark in the same table.
func (w *world) atCommit(fault storagetest.Injector) storagetest.Injector {
	return storagetest.If(func(call storagetest.Call) bool {
		return call.Kind == storagetest.InsertEntity && call.Resource == w.table
	}, storagetest.OnIndex(1, fault))
}

// gotten yields what a Get has returned.
func gotten[T any](v *T, err error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if !errors.Is(err, tables.ErrNotFound) {
			yield(v, err)
		}
	}
}

// TestRequestCountsOfTakenKeys: a change that Unique refuses costs the marks up to that of the taken key, a look at whose that is, and what
// gives the other key back.
func TestRequestCountsOfTakenKeys(t *testing.T) {
	ctx := context.Background()
	c := openCounted(t, kind{unique: true})
	if err := c.repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	c.requests.Reset()
	if err := c.repo.Insert(ctx, &employee{Department: "Sales", ID: 5, Name: "Otto", Email: "otto@contoso.com", Badge: jones().Badge}); !errors.Is(err, tables.ErrDuplicate) {
		t.Fatal(err)
	}
	// Two marks, one of which is refused, the row that is there; the entity, and the delete of the other mark.
	if got, want := c.requests.Count(), 2+1+2; got != want {
		t.Errorf("%d requests, want %d: %v", got, want, c.requests.Kinds())
	}
}
