package interpartition_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// second is another employee of the same department.
func second(email, badge string) *employee {
	return &employee{Department: "Sales", ID: 5, Name: "Otto", Email: email, Badge: badge}
}

// TestExchangeOfKeys: two entities that each take the other's key. For a while each one's message waits for the other's.
func TestExchangeOfKeys(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{async: true})
	p := harness.Must[*process](t)(w.start(s))
	june, otto := jones(), second("otto@contoso.com", "B-2")
	for _, e := range []*employee{june, otto} {
		if err := p.repo.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.drainNow(ctx, p); err != nil {
		t.Fatal(err)
	}
	june.Email, otto.Email = otto.Email, june.Email
	june.Badge, otto.Badge = otto.Badge, june.Badge
	for _, e := range []*employee{june, otto} {
		if err := p.repo.Replace(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.drain(ctx, s); err != nil {
		t.Fatal(err)
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Fatal(err)
	}
}

// TestTakenKeyHoldsNothingElseUp: an entity that cannot have one of its keys leaves its old ones, and has all others.
func TestTakenKeyHoldsNothingElseUp(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{})
	p := harness.Must[*process](t)(w.start(s))
	otto := second("otto@contoso.com", "B-2")
	for _, e := range []*employee{jones(), otto} {
		if err := p.repo.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	otto.Email, otto.Badge = jones().Email, "B-3"
	if err := p.repo.Replace(ctx, otto); err != nil {
		t.Fatal(err)
	}
	got, err := w.copies(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"email_Sales jonesj@contoso.com": "June Jones jonesj@contoso.com B-1 empid_000223",
		"email_Sales otto@contoso.com":   "",
		"badge B-1":                      "June Jones empid_000223",
		"badge B-2":                      "",
		"badge B-3":                      "Otto empid_000005 " + string(otto.ETag),
	} {
		if there := got[at]; len(there) < len(want) || there[:len(want)] != want || want == "" && there != "" {
			t.Errorf("the copy at %q is %q, and should be %q", at, there, want)
		}
	}
}
