package interpartition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGroups: an index has one group with all entities, a group for each partition, or those of a function. A read that names no
// group of an index with groups, or one of an index without, is refused before a request.
func TestGroups(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := harness.Must[*process](t)(newWorld(t, s, kind{}).start(s))
	anywhere := interpartition.NewIndex("anywhere", emailOf, nil)
	here := interpartition.NewIndex("here", emailOf, &interpartition.Options[employee]{ByPartition: true})
	initials := interpartition.NewIndex("initials", emailOf, &interpartition.Options[employee]{Group: func(e *employee) string { return e.Email[:1] }})
	staff := harness.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(p.repo.Table(), p.queue),
		patterns.Schema[employee]{Name: "grouped", Key: keyOf, Rows: compoundkey.Starting("empid")}, anywhere, here, initials))
	if err := staff.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	email := compoundkey.String("jonesj@contoso.com")
	for name, x := range map[string]*interpartition.Index[employee]{"anywhere": anywhere, "here": here.In("Sales"), "initials": initials.In("j")} {
		if _, err := x.Get(ctx, email); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := x.Query(compoundkey.All()).First(ctx); err != nil || e.ID != jones().ID {
			t.Errorf("%s: a query finds %v, %v", name, e, err)
		}
	}
	if _, err := here.In("IT").Get(ctx, email); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("in another group: %v", err)
	}
	for want, x := range map[string]*interpartition.Index[employee]{"choose one with In": here, "read it without In": anywhere.In("Sales")} {
		_, got := x.Get(ctx, email)
		_, full := x.GetFull(ctx, email)
		_, verified := x.Verified().Get(ctx, email)
		for read, err := range map[string]error{"Get": got, "GetFull": full, "Range": errors.Join(errorsOf(x.Range(ctx, compoundkey.All()))...),
			"Verified.Get": verified, "Verified.Range": errors.Join(errorsOf(x.Verified().Range(ctx, compoundkey.All()))...)} {
			if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", read, err, want)
			}
		}
	}
}

// TestGroupsOfDeclaration: what NewRepository refuses.
func TestGroupsOfDeclaration(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p := harness.Must[*process](t)(newWorld(t, s, kind{}).start(s))
	group := func(*employee) string { return "" }
	for want, x := range map[string]*interpartition.Index[employee]{
		"give the repository the index itself": interpartition.NewIndex("email", emailOf, &interpartition.Options[employee]{ByPartition: true}).In("Sales"),
		"set one of them":                      interpartition.NewIndex("email", emailOf, &interpartition.Options[employee]{ByPartition: true, Group: group}),
	} {
		_, err := patterns.NewRepository(harness.In(p.repo.Table(), p.queue), patterns.Schema[employee]{Name: "refused", Key: keyOf}, x)
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
