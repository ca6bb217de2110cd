package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// holderWalk is a small world of internal/models/holder, with the real code: one holder, whose own writers change it while its
// sources change.
type holderWalk struct {
	cities  map[string]string // of the offices, by code
	member  *member           // as it is in the beginning, nil for none
	steps   []func(ctx context.Context, p *officeProcess) error
	runner  func(*eventual.Queue) intents.Runner // of the members' intents; nil is the queue
	crashes int
}

func insertsMember(code string) func(ctx context.Context, p *officeProcess) error {
	return func(ctx context.Context, p *officeProcess) error {
		return p.members.Insert(ctx, &member{ID: 1, Office: code, Note: "kept"})
	}
}

func movesMember(code string) func(ctx context.Context, p *officeProcess) error {
	return func(ctx context.Context, p *officeProcess) error {
		_, err := p.members.Update(ctx, memberKey(1), func(m *member) error { m.Office = code; return nil })
		return err
	}
}

func editsMember(ctx context.Context, p *officeProcess) error {
	_, err := p.members.Update(ctx, memberKey(1), func(m *member) error { m.Note = "edited"; return nil })
	return err
}

func deletesMember(ctx context.Context, p *officeProcess) error {
	return p.members.DeleteUnconditional(ctx, memberKey(1))
}

func putsOffice(code, city string) func(ctx context.Context, p *officeProcess) error {
	return func(ctx context.Context, p *officeProcess) error {
		if city == "" {
			return p.offices.DeleteUnconditional(ctx, officeKey(code))
		}
		return p.offices.Upsert(ctx, &office{Code: code, City: city})
	}
}

func (w *holderWalk) start(s *storagetest.Service) (*officeProcess, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, "intents", &eventual.QueueOptions{VisibilityTimeout: walkVisibility})
	if err != nil {
		return nil, err
	}
	p, copies, runner := &officeProcess{queue: queue}, denormalization.New("city", cityLink(), nil), harness.Runner(queue)
	if w.runner != nil {
		runner = w.runner(queue)
	}
	if p.members, err = patterns.NewRepository(harness.In(account.Table("Members"), runner), memberSchema(), copies.Holder()); err != nil {
		return nil, err
	}
	p.offices, err = patterns.NewRepository(harness.In(account.Table("Offices"), queue), patterns.Schema[office]{Key: func(o *office) tables.Key { return officeKey(o.Code) }}, copies.Source())
	return p, err
}

func (w *holderWalk) stage(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	t.Helper()
	p := assert.Must[*officeProcess](t)(w.start(s))
	_, err := eventual.QueueService(p.queue.Account()).NewQueueClient("intents-poison").Create(t.Context(), nil)
	assert.Check(t, err, p.members.Table().Create(t.Context()), p.offices.Table().Create(t.Context()), p.queue.Create(t.Context()))
	for _, code := range []string{"L", "P"} {
		if city := w.cities[code]; city != "" {
			assert.Check(t, p.offices.Insert(t.Context(), &office{Code: code, City: city}))
		}
	}
	if w.member != nil {
		copied := *w.member
		assert.Check(t, p.members.Insert(t.Context(), &copied))
	}
	stage := explore.InterleavingStage{Queues: []string{"intents"}, Check: w.check}
	for _, step := range w.steps {
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
			p, err := w.start(s)
			if err == nil {
				err = step(ctx, p)
			}
			return err
		})
	}
	stage.Workers = append(stage.Workers, walkWorker(0, func(s *storagetest.Service) (*eventual.Queue, error) {
		p, err := w.start(s)
		if err != nil {
			return nil, err
		}
		return p.queue, nil
	}))
	return stage
}

// check is for quiet ends: the member has the city of its office.
func (w *holderWalk) check(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	m, err := p.members.Get(ctx, memberKey(1))
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	city := ""
	o, err := p.offices.Get(ctx, officeKey(m.Office))
	if err == nil {
		city = o.City
	} else if !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	if m.OfficeCity != city {
		return fmt.Errorf("the member of %s has %q, and the office is in %q", m.Office, m.OfficeCity, city)
	}
	return nil
}

func (w *holderWalk) walk(t *testing.T, name string) explore.Walk {
	t.Helper()
	x := explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: w.stage, Crashes: w.crashes})
	t.Logf("%s, %d crashes: %d states, %d ends; returned %v", name, w.crashes, x.States, x.Ends, x.Returned)
	return x
}

// TestWalkHolder walks through every interleaving of writers of a holder and of its sources.
func TestWalkHolder(t *testing.T) {
	at := func(code, city string) *member { return &member{ID: 1, Office: code, OfficeCity: city, Note: "kept"} }
	both := map[string]string{"L": "x", "P": "z"}
	states := 0
	for name, w := range map[string]*holderWalk{
		"inserted while the source changes": {cities: both, crashes: 1, steps: []func(context.Context, *officeProcess) error{insertsMember("L"), putsOffice("L", "y")}},
		"inserted while the source comes":   {crashes: 1, steps: []func(context.Context, *officeProcess) error{insertsMember("L"), putsOffice("L", "y")}},
		"inserted while the source goes":    {cities: both, crashes: 1, steps: []func(context.Context, *officeProcess) error{insertsMember("L"), putsOffice("L", "")}},
		"moved while its new source changes": {cities: both, crashes: 1, member: at("L", "x"),
			steps: []func(context.Context, *officeProcess) error{movesMember("P"), putsOffice("P", "y")}},
		"moved while its old source changes": {cities: both, crashes: 1, member: at("L", "x"),
			steps: []func(context.Context, *officeProcess) error{movesMember("P"), putsOffice("L", "y")}},
		"edited while its source changes": {cities: both, crashes: 1, member: at("L", "x"),
			steps: []func(context.Context, *officeProcess) error{editsMember, putsOffice("L", "y")}},
		"deleted and inserted": {cities: both, crashes: 1, member: at("L", "x"),
			steps: []func(context.Context, *officeProcess) error{deletesMember, insertsMember("L"), putsOffice("L", "y")}},
		"inserted while the source changes there and back": {cities: both, crashes: 1,
			steps: []func(context.Context, *officeProcess) error{insertsMember("L"), putsOffice("L", "y"), putsOffice("L", "x")}},
	} {
		if harness.Shortened() && name != "inserted while the source changes" || len(w.steps) > 2 && w.member == nil && !harness.Thorough() {
			continue // three writers of an insert have 400,000 states
		}
		x := w.walk(t, name)
		x.MustConverge(t)
		states += x.States
	}
	t.Logf("%d states, 0 divergences", states)
}

// waived is a runner that omits a rule which keeps a holder's copy correct: reading the source after the commit, or the message.
type waived struct {
	intents.Runner
	reads bool
}

func (r waived) Run(ctx context.Context, _ intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	if err := commit(ctx); err != nil {
		return err
	}
	if r.reads {
		_ = harness.ApplyAndClose(apply)(ctx)
	}
	return nil
}

// TestWalkHolderCanFail: without reading the source after the commit, or without the message and with a crash, the walk finds a
// holder with an old copy.
func TestWalkHolderCanFail(t *testing.T) {
	for name, reads := range map[string]bool{"without reading the source after the commit": false, "without a message": true} {
		w := &holderWalk{cities: map[string]string{"L": "x"}, steps: []func(context.Context, *officeProcess) error{insertsMember("L"), putsOffice("L", "y")},
			runner: func(q *eventual.Queue) intents.Runner { return waived{harness.Runner(q), reads} }}
		if reads {
			w.crashes = 1
		}
		w.walk(t, name).MustDiverge(t)
	}
}

// insideWalk is the same in the partition, where nothing needs a queue: a department and its manager.
type insideWalk struct {
	manager *employee // as he is in the beginning, nil for none
	there   bool      // the department is
	steps   []step
	blind   bool // the holder's transaction leaves the source out
}

// blindHolder is a Holder that does not write the source: its Companions do nothing.
type blindHolder struct{ patterns.Pattern[department] }

func (h blindHolder) Attach(host driver.Host, of *department) (driver.Implementation, error) {
	implementation, err := h.Pattern.Attach(host, of)
	implementation.Companions = func(context.Context, *driver.Change, *tables.Transaction) error { return nil }
	return implementation, err
}

func (w *insideWalk) start(s *storagetest.Service) (*walkProcess, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p, copies := &walkProcess{}, denormalization.NewInPartition("manager", managing(), nil)
	holder := copies.Holder()
	if w.blind {
		holder = blindHolder{holder}
	}
	p.departments, err = patterns.NewRepository(account.Table("Company"), patterns.Schema[department]{Prefix: "dept",
		Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) }}, holder)
	if err != nil {
		return nil, err
	}
	p.employees, err = patterns.NewRepository(account.Table("Company"), patterns.Schema[employee]{Prefix: "empid",
		Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }}, copies.Source())
	return p, err
}

func (w *insideWalk) walk(t *testing.T, name string) explore.Walk {
	t.Helper()
	stage := func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		p := assert.Must[*walkProcess](t)(w.start(s))
		assert.Check(t, p.employees.Table().Create(t.Context()))
		if w.manager != nil {
			copied := *w.manager
			assert.Check(t, p.employees.Insert(t.Context(), &copied))
		}
		if w.there {
			assert.Check(t, p.departments.Insert(t.Context(), &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: 1}))
		}
		stage := explore.InterleavingStage{Check: w.check}
		for _, step := range w.steps {
			stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = step(ctx, p)
				}
				return err
			})
		}
		return stage
	}
	x := explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: stage, Crashes: 1})
	t.Logf("%s: %d states, %d ends; returned %v", name, x.States, x.Ends, x.Returned)
	return x
}

// check is for quiet ends: the department has the manager who names it, as he is.
func (w *insideWalk) check(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	d, err := p.departments.Get(ctx, departmentKey("Sales", "A"))
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := p.employees.Get(ctx, employeeKey("Sales", 1))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	id, name := 0, ""
	if err == nil && e.Manages == "A" {
		id, name = e.ID, e.Name
	}
	if d.ManagerID != id || d.ManagerName != name {
		return fmt.Errorf("the department has the manager %d %q, want %d %q", d.ManagerID, d.ManagerName, id, name)
	}
	return nil
}

func opens(ctx context.Context, p *walkProcess) error {
	return p.departments.Insert(ctx, &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: 1})
}

func closes(ctx context.Context, p *walkProcess) error {
	return p.departments.DeleteUnconditional(ctx, departmentKey("Sales", "A"))
}

func spends(ctx context.Context, p *walkProcess) error {
	_, err := p.departments.Update(ctx, departmentKey("Sales", "A"), func(d *department) error { d.Budget++; return nil })
	return err
}

func comes(ctx context.Context, p *walkProcess) error {
	return p.employees.Insert(ctx, walkEmployee(1, "A"))
}

// TestWalkInside walks through every interleaving of writers of a holder and of its source in one partition.
func TestWalkInside(t *testing.T) {
	states := 0
	for name, w := range map[string]*insideWalk{
		"inserted while the source changes": {manager: walkEmployee(1, "A"), steps: []step{opens, writes(1, "after", true), writes(1, "later", false)}},
		"inserted while the source goes":    {manager: walkEmployee(1, "A"), steps: []step{opens, goes(1)}},
		"inserted while the source comes":   {steps: []step{opens, comes, writes(1, "after", true)}},
		"inserted while it is named":        {manager: walkEmployee(1, ""), steps: []step{opens, writes(1, "after", true)}},
		"deleted, inserted and edited":      {manager: walkEmployee(1, "A"), there: true, steps: []step{closes, opens, spends, writes(1, "after", true)}},
	} {
		if harness.Shortened() && len(w.steps) > 2 {
			continue
		}
		x := w.walk(t, name)
		x.MustConverge(t)
		states += x.States
	}
	t.Logf("%d states, 0 divergences", states)
}

// TestWalkInsideCanFail: a holder whose transaction leaves the source out can be inserted with a copy that is old by then.
func TestWalkInsideCanFail(t *testing.T) {
	w := &insideWalk{manager: walkEmployee(1, "A"), steps: []step{opens, writes(1, "after", true)}, blind: true}
	w.walk(t, "without the source in the transaction").MustDiverge(t)
}
