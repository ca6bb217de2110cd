package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counted is a process of a world whose requests are counted.
type counted struct {
	*process
	*world
	requests *storagetest.RequestCounter
}

func openCounted(t *testing.T, k kind) *counted {
	t.Helper()
	s := *storagetest.Open(t)
	c := &counted{requests: &storagetest.RequestCounter{}}
	s.ClientOptions.PerRetryPolicies = append(slices.Clip(s.ClientOptions.PerRetryPolicies), c.requests)
	c.world = newWorld(t, &s, k)
	c.process = harness.Must[*process](t)(c.start(&s))
	return c
}

// step is a change of Jones, and what it does to her two copies.
type step struct {
	name string
	// before is not counted; it returns what do gets.
	before func() (*employee, error)
	do     func(*employee) error
	// The copies that stay under their keys, come and go, and the requests that the change makes to read first.
	stay, come, gone, reads int
}

// none is for steps that read nothing before.
func none() (*employee, error) { return nil, nil }

// lifeOf are the changes in an entity's life.
func (c *counted) lifeOf(ctx context.Context, key tables.Key) []step {
	own := func() (*employee, error) { return c.repo.Get(ctx, key) }
	through := func() (*employee, error) {
		e, err := own()
		if err != nil {
			return nil, err
		}
		return c.email.In("Sales").Get(ctx, compoundkey.String(e.Email))
	}
	insert := func(*employee) error { return c.repo.Insert(ctx, jones()) }
	replace := func(edit func(*employee)) func(*employee) error {
		return func(e *employee) error {
			edit(e)
			return c.repo.Replace(ctx, e)
		}
	}
	rename := func(e *employee) { e.Name += " Smith" }
	return []step{
		{"Insert", none, insert, 0, 2, 0, 0},
		{"Replace", own, replace(rename), 2, 0, 0, 0},
		{"Replace of a key", own, replace(func(e *employee) { e.Email = "smithj@contoso.com" }), 1, 1, 1, 0},
		{"Replace of two keys", own, replace(func(e *employee) { e.Email, e.Badge = "june@contoso.com", "B-2" }), 0, 2, 2, 0},
		{"Merge", own, func(e *employee) error {
			rename(e)
			return c.repo.Merge(ctx, e, "Name")
		}, 2, 0, 0, 1},
		{"Replace of what was read through an index", through, replace(rename), 2, 0, 0, 1},
		{"Merge of what was read through an index", through, func(e *employee) error {
			rename(e)
			return c.repo.Merge(ctx, e, "Name")
		}, 2, 0, 0, 1},
		{"Upsert", none, func(*employee) error { return c.repo.Upsert(ctx, jones()) }, 0, 2, 2, 1},
		{"Update", none, func(*employee) error {
			_, err := c.repo.Update(ctx, key, func(e *employee) error { rename(e); return nil })
			return err
		}, 2, 0, 0, 1},
		{"ReplaceUnconditional", none, func(*employee) error { return c.repo.ReplaceUnconditional(ctx, jones()) }, 2, 0, 0, 1},
		{"Delete", own, func(e *employee) error { return c.repo.Delete(ctx, e) }, 0, 0, 2, 0},
		{"Insert again", none, insert, 0, 2, 0, 0},
		{"Delete of what was read through an index", through, func(e *employee) error { return c.repo.Delete(ctx, e) }, 0, 0, 2, 1},
		{"Insert again", none, insert, 0, 2, 0, 0},
		{"DeleteUnconditional", none, func(*employee) error { return c.repo.DeleteUnconditional(ctx, key) }, 0, 0, 2, 1},
	}
}

// TestRequestCounts holds what the package comment and docs/reference/costs.md say of changes.
func TestRequestCounts(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kind{{}, {unique: true}, {async: true}, {async: true, unique: true}} {
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
				own := step.reads + 1 + 2 // the transaction, and the message put and deleted, or shown
				remove := step.gone
				if k.unique {
					own += step.come
					remove = 3 * step.gone // to look at the copy, and at the entity again
				}
				worker := 0
				if k.async {
					worker = 2 + 1 + step.stay + 2*step.come + remove // to read twice, to delete the message
				} else {
					own += step.stay + step.come + remove + 1
				}
				if got := c.requests.Count(); got != own {
					t.Errorf("%s: %d requests, want %d: %v", step.name, got, own, c.requests.Kinds())
				}
				c.requests.Reset()
				if err := c.drainNow(ctx, c.process); err != nil {
					t.Fatal(err)
				}
				// Drain polls until it finds nothing; how often, is eventual's to say.
				if got := c.requests.Count() - c.requests.CountOf(storagetest.GetMessages); got != worker {
					t.Errorf("%s: %d requests of the worker besides its gets, want %d: %v", step.name, got, worker, c.requests.Kinds())
				}
			}
		})
	}
}

// TestRequestCountsOfReads holds what they say of reads.
func TestRequestCountsOfReads(t *testing.T) {
	ctx := context.Background()
	c := openCounted(t, kind{})
	for id := range 3 {
		e := jones()
		e.ID, e.Email, e.Badge = id, fmt.Sprintf("jones%d@contoso.com", id), fmt.Sprint("B-", id)
		if err := c.repo.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	badge, email := compoundkey.String("B-1"), compoundkey.String("jones1@contoso.com")
	each := func(all iter.Seq2[*employee, error], err error) error {
		if err != nil {
			return err
		}
		n := 0
		for _, err := range all {
			if err != nil {
				return err
			}
			n++
		}
		if n != 3 {
			return fmt.Errorf("%d entities", n)
		}
		return nil
	}
	for _, read := range []struct {
		name string
		want int
		do   func() error
	}{
		{"Get", 1, func() error { _, err := c.email.In("Sales").Get(ctx, email); return err }},
		{"GetFull", 2, func() error { _, err := c.badge.GetFull(ctx, badge); return err }},
		{"Verified.Get", 2, func() error {
			_, err := c.badge.Verified().Get(ctx, badge)
			return err
		}},
		{"Range", 1, func() error { return each(c.email.In("Sales").Range(ctx, compoundkey.All()), nil) }},
		{"Verified.Range", 1 + 3, func() error { return each(c.email.In("Sales").Verified().Range(ctx, compoundkey.All()), nil) }},
		{"Query", 1, func() error {
			return each(c.badge.Query(compoundkey.Prefix("B")).All(ctx), nil)
		}},
	} {
		c.requests.Reset()
		if err := read.do(); err != nil {
			t.Fatalf("%s: %v", read.name, err)
		}
		if got := c.requests.Count(); got != read.want {
			t.Errorf("%s: %d requests, want %d: %v", read.name, got, read.want, c.requests.Kinds())
		}
	}
}

// TestRequestCountsOfTakenKeys: a change that Unique refuses costs the message, an attempt to reserve each of its new keys up
// to the one that is taken, a look at whose that is, and what undoes the reservations.
func TestRequestCountsOfTakenKeys(t *testing.T) {
	ctx := context.Background()
	c := openCounted(t, kind{unique: true})
	if err := c.repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	c.requests.Reset()
	if err := c.repo.Insert(ctx, second("otto@contoso.com", jones().Badge)); !errors.Is(err, tables.ErrDuplicate) {
		t.Fatal(err)
	}
	// The message put and deleted; one key reserved, one not, and who has that; the entity read before and after, a look at each
	// key, and one reservation removed.
	if got, want := c.requests.Count(), 2+2+1+2+2+1; got != want {
		t.Errorf("%d requests, want %d: %v", got, want, c.requests.Kinds())
	}
}
