package denormalization_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSourceOfContradictsCopy: a link whose SourceOf does not return the source that Copy set would lose its holders. The
// first change that shows this is refused, and neither the source nor the holder is written.
func TestSourceOfContradictsCopy(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	jones := employeeKey("Sales", 1)
	for want, held := range map[string]func(*department) (tables.Key, bool){
		"SourceOf does not return the source": func(*department) (tables.Key, bool) { return tables.Key{}, false },
		"SourceOf still returns the source":   func(*department) (tables.Key, bool) { return jones, true },
	} {
		w := newWorld(t, s, inPartition)
		p := assert.Must[*process](t)(w.start(s))
		assert.Check(t, p.departments.Insert(ctx, &department{Site: "Sales", Name: "A"}))
		l := managing()
		l.SourceOf = held
		repo, _, err := linked(p, denormalization.NewInPartition("other", l, nil))
		assert.Check(t, err)
		e := &employee{Site: "Sales", ID: 1, Name: "June", ManagesSite: "Sales", Manages: "A"}
		err = repo.Insert(ctx, e)
		name := ""
		if err == nil {
			err, name = repo.Delete(ctx, e), "June"
		}
		if !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if d := assert.Must[*department](t)(p.departments.Get(ctx, departmentKey("Sales", "A"))); d.ManagerName != name {
			t.Errorf("%s: the holder has %q, want %q", want, d.ManagerName, name)
		}
	}
}

// TestCopyMovesTheReference: with Find, a Copy that writes the reference itself is refused, and the poison queue says why.
func TestCopyMovesTheReference(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 3)
	p := assert.Must[*officeProcess](t)(w.start(s))
	link := cityLink()
	link.Properties = []string{"OfficeCity", "Office"}
	link.Copy = func(o *office, m *member) { m.OfficeCity, m.Office = o.City, "elsewhere" }
	copies := denormalization.New("other", link, nil)
	_, err := patterns.NewRepository(harness.In(p.members.Table(), p.queue), patterns.Schema[member]{Name: "other members", Key: p.members.KeyOf}, copies.Holder())
	assert.Check(t, err)
	repo := assert.Must[*patterns.Repository[office]](t)(patterns.NewRepository(harness.In(p.offices.Table(), p.queue),
		patterns.Schema[office]{Name: "others", Key: p.offices.KeyOf}, copies.Source()))
	assert.Check(t, repo.Insert(ctx, &office{Code: "L", City: "London"}))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1}))
	_, err = worker.Drain(ctx)
	assert.Check(t, err)
	entries := assert.Must[[]eventual.PoisonMessage](t)(p.queue.Poison().Peek(ctx, 10))
	if len(entries) != 1 || !strings.Contains(entries[0].Reason, "with Link.Find, Copy must not write the holder") {
		t.Fatalf("%+v", entries)
	}
	if m := assert.Must[*member](t)(p.members.Get(ctx, memberKey(1))); m.Office != "L" || m.OfficeCity != "" {
		t.Errorf("the holder was written: %+v", m)
	}
}
