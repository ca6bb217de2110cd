package interpartition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestLifeOfAnEntity: inserted, found, moved through an index, merged, upserted, deleted; the indexes follow at once.
func TestLifeOfAnEntity(t *testing.T) {
	for _, k := range []kind{{}, {unique: true}, {async: true}, {async: true, unique: true}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := newWorld(t, s, k)
			p := harness.Must[*process](t)(w.start(s))
			wantCopies := func(want string) {
				t.Helper()
				if k.async {
					if err := w.drainNow(ctx, p); err != nil {
						t.Fatal(err)
					}
				}
				found, err := w.check(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				if got := found[keyOf(jones())]; got != want {
					t.Fatalf("the entity is %q, want %q", got, want)
				}
			}
			e := jones()
			if err := p.repo.Insert(ctx, e); err != nil {
				t.Fatal(err)
			}
			wantCopies("June Jones <jonesj@contoso.com> B-1")
			found, err := p.email.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com"))
			if err != nil {
				t.Fatal(err)
			}
			found.Email, found.Badge = "june@contoso.com", ""
			if err := p.repo.Replace(ctx, found); err != nil {
				t.Fatal(err)
			}
			wantCopies("June Jones <june@contoso.com> ")
			if err := p.repo.Replace(ctx, e); !errors.Is(err, tables.ErrConflict) {
				t.Fatalf("replaced what has changed since: %v", err)
			}
			found.Badge = "B-2"
			if err := p.repo.Merge(ctx, found, "Badge"); err != nil {
				t.Fatal(err)
			}
			wantCopies("June Jones <june@contoso.com> B-2")
			part, err := p.badge.Get(ctx, compoundkey.String("B-2"))
			if err != nil || part.Name != "June Jones" || part.Email != "" {
				t.Fatalf("%+v, %v", part, err)
			}
			if err := p.repo.Upsert(ctx, jones()); err != nil {
				t.Fatal(err)
			}
			wantCopies("June Jones <jonesj@contoso.com> B-1")
			whole, err := p.badge.GetFull(ctx, compoundkey.String("B-1"))
			if err != nil || whole.Email != "jonesj@contoso.com" {
				t.Fatalf("%+v, %v", whole, err)
			}
			if err := p.repo.Delete(ctx, whole); err != nil {
				t.Fatal(err)
			}
			wantCopies("")
		})
	}
}

// TestTakenKey: with Unique the write is refused and leaves nothing; without, the index keeps its first owner.
func TestTakenKey(t *testing.T) {
	for _, k := range []kind{{unique: true}, {unique: true, async: true}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := newWorld(t, s, k)
			p := harness.Must[*process](t)(w.start(s))
			if err := p.repo.Insert(ctx, jones()); err != nil {
				t.Fatal(err)
			}
			if err := w.drainNow(ctx, p); err != nil {
				t.Fatal(err)
			}
			other := &employee{Department: "Marketing", ID: 5, Name: "Otto", Email: "otto@contoso.com", Badge: "B-1"}
			err := p.repo.Insert(ctx, other)
			var e *tables.Error
			if !errors.Is(err, tables.ErrDuplicate) || !errors.As(err, &e) || e.Pattern != "badge" {
				t.Fatalf("error is %v", err)
			}
			other.Badge = "B-2"
			if err := p.repo.Insert(ctx, other); err != nil {
				t.Fatal(err)
			}
			other.Badge = "B-1"
			if err := p.repo.Replace(ctx, other); !errors.Is(err, tables.ErrDuplicate) {
				t.Fatalf("error is %v", err)
			}
			if err := w.drainNow(ctx, p); err != nil {
				t.Fatal(err)
			}
			found, err := w.check(ctx, s)
			if err != nil || len(found) != 2 {
				t.Fatalf("%v, %v", found, err)
			}
		})
	}
}

func TestSecondOwnerOfAKey(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := newWorld(t, s, kind{})
	p := harness.Must[*process](t)(w.start(s))
	first := jones()
	if err := p.repo.Insert(ctx, first); err != nil {
		t.Fatal(err)
	}
	second := &employee{Department: "Marketing", ID: 5, Name: "Otto", Badge: "B-1"}
	if err := p.repo.Insert(ctx, second); err != nil {
		t.Fatal(err)
	}
	got, err := p.badge.Verified().Get(ctx, compoundkey.String("B-1"))
	if err != nil || got.Name != "June Jones" {
		t.Fatalf("%+v, %v", got, err)
	}
	first.Badge = "B-3"
	if err := p.repo.Replace(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := w.drainNow(ctx, p); err != nil { // the second's intent was left on the queue
		t.Fatal(err)
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Fatal(err)
	}
}

// TestVerifiedReads: a copy that is stale is not yielded, and what is yielded is the entity as it is.
func TestVerifiedReads(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := newWorld(t, s, kind{async: true})
	p := harness.Must[*process](t)(w.start(s))
	e := jones()
	if err := p.repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	if _, err := p.badge.Get(ctx, compoundkey.String("B-1")); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("the index has it before the worker: %v", err)
	}
	if _, err := p.badge.Verified().Get(ctx, compoundkey.String("B-1")); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("a verified read before the worker: %v", err)
	}
	if err := w.drainNow(ctx, p); err != nil {
		t.Fatal(err)
	}
	e.Badge = "B-2"
	if err := p.repo.Replace(ctx, e); err != nil {
		t.Fatal(err)
	}
	if stale, err := p.badge.Get(ctx, compoundkey.String("B-1")); err != nil || stale.Name == "" {
		t.Fatalf("%+v, %v", stale, err)
	}
	if _, err := p.badge.Verified().Get(ctx, compoundkey.String("B-1")); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("error is %v", err)
	}
	for v, err := range p.badge.Verified().Range(ctx, compoundkey.All()) {
		t.Fatalf("yielded %+v, %v", v, err)
	}
	n := 0
	for v, err := range p.email.In("Sales").Verified().Range(ctx, compoundkey.Prefix("j")) {
		if err != nil || v.Badge != "B-2" {
			t.Fatalf("%+v, %v", v, err)
		}
		n++
	}
	if n != 1 {
		t.Fatalf("%d entities", n)
	}
}

// TestBadInputSendsNothing: what cannot be stored is refused before the intent is put.
func TestBadInputSendsNothing(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := newWorld(t, s, kind{})
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := harness.Must[*process](t)(w.start(&counted))
	for name, bad := range map[string]*employee{
		"index key too long":     {Department: "Sales", ID: 1, Email: strings.Repeat("x", 600)},
		"property too long":      {Department: "Sales", ID: 1, Name: strings.Repeat("x", 40_000)},
		"partition key too long": {Department: strings.Repeat("x", 600), ID: 1},
	} {
		err := p.repo.Insert(ctx, bad)
		if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		var answer *azcore.ResponseError
		if errors.As(err, &answer) || counter.Count() != 0 {
			t.Errorf("%s: %d requests, %v", name, counter.Count(), err)
		}
	}
}
