package interpartition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

var allKinds = []kind{{}, {unique: true}, {spread: true}, {unique: true, spread: true}, {unique: true, background: true}}

// TestLifeOfAnEntity: inserted, found, moved through an index, merged, upserted, deleted; the indexes follow at once.
func TestLifeOfAnEntity(t *testing.T) {
	for _, k := range allKinds {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := newWorld(t, s, k)
			wantCopies := func(want string) {
				t.Helper()
				found, err := w.check(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				if got := found[keyOf(jones())]; got != want {
					t.Fatalf("the entity is %q, want %q", got, want)
				}
			}
			// in makes a change in a process of its own, and waits until nothing is left of it.
			in := func(do func(p *process) error) {
				t.Helper()
				p := assert.Must[*process](t)(w.start(s))
				assert.Check(t, do(p), p.close(ctx))
			}
			e := jones()
			in(func(p *process) error { return p.repo.Insert(ctx, e) })
			wantCopies("June Jones <jonesj@contoso.com> B-1")
			in(func(p *process) error {
				found := assert.Must[*employee](t)(p.email.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com")))
				found.Email, found.Badge = "june@contoso.com", ""
				if err := p.repo.Replace(ctx, found); err != nil {
					return err
				}
				stale := *e
				if err := p.repo.Replace(ctx, &stale); !errors.Is(err, tables.ErrConflict) {
					t.Fatalf("replaced what has changed since: %v", err)
				}
				return nil
			})
			wantCopies("June Jones <june@contoso.com> ")
			in(func(p *process) error {
				found := assert.Must[*employee](t)(p.email.In("Sales").Get(ctx, compoundkey.String("june@contoso.com")))
				found.Badge = "B-2"
				return p.repo.Merge(ctx, found, "Badge")
			})
			wantCopies("June Jones <june@contoso.com> B-2")
			in(func(p *process) error {
				if part := assert.Must[*employee](t)(p.badge.Get(ctx, compoundkey.String("B-2"))); part.Name != "June Jones" || part.Email != "" {
					t.Fatalf("%+v", part)
				}
				return p.repo.Upsert(ctx, jones())
			})
			wantCopies("June Jones <jonesj@contoso.com> B-1")
			in(func(p *process) error {
				whole := assert.Must[*employee](t)(p.badge.GetFull(ctx, compoundkey.String("B-1")))
				if !k.unique {
					whole = assert.Must[*employee](t)(p.repo.Get(ctx, whole.Key()))
				}
				if whole.Email != "jonesj@contoso.com" {
					t.Fatalf("%+v", whole)
				}
				return p.repo.Delete(ctx, whole)
			})
			wantCopies("")
		})
	}
}

// TestTakenKey: with Unique, a write that needs the key of another entity is refused and leaves nothing.
func TestTakenKey(t *testing.T) {
	for _, k := range []kind{{unique: true}, {unique: true, spread: true}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := newWorld(t, s, k)
			p := assert.Must[*process](t)(w.start(s))
			if err := p.repo.Insert(ctx, jones()); err != nil {
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
			// The change that was refused has held its other key: the next one of the entity settles it.
			other.Badge = "B-3"
			if err := p.repo.Replace(ctx, other); err != nil {
				t.Fatal(err)
			}
			found, err := w.check(ctx, s)
			if err != nil || len(found) != 2 {
				t.Fatalf("%v, %v", found, err)
			}
		})
	}
}

// TestSharedKey: without Unique, entities share a key. All reads all of them, in the order of their own keys.
func TestSharedKey(t *testing.T) {
	for _, k := range []kind{{}, {spread: true}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := newWorld(t, s, k)
			p := assert.Must[*process](t)(w.start(s))
			sharing := []*employee{{Department: "Marketing", ID: 5, Name: "Otto"}, {Department: "Marketing", ID: 40, Name: "Olga"}, {Department: "Sales", ID: 1, Name: "Ada"}}
			for _, i := range []int{2, 1, 0} {
				e := *sharing[i]
				e.Badge, e.Email = "B-1", "all"
				assert.Check(t, p.repo.Insert(ctx, &e))
			}
			assert.Check(t, p.repo.Insert(ctx, &employee{Department: "A", ID: 1, Name: "No", Badge: "B-10", Email: "all"}))
			badge := compoundkey.String("B-1")
			for i, want := range sharing {
				if got := namesOf(t, p.badge.All(ctx, badge)); len(got) != len(sharing)-i || got[0] != want.Name {
					t.Errorf("All yields %q", got)
				}
				assert.Check(t, p.repo.DeleteUnconditional(ctx, keyOf(want)))
			}
			if got := namesOf(t, p.badge.All(ctx, badge)); got != nil {
				t.Errorf("All yields %q", got)
			}
			if _, err := w.check(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

// TestBadInputSendsNothing: what cannot be stored is refused before the first request.
func TestBadInputSendsNothing(t *testing.T) {
	for _, k := range []kind{{}, {unique: true}} {
		ctx, s := context.Background(), storagetest.Open(t)
		w := newWorld(t, s, k)
		counter := &storagetest.RequestCounter{}
		counted := *s
		counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
		p := assert.Must[*process](t)(w.start(&counted))
		long, most := strings.Repeat("x", 600), strings.Repeat("x", 512)
		for name, bad := range map[string]*employee{
			"index key too long":                 {Department: "Sales", ID: 1, Email: long},
			"property too long":                  {Department: "Sales", ID: 1, Name: strings.Repeat("x", 40_000)},
			"partition key too long":             {Department: long, ID: 1},
			"index key too long with the entity": {Department: "Sales", ID: 1, Email: most},
		} {
			err := p.repo.Insert(ctx, bad)
			appended := strings.HasSuffix(name, "with the entity")
			if appended && k.unique {
				assert.Check(t, err)
				counter.Reset()
				continue
			}
			if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
			var answer *azcore.ResponseError
			if errors.As(err, &answer) || counter.Count() != 0 {
				t.Errorf("%s: %d requests, %v", name, counter.Count(), err)
			}
			if says := err != nil && strings.Contains(err.Error(), "appends the entity's partition key and row key"); says != appended {
				t.Errorf("%s: %v", name, err)
			}
			if appended {
				harness.WantKind(t, err, tables.ErrInvalid)
			}
		}
		for name, err := range map[string]error{"Get": second(p.badge.Get(ctx, text(long))), "Get of no key": second(p.badge.Get(ctx, compoundkey.Part{})),
			"All": errors.Join(errorsOf(p.badge.All(ctx, text(long)))...), "All of no key": errors.Join(errorsOf(p.badge.All(ctx, compoundkey.Part{}))...)} {
			if !errors.Is(err, tables.ErrInvalid) || counter.Count() != 0 {
				t.Errorf("%v: %s: %d requests, %v", k, name, counter.Count(), err)
			}
		}
	}
}

// TestFailureElsewhere: a change fails, and writes nothing, if the table of an index fails. The error names the table and the index.
func TestFailureElsewhere(t *testing.T) {
	for name, want := range map[string]error{"missing": tables.ErrMissingResource, "throttled": tables.ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := newWorld(t, s, kind{unique: true})
			faulty, _ := s.WithRetries(0).Faulty(storagetest.If(func(call storagetest.Call) bool { return call.Resource == w.other }, storagetest.Throttled))
			if name == "missing" {
				faulty = s
				assert.Check(t, assert.Must[*process](t)(w.start(s)).badges.Drop(ctx))
			}
			p := assert.Must[*process](t)(w.start(faulty))
			err := p.repo.Insert(ctx, jones())
			if e := harness.WantKind(t, err, want); e.Pattern != "badge" || !strings.Contains(err.Error(), w.other) {
				t.Errorf("%v", err)
			}
			if _, err := p.repo.Get(ctx, keyOf(jones())); !errors.Is(err, tables.ErrNotFound) {
				t.Errorf("the entity: %v", err)
			}
			if _, err := p.email.In("Sales").Get(ctx, emailOf(jones())); !errors.Is(err, tables.ErrNotFound) {
				t.Errorf("its copy: %v", err)
			}
		})
	}
}

// TestRefusedInsertHidesNobody: while an insert is refused, and after its process has died, the entity that is there is found.
func TestRefusedInsertHidesNobody(t *testing.T) {
	for _, k := range []kind{{}, {unique: true}} {
		ctx, s := t.Context(), storagetest.Simulator(t, nil)
		w := newWorld(t, s, k)
		p := assert.Must[*process](t)(w.start(s))
		assert.Check(t, p.repo.Insert(ctx, jones()))
		find := func() {
			found, err := p.email.In("Sales").Get(ctx, emailOf(jones()))
			if err != nil || found.Name != jones().Name {
				t.Errorf("%v: %+v, %v", k, found, err)
			}
		}
		inserting := func(fault storagetest.Injector) error {
			faulty, _ := s.Faulty(storagetest.If(func(call storagetest.Call) bool { return call.Kind == storagetest.InsertEntity }, fault))
			return assert.Must[*process](t)(w.start(faulty)).repo.Insert(ctx, &employee{Department: "Sales", ID: jones().ID, Name: "Another", Email: jones().Email, Badge: "B-7"})
		}
		if err := inserting(storagetest.Always(storagetest.Before("look", find))); !errors.Is(err, tables.ErrExists) {
			t.Errorf("%v: %v", k, err)
		}
		find()
		for i := range 3 {
			_ = inserting(storagetest.OnIndex(i, storagetest.DiesBefore))
			find()
		}
		if err := each(1, p.email.In("Sales").Range(ctx)); err != nil {
			t.Error(err)
		}
	}
}

// TestExchangeOfKeys: two entities exchange both keys in one transaction; one after another, the first is refused.
func TestExchangeOfKeys(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := newWorld(t, s, kind{unique: true})
	p := assert.Must[*process](t)(w.start(s))
	june, otto := jones(), &employee{Department: "Sales", ID: 5, Name: "Otto", Email: "otto@contoso.com", Badge: "B-2"}
	assert.Check(t, p.repo.Insert(ctx, june), p.repo.Insert(ctx, otto))
	june.Email, otto.Email = otto.Email, june.Email
	june.Badge, otto.Badge = otto.Badge, june.Badge
	harness.WantKind(t, p.repo.Replace(ctx, june), tables.ErrDuplicate)
	x := p.repo.Table().NewTransaction()
	p.repo.StageReplace(x, june)
	p.repo.StageReplace(x, otto)
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Fatal(err)
	}
	if found := assert.Must[*employee](t)(p.badge.Get(ctx, text("B-1"))); found.Name != "Otto" {
		t.Errorf("%+v", found)
	}
}

// TestOwnersOnly: an index without properties yields whole entities, and is not written by changes that keep the key.
func TestOwnersOnly(t *testing.T) {
	ctx, c := t.Context(), openCounted(t, kind{})
	index := interpartition.NewUnique("owners", emailOf, &interpartition.Options[employee]{Project: []string{}})
	repo := c.open(t, c.service, "owners", index)
	wantRequests := func(want int, err error) {
		t.Helper()
		if err != nil || c.requests.Count() != want {
			t.Errorf("%d requests, want %d; %v", c.requests.Count(), want, err)
		}
		c.requests.Reset()
	}
	c.requests.Reset()
	e := jones()
	wantRequests(3, repo.Insert(ctx, e))
	found, err := index.Get(ctx, emailOf(e))
	wantRequests(2, err)
	if found.Badge != e.Badge || found.ETag != e.ETag {
		t.Errorf("%+v", found)
	}
	found.Name = "June Smith"
	wantRequests(1, repo.Replace(ctx, found))
	for v, err := range index.Range(ctx) {
		if err != nil || v.Name != "June Smith" || v.Badge != e.Badge {
			t.Errorf("%+v, %v", v, err)
		}
	}
	wantRequests(2, nil)
	_, err = index.Query().Where(tables.Eq("Name", "x")).First(ctx)
	harness.WantKind(t, err, tables.ErrInvalid)
	wantRequests(0, nil)
}

// TestSeveralUniqueKeys: an entity has several keys of its own, and gives up those that it no longer has.
func TestSeveralUniqueKeys(t *testing.T) {
	type pupil struct {
		tables.Meta
		PartitionKey, RowKey string
		Emails               []string `table:",json"`
	}
	ctx, s := t.Context(), storagetest.Open(t)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	table := account.Table(s.TableName(t))
	assert.Check(t, table.Create(ctx))
	byEmail := interpartition.NewMultiUnique("email", func(p *pupil) []compoundkey.Folded {
		var all []compoundkey.Folded
		for _, e := range p.Emails {
			all = append(all, compoundkey.Folded(e))
		}
		return all
	}, nil)
	pupils := assert.Must[*patterns.Repository[pupil]](t)(patterns.NewRepository(table, patterns.Schema[pupil]{Prefix: "pupil"}, byEmail))
	ann := &pupil{PartitionKey: "a", RowKey: "pupil_ann", Emails: []string{"ann@home", "", "ann@work", "ANN@home"}}
	assert.Check(t, pupils.Insert(ctx, ann))
	harness.WantKind(t, pupils.Insert(ctx, &pupil{PartitionKey: "b", RowKey: "pupil_bob", Emails: []string{"Ann@Work"}}), tables.ErrDuplicate)
	ann.Emails = []string{"ann@home"}
	assert.Check(t, pupils.Replace(ctx, ann))
	for email, want := range map[compoundkey.Folded]error{"Ann@Home": nil, "ann@work": tables.ErrNotFound} {
		if _, err := byEmail.Get(ctx, email); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", email, err, want)
		}
	}
	assert.Check(t, harness.Clean(ctx, pupils.Verify, nil))
}
