package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// actor is one writer. When its process dies, another one goes on, which has read nothing yet.
type actor struct {
	h       *history
	id      int
	service *storagetest.Service
	rng     *rand.Rand
	wait    func() // for the actor's turn; nil where the service sees to that
	repo    *members
	calls   *storagetest.Faults
	met     int             // faults before the operation
	held    map[int]*member // as read or written last, which may be long ago
}

func (a *actor) run(ctx context.Context) {
	a.restart()
	for a.h.begin() {
		a.next(ctx)
	}
}

// next makes an operation, and a new process if that was the end of this one.
func (a *actor) next(ctx context.Context) {
	a.operate(ctx)
	if a.calls.Dead() {
		a.h.count(&a.h.deaths)
		a.h.note("actor %d: a new process", a.id)
		a.restart()
	}
}

func (a *actor) restart() {
	clear(a.held)
	s, calls := a.service.Faulty(a.h.inject(a))
	if a.wait != nil {
		s = s.WithTransport(func(inner policy.Transporter) policy.Transporter { return turnTaking{inner, func() { a.wait() }} })
	}
	open := openMembers
	if a.bare() {
		open = openBareMembers
	}
	repo, err := open(s, "Members")
	if err != nil {
		panic(err) // nothing of it depends on the seed
	}
	a.repo, a.calls = repo, calls
}

// bare reports whether the actor is a program of before there were indexes.
func (a *actor) bare() bool { return a.h.rollout && a.id == 0 }

// operate makes one operation.
func (a *actor) operate(ctx context.Context) {
	id := a.rng.IntN(historyKeys)
	held := a.held[id]
	if held == nil && a.rng.IntN(3) == 0 {
		a.insert(ctx, id)
		return
	}
	switch n := a.rng.IntN(20); {
	case n < 3 || n < 14 && held == nil:
		a.get(ctx, id)
	case n < 5:
		a.replace(ctx, id, held)
	case n < 7:
		a.merge(ctx, id, held)
	case n < 9:
		a.delete(ctx, id, held)
	case n < 11:
		a.insert(ctx, id)
	case n < 14:
		a.update(ctx, id)
	case n < 15:
		a.upsert(ctx, id)
	case n < 16:
		a.deleteUnconditional(ctx, id)
	case n < 18 && !a.bare():
		a.getByEmail(ctx)
	default:
		a.query(ctx)
	}
}

// edit makes a new version: other index keys, of which few exist.
func (a *actor) edit(m *member, stamp int64) {
	m.Name = []string{"Ann", "Bob"}[a.rng.IntN(2)]
	m.Email = []string{"", "", "", "x", "y", "z"}[a.rng.IntN(6)]
	m.Tags = [][]string{nil, {"go"}, {"go", "sql"}}[a.rng.IntN(3)]
	m.Count++
	m.Stamp = stamp
}

func (a *actor) fresh(id int) *member {
	m := &member{Team: historyTeam, ID: id}
	a.edit(m, a.h.nextStamp())
	return m
}

// begin notes a call and returns what makes its event.
func (a *actor) begin(id int, what string, from, to int64) event {
	a.met = len(a.calls.Met())
	e := event{what: fmt.Sprintf("actor %d: %s", a.id, what), from: from, to: to, call: a.h.tick()}
	a.h.note("actor %d: %s of %d begins, %d -> %d", a.id, what, id, from, to)
	return e
}

// written files a write by what its caller was told.
func (a *actor) written(id int, e event, err error) {
	h := a.h
	e.end = h.tick()
	h.note("%s of %d: %v", e.what, id, err)
	var told *tables.Error
	switch {
	case err == nil:
		h.count(&h.applied)
		e.kind = eventWrite
	case errors.Is(err, tables.ErrUnknownOutcome):
		h.count(&h.unknown)
		e.kind, e.end = eventMaybe, never
	case errors.Is(err, tables.ErrDuplicate):
		h.count(&h.refused)
		return // it has no effect; that two members never have one email is checked elsewhere
	case errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrConflict):
		h.count(&h.refused)
		e.kind = eventRefused
	case errors.Is(err, tables.ErrNotFound) && errors.As(err, &told):
		h.count(&h.refused)
		e.kind = eventRefused
		if told.Pattern == "" && told.Key == memberKey(historyTeam, id) {
			e.kind, e.from = eventRead, 0
		}
	default:
		h.count(&h.failed)
		return // nothing of it is ever to be seen
	}
	if e.kind == eventRefused && e.from < 0 {
		return // concurrent writers were in the way every time: no statement about any one moment
	}
	h.add(id, e)
}

func (a *actor) get(ctx context.Context, id int) {
	e := a.begin(id, "Get", 0, 0)
	m, err := a.repo.Get(ctx, memberKey(historyTeam, id))
	a.seen(id, m, err, e)
}

// seen files a read, and keeps what was read.
func (a *actor) seen(id int, m *member, err error, e event) {
	a.h.note("%s of %d: %v, %v", e.what, id, m != nil, err)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		a.h.count(&a.h.failed)
		return
	}
	a.h.saw(id, m, e.call, e.what)
	delete(a.held, id)
	if m != nil {
		a.held[id] = m
	}
}

func (a *actor) getByEmail(ctx context.Context) {
	email := []string{"x", "y", "z"}[a.rng.IntN(3)]
	e := a.begin(-1, "Get by email "+email, 0, 0)
	m, err := a.repo.byEmail.In(historyTeam).Get(ctx, compoundkey.String(email))
	switch {
	case err != nil:
	case a.h.rollout:
		a.held[m.ID] = m // it may be left behind; then no write may build on it
	default:
		a.seen(m.ID, m, nil, e)
	}
}

func (a *actor) query(ctx context.Context) {
	e := a.begin(-1, "Query", 0, 0)
	found := map[int]*member{}
	for m, err := range a.repo.Query().Partition(historyTeam).All(ctx) {
		if err != nil {
			a.h.count(&a.h.failed)
			return
		}
		found[m.ID] = m
	}
	for id := range historyKeys {
		a.h.saw(id, found[id], e.call, e.what)
	}
}

func (a *actor) hadFaults() bool { return len(a.calls.Met()) > a.met }

// echo files what can become of an insert that the SDK repeats: the first attempt was applied and its answer lost, a
// concurrent writer deleted the entity, and the second attempt inserted it once more. An insert has no condition that could tell.
func (a *actor) echo(id int, e event) {
	if a.h.retries > 0 && a.hadFaults() {
		e.what, e.kind, e.from, e.end = e.what+", repeated", eventMaybe, 0, a.h.tick()
		a.h.mu.Lock()
		defer a.h.mu.Unlock()
		a.h.echoes[id] = append(a.h.echoes[id], e)
	}
}

func (a *actor) insert(ctx context.Context, id int) {
	m := a.fresh(id)
	e := a.begin(id, "Insert", 0, m.Stamp)
	err := a.repo.Insert(ctx, m)
	a.written(id, e, err)
	a.echo(id, e)
	a.keep(id, m, err)
}

// keep holds on to what was written.
func (a *actor) keep(id int, m *member, err error) {
	if err == nil {
		a.held[id] = m
	}
}

func (a *actor) replace(ctx context.Context, id int, held *member) {
	m := *held
	a.edit(&m, a.h.nextStamp())
	e := a.begin(id, "Replace", held.Stamp, m.Stamp)
	err := a.h.replace(ctx, a.repo, &m)
	a.written(id, e, err)
	a.keep(id, &m, err)
}

func (a *actor) merge(ctx context.Context, id int, held *member) {
	m := *held
	m.Stamp, m.Name = a.h.nextStamp(), "Cid"
	e := a.begin(id, "Merge", held.Stamp, m.Stamp)
	err := a.repo.Merge(ctx, &m, "Name", "Stamp")
	a.written(id, e, err)
	a.keep(id, &m, err)
}

func (a *actor) delete(ctx context.Context, id int, held *member) {
	m := *held
	e := a.begin(id, "Delete", held.Stamp, 0)
	a.deleted(id, e, a.repo.Delete(ctx, &m))
}

// deleted files a delete. After a lost answer, gone is all that it can know.
func (a *actor) deleted(id int, e event, err error) {
	if err == nil && a.hadFaults() {
		a.h.count(&a.h.applied)
		e.kind, e.end = eventGone, a.h.tick()
		a.h.note("%s of %d: gone", e.what, id)
		a.h.add(id, e)
	} else {
		a.written(id, e, err)
	}
	if err == nil {
		delete(a.held, id)
	}
}

func (a *actor) deleteUnconditional(ctx context.Context, id int) {
	e := a.begin(id, "DeleteUnconditional", thereStamp, 0)
	a.deleted(id, e, a.repo.DeleteUnconditional(ctx, memberKey(historyTeam, id)))
}

func (a *actor) upsert(ctx context.Context, id int) {
	m := a.fresh(id)
	e := a.begin(id, "Upsert", anyStamp, m.Stamp)
	err := a.repo.Upsert(ctx, m)
	a.written(id, e, err)
	a.echo(id, e)
	a.keep(id, m, err)
}

func (a *actor) update(ctx context.Context, id int) {
	stamp := a.h.nextStamp()
	e := a.begin(id, "Update", anyStamp, stamp)
	m, err := a.repo.Update(ctx, memberKey(historyTeam, id), func(m *member) error {
		e.from = m.Stamp
		a.edit(m, stamp)
		return nil
	})
	if errors.Is(err, tables.ErrConflict) {
		e.from = anyStamp // of its many attempts, the last one's
	}
	a.written(id, e, err)
	a.keep(id, m, err)
}
