package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/background"
)

const (
	opMark   = "Mark" // the names of the steps in errors and telemetry
	opSettle = "Settle"

	groupsAtOnce    = 32 // partitions of indexes that are written at the same time
	maxMarkAttempts = 8  // of a transaction of marks whose rows concurrent writers change
	maxLost         = 2  // of a transaction of marks whose response is lost

	errMarkedTooLong = "the term of the marks in other partitions ended before the response to the write of the entity; nothing is written, so repeat the change. " +
		"If the upload of a value takes that long, insert the entity without the value, and replace it then"
)

// marking is what one attempt of a change set does to the copies of its entities in other partitions, by the protocol of package marks.
type marking struct {
	id      string
	term    lease.Term
	members []marks.Member
	works   []*Work // of members
	homes   map[marks.Site]home
	places  []marks.Place
	settled []tablerow.Row // for each place after the commit: the row that settles it, without a pattern if there is none
	rules   marks.Rules    // those to do without; for tests
}

// home is the pattern to which a site belongs.
type home struct {
	engine  *Engine
	pattern *driver.Implementation
}

// planMarks returns what the present plan of the set does in other partitions; Draft has computed the properties to store.
func (s *Set) planMarks(ctx context.Context) (*marking, error) {
	if !slices.ContainsFunc(s.members, func(w *Work) bool { return len(w.engine.Outside) > 0 }) {
		return &marking{}, nil
	}
	m := &marking{homes: map[marks.Site]home{}, rules: marks.Waived(ctx)}
	for _, w := range s.members {
		if len(w.engine.Outside) == 0 {
			continue
		}
		member := marks.Member{Entity: marks.Key(w.Change.Key), Base: string(w.Etag)}
		for _, p := range w.engine.Outside {
			had, has, err := w.moves(p)
			if err != nil {
				return nil, w.Located(PatternError(p, err, entity.ErrInvalid))
			}
			for _, site := range slices.Concat(had, has) {
				m.homes[site] = home{w.engine, p}
			}
			member.Had, member.Has = append(member.Had, had...), append(member.Has, has...)
		}
		m.members, m.works = append(m.members, member), append(m.works, w)
	}
	return m, nil
}

// moves returns the sites of a pattern's copies of the member before and after the change, without those that the change leaves as they are.
func (w *Work) moves(p *driver.Implementation) (had, has []marks.Site, err error) {
	before := slices.Clone(priorOf(w.Old).outsideOf(p.Name))
	if w.Change.Kind != driver.ChangeDelete {
		copies, err := w.Copies().Outside(p)
		if err != nil {
			return nil, nil, err
		}
		for i := range copies {
			at := slices.IndexFunc(before, func(o outsideCopy) bool { return o.key == copies[i].Key })
			if at >= 0 && before[at].holds(w.Change.Stored, copies[i].Keep) {
				before = slices.Delete(before, at, at+1)
				continue
			}
			has = append(has, siteOf(p, copies[i].Key))
		}
	}
	for _, o := range before {
		had = append(had, siteOf(p, o.key))
	}
	return had, has, nil
}

// holds reports whether the copy already has what it is to hold: it is a projection, which does not name the version of the entity.
func (o *outsideCopy) holds(stored entity.Properties, keep []string) bool {
	if keep == nil || o.kept == nil {
		return false
	}
	kept := stored.Only(keep)
	return len(kept) == len(o.kept) && holdAll(o.kept, kept)
}

// holdAll reports whether properties have all of some with the same values.
func holdAll(properties, some entity.Properties) bool {
	return !slices.ContainsFunc(some, func(p entity.Property) bool { return !properties.Has(p.Name) || properties.Get(p.Name) != p.Value })
}

// siteOf returns where a copy of a pattern lies.
func siteOf(p *driver.Implementation, key entity.Key) marks.Site {
	return marks.Site{Table: OutsideTable(p).ID(), Key: marks.Key(key)}
}

// mark marks the copies that the present plan makes wrong, and acquires the keys that it takes, unless an attempt before has done just that.
func (s *Set) mark(ctx context.Context, d *draft) error {
	m, err := s.planMarks(ctx)
	if err != nil || s.marking != nil && s.marking.serves(m) {
		return err
	}
	s.settle(ctx, marks.Refused, (*background.Tasks).Now) // a key that is not released would be refused to the next attempt
	if len(m.members) == 0 {
		return nil
	}
	if err := d.check(); err != nil { // what would be refused after the first row is marked
		return s.locate(d, err)
	}
	for _, w := range m.works {
		if err := w.checkOutside(); err != nil {
			return w.Located(err)
		}
	}
	m.id, m.term = tablerow.NewWriteID(), lease.Term{Since: time.Now(), Lasts: marks.Term, Cause: errMarkedTooLong}
	var twice *marks.Site
	if m.places, twice = marks.Plan(m.id, m.members, m.rules); twice != nil {
		return s.located(&entity.Error{Key: entity.Key(twice.Key), Pattern: m.homes[*twice].pattern.Name, Kind: entity.ErrDuplicate,
			Err: errors.New("two entities of the change have this key; give each its own")})
	}
	s.marking = m
	return m.each(func(_ int, places []marks.Place) error { return m.writeGroup(ctx, places) })
}

// serves reports whether the marks also serve another plan. They must be young enough, since each attempt of the commit is sent within their term.
func (m *marking) serves(plan *marking) bool {
	return reflect.DeepEqual(m.members, plan.members) && lease.Elapsed(m.term.Since) < marks.Term/2 &&
		!slices.ContainsFunc(m.places, func(p marks.Place) bool { return p.Verb != marks.None })
}

// each calls do for each group of places that one transaction writes, several at once, and returns the first error in their order. from is the
// index of the first place of the group.
func (m *marking) each(do func(from int, places []marks.Place) error) error {
	groups := marks.Groups(m.places)
	if len(groups) == 1 {
		return do(0, groups[0])
	}
	failures, slots := make([]error, len(groups)), make(chan struct{}, groupsAtOnce)
	var all sync.WaitGroup
	from := 0
	for i, group := range groups {
		slots <- struct{}{}
		at := from
		from += len(group)
		all.Go(func() {
			defer func() { <-slots }()
			failures[i] = do(at, group)
		})
	}
	all.Wait()
	return cmp.Or(failures...)
}

// writeGroup marks places of one partition. A refusal names a row that is not as expected: then its place is decided again, and
// the transaction is repeated.
func (m *marking) writeGroup(ctx context.Context, places []marks.Place) error {
	for attempt := 0; ; attempt++ {
		var writes []tablerow.Row
		var of []*marks.Place
		for i := range places {
			p := &places[i]
			if p.Verb == marks.Read {
				if err := m.decide(ctx, p); err != nil {
					return err
				}
			}
			if p.Verb != marks.None {
				writes, of = append(writes, m.row(p)), append(of, p)
			}
		}
		if len(writes) == 0 {
			return nil
		}
		etags, _, err := m.table(of[0]).CommitWithin(ctx, core.Bounds{Term: m.term}, opMark, writes...)
		if err == nil {
			for i, p := range of {
				p.Wrote(string(etags[i]))
			}
			return nil
		}
		refused := refusedRow(err, len(writes))
		switch {
		case errors.Is(err, entity.ErrUnknownOutcome) && attempt < maxLost && ctx.Err() == nil:
			for _, p := range of {
				p.Lost()
			}
		case refused >= 0 && attempt < len(places)+maxMarkAttempts:
			of[refused].Refused()
		default:
			return m.located(of[max(refused, 0)], onlyMarked(err))
		}
	}
}

// refusedRow returns the index of the row because of which a transaction of n rows was refused, -1 if it was not because of what is there.
func refusedRow(err error, n int) int {
	e := AsError(err)
	switch {
	case e == nil || !Lost(e):
		return -1
	case n == 1:
		return 0
	}
	return e.Change - 1
}

// onlyMarked makes an unknown outcome of marks a failure: the entity is certainly not written.
func onlyMarked(err error) error {
	return errs.Amend(err, func(e *entity.Error) {
		if e.Kind == entity.ErrUnknownOutcome {
			e.Kind = entity.ErrUnavailable
		}
	})
}

func (m *marking) table(p *marks.Place) *core.Table { return OutsideTable(m.homes[p.Site].pattern) }

// row returns the row that marks a place.
func (m *marking) row(p *marks.Place) tablerow.Row {
	content := p.Content()
	row := tablerow.Row{Key: entity.Key(p.Key), Pattern: m.homes[p.Site].pattern.Name, Own: outsideOf(&content)}
	switch p.Verb {
	case marks.Merge:
		row.Verb, row.IfMatch = wire.VerbMerge, azcore.ETagAny
	case marks.Insert:
		row.Verb = wire.VerbInsert
	case marks.Replace:
		row.Verb, row.IfMatch = wire.VerbReplace, azcore.ETag(p.Under)
	}
	return row
}

// outsideOf returns the library's own properties of a row of package marks.
func outsideOf(m *marks.Row) tablerow.Own {
	own := tablerow.Own{Outside: tablerow.Outside{Version: m.Version, Mark: m.Mark, Acquirer: m.Acquirer, Base: m.Base}}
	if len(m.Names) > 0 {
		own.IsCopy, own.Primary, own.Outside.Is, own.Outside.Partition = true, m.Names[0].Row, true, m.Names[0].Partition
	}
	if len(m.Names) > 1 {
		own.Outside.Next = driver.JoinKey(entity.Key(m.Names[1]))
	}
	return own
}

// marksOf returns a stored row as package marks sees it; nil is a row that does not exist.
func marksOf(row *tablerow.Row) marks.Row {
	if row == nil {
		return marks.Row{}
	}
	o := &row.Own.Outside
	m := marks.Row{Version: o.Version, Mark: o.Mark, Acquirer: o.Acquirer, Base: o.Base, ETag: string(row.ETag), Written: row.Timestamp, Answered: row.Answered}
	if o.Is && !row.Own.IsShared {
		m.Names = append(m.Names, marks.Key{Partition: o.Partition, Row: row.Own.Primary})
		if next, err := driver.SplitKey(o.Next); err == nil {
			m.Names = append(m.Names, marks.Key(next))
		}
	}
	return m
}

// decide reads the row of a place, then the entities that it names, and decides how the place is marked.
func (m *marking) decide(ctx context.Context, p *marks.Place) error {
	h := m.homes[p.Site]
	row, err := readElsewhere(ctx, OutsideTable(h.pattern), opMark, entity.Key(p.Key), map[string]int{})
	if err != nil {
		return m.located(p, err)
	}
	there := marksOf(row)
	var seen []marks.Seen
	for _, key := range p.Asks(&there) {
		now, err := h.engine.holder(ctx, opMark, OutsideTable(h.pattern), entity.Key(key), entity.Key(p.Key))
		if err != nil {
			return m.located(p, err)
		}
		seen = append(seen, now.seen())
	}
	if err := m.refusal(p, row, &there, p.Decide(&there, seen)); err != nil {
		p.Fresh = false // the row is somebody else's
		return m.located(p, err)
	}
	return nil
}

// refusal returns the error of a verdict, nil if the change may write its mark.
func (m *marking) refusal(p *marks.Place, row *tablerow.Row, there *marks.Row, v marks.Verdict) error {
	taken := func(err error) error {
		return &entity.Error{Key: entity.Key(p.Key), Kind: entity.ErrDuplicate, Pattern: m.homes[p.Site].pattern.Name, Err: err}
	}
	member := entity.Key(p.Acquirer().Entity)
	switch v {
	case marks.Allowed:
		return nil
	case marks.Conflict:
		return &entity.Error{Key: member, Kind: entity.ErrConflict}
	case marks.Exists:
		return &entity.Error{Key: member, Kind: entity.ErrExists}
	case marks.Inserting:
		return &entity.Error{Key: member, Kind: entity.ErrConflict,
			Err: fmt.Errorf("another insert of the entity is under way, or its process has died; repeat the change in %v", marks.Term+marks.Grace)}
	case marks.Taking:
		by := there.Names[len(there.Names)-1]
		return taken(fmt.Errorf("a change of entity (%q, %q) is taking this key; if its process has died, the key is free again in %v", by.Partition, by.Row, marks.Term+marks.Grace))
	}
	return taken(OwnerOf(row))
}

// located adds what a failed mark was for. If the change of a companion is refused because the companion has changed, a new plan can succeed.
func (m *marking) located(p *marks.Place, err error) error {
	w := m.works[0]
	for i := range m.members {
		if &m.members[i] == p.Acquirer() {
			w = m.works[i]
		}
	}
	of := AsError(err)
	if of == nil {
		return err
	}
	err = w.Located(PatternError(m.homes[p.Site].pattern, err, entity.ErrInvalid))
	return errs.Amend(err, func(e *entity.Error) {
		if Lost(e) {
			e.Pattern = w.companionOf
		} else if of.Table != "" {
			e.Table, e.Key = of.Table, entity.Key(p.Key) // the table of the copies failed
		}
	})
}

// settle does what is left to do with the marked rows once the outcome of the commit is known; do is (*background.Tasks).Do or (*background.Tasks).Now.
func (s *Set) settle(ctx context.Context, o marks.Outcome, do func(*background.Tasks, context.Context, func(context.Context))) {
	m, rest := s.marking, s.own[0].engine.Schema.Rest
	if s.marking = nil; m == nil {
		return
	}
	m.settled = make([]tablerow.Row, len(m.places))
	if o == marks.Committed { // before the caller goes on, and perhaps changes the entity
		for i := range m.places {
			m.settled[i] = m.settle(&m.places[i])
		}
	}
	do(rest, ctx, func(ctx context.Context) { m.complete(ctx, rest, o) })
}

// complete does what is left once the outcome is known, and schedules what can only be done later.
func (m *marking) complete(ctx context.Context, rest *background.Tasks, o marks.Outcome) {
	if o == marks.Unknown && !m.rules.Has(marks.LeaveUnknown) { // by then the transaction has arrived, or never will, and its entities show which
		rest.Later(ctx, marks.Margin+time.Second, func(ctx context.Context) { m.complete(ctx, rest, marks.Refused) })
		return
	}
	if left := m.finish(ctx, o); len(left) > 0 {
		rest.Later(ctx, marks.Term+marks.Grace+marks.Margin, func(ctx context.Context) { m.tidy(ctx, left) })
	}
}

// finish settles or releases the rows, each under the ETag of its mark, one transaction for each partition, and returns the places that stay
// marked and should not. If a row has another ETag, another change has marked it, and settles it.
func (m *marking) finish(ctx context.Context, o marks.Outcome) (left []marks.Place) {
	var mu sync.Mutex
	_ = m.each(func(from int, places []marks.Place) error {
		var writes []tablerow.Row
		var stay []marks.Place
		for i := range places {
			if m.homes[places[i].Site].engine.Schema.OtherBuilds {
				continue // stays marked, since a build that does not know the index may write the entity
			}
			if row, ok := m.after(ctx, from+i, o); ok {
				writes = append(writes, row)
			} else if places[i].Mark != "" || places[i].Verb != marks.None {
				stay = append(stay, places[i])
			}
		}
		if err := writeUnchanged(ctx, m.table(&places[0]), opSettle, writes); err != nil {
			stay = places
		}
		mu.Lock()
		defer mu.Unlock()
		left = append(left, stay...)
		return nil
	})
	return left
}

// tidy settles what has stayed marked, after the term of the marks.
func (m *marking) tidy(ctx context.Context, left []marks.Place) {
	sites := map[home][]*Site{}
	for i := range left {
		h := m.homes[left[i].Site]
		sites[h] = append(sites[h], &Site{Key: entity.Key(left[i].Key), Entity: entity.Key(left[i].Acquirer().Entity)})
	}
	for h, all := range sites {
		if err := h.engine.Agree(ctx, opSettle, OutsideTable(h.pattern), tablerow.NewWriteID(), all); err != nil {
			marksLeft(ctx, OutsideTable(h.pattern), len(all), err)
		}
	}
}

// marksLeft reports copies that stay marked because a request failed. Their readers are right all the same.
func marksLeft(ctx context.Context, table *core.Table, copies int, err error) {
	table.Account().Telemetry().MarksLeft(ctx, table.Name(), copies, err)
}

// after returns the row that settles or releases a place; ok is false if the place stays marked. If that is because a read failed, after reports it.
func (m *marking) after(ctx context.Context, i int, o marks.Outcome) (row tablerow.Row, ok bool) {
	p := &m.places[i]
	h := m.homes[p.Site]
	if p.Mark == "" && p.Fresh && p.Verb != marks.None { // the answer to the mark was lost
		there, err := readElsewhere(ctx, OutsideTable(h.pattern), opSettle, entity.Key(p.Key), map[string]int{})
		if err != nil {
			marksLeft(ctx, OutsideTable(h.pattern), 1, err)
			return row, false
		}
		if found := marksOf(there); !p.Found(&found) {
			return row, false
		}
	}
	verb := p.After(o)
	if verb == marks.Read {
		now, err := h.engine.holder(ctx, opSettle, OutsideTable(h.pattern), entity.Key(p.Acquirer().Entity), entity.Key(p.Key))
		if err != nil {
			marksLeft(ctx, OutsideTable(h.pattern), 1, err)
			return row, false
		}
		verb = p.Release(now.seen())
	}
	switch verb {
	case marks.Delete:
		return tablerow.Row{Verb: wire.VerbDelete, Key: entity.Key(p.Key), IfMatch: azcore.ETag(p.Mark)}, true
	case marks.Replace:
		return m.settled[i], m.settled[i].Pattern != ""
	}
	return row, false
}

// settle returns the row that settles a place, the zero value if it has no taker or the taker's ETag is not known.
func (m *marking) settle(p *marks.Place) (row tablerow.Row) {
	h := m.homes[p.Site]
	for i := range m.members {
		w := m.works[i]
		if &m.members[i] != p.Taker || w.after == nil {
			continue
		}
		copies, err := w.after.copies.Outside(h.pattern)
		for j := range copies {
			if err == nil && copies[j].Key == entity.Key(p.Key) {
				row = h.engine.copyOf(h.pattern, w.after.row, &copies[j])
				row.Verb, row.IfMatch = wire.VerbReplace, azcore.ETag(p.Mark)
			}
		}
	}
	return row
}

// copyOf returns the settled copy that a pattern makes of an entity, given its own row with every stored property.
func (r *Engine) copyOf(p *driver.Implementation, own *tablerow.Row, copied *driver.OutsideCopy) tablerow.Row {
	row := tablerow.Row{Key: copied.Key, Pattern: p.Name, Properties: own.Properties.Only(copied.Keep), Made: own.WriteID,
		Own: tablerow.Own{Incarnation: own.Own.Incarnation, IsCopy: true, Primary: own.Key.Row, Outside: tablerow.Outside{Is: true, Partition: own.Key.Partition}}}
	if copied.Keep == nil {
		row.Own.Copies, row.Own.Later, row.Own.Outside.Version = own.Own.Copies, own.Own.Later, string(own.ETag)
	}
	return row
}

// writeUnchanged writes rows of one partition, each under its ETag, and leaves out those that have changed. It reports rows that stay marked because
// the request failed.
func writeUnchanged(ctx context.Context, table *core.Table, op string, writes []tablerow.Row) error {
	sites := make([]*Site, len(writes))
	for i := range writes {
		sites[i] = &Site{row: writes[i]}
	}
	err := writeTogether(ctx, op, table, sites)
	if err != nil {
		marksLeft(ctx, table, len(writes), err)
	}
	return err
}

// Elsewhere returns the copies in other partitions that the present plan of the set marks, as "pattern: key", and how many transactions mark them. It
// sends nothing.
func (s *Set) Elsewhere(ctx context.Context) (copies []string, groups int, err error) {
	m, err := s.planMarks(ctx)
	if err != nil {
		return nil, 0, err
	}
	places, _ := marks.Plan("", m.members, 0)
	for _, p := range places {
		copies = append(copies, m.homes[p.Site].pattern.Name+": "+driver.JoinKey(entity.Key(p.Key)))
	}
	return copies, len(marks.Groups(places)), nil
}
