package simulator

import (
	"net/http"
	"time"
)

// change is what an operation makes of its entity: another one, or none.
type change struct {
	op     *operation
	entity *entity // nil for a delete
}

// plan finds what an operation would change, without changing anything.
func (t *table) plan(op *operation) (change, *Fault) {
	old := t.rows.get(op.pk, op.rk)
	if op.ifMatch != "" {
		if old == nil {
			return change{}, faultNotFound()
		}
		if op.ifMatch != "*" && op.ifMatch != old.etag {
			return change{}, refuse(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied",
				"The update condition specified in the request was not satisfied.")
		}
	}
	if op.verb == verbDelete {
		return change{op: op}, nil
	}
	e := &entity{pk: op.pk, rk: op.rk, properties: op.properties}
	switch {
	case op.verb == verbInsert && old != nil:
		return change{}, refuse(http.StatusConflict, "EntityAlreadyExists", "The specified entity already exists.")
	case op.verb == verbInsert:
		return change{op, e}, nil // keeps the order of its request
	case op.verb == verbMerge && old != nil:
		e.properties = merged(old.properties, op.properties)
		if fault := checkEntity(e.pk, e.rk, e.properties); fault != nil {
			return change{}, fault
		}
	}
	e.sorted()
	return change{op, e}, nil
}

// stamps are the timestamps of one change set, as recorded answers of the service have them: one for all inserts, and one
// for all replaces and merges, those among them that insert a row included.
type stamps struct {
	clock           *Clock
	insert, replace time.Time // zero until a row needs it
}

// of returns the stamp of a row whose last stamp was last, the zero Time for a row that never had one. Two stamps of one
// row differ, since conditions rely on that.
func (s *stamps) of(v verb, last time.Time) time.Time {
	if s.clock.Still() {
		return s.clock.After(last)
	}
	set := &s.replace
	if v == verbInsert {
		set = &s.insert
	}
	if set.IsZero() {
		*set = s.clock.Stamp()
	}
	return *set
}

// apply carries a change of a change set out.
func (t *table) apply(c change, set *stamps) {
	if c.entity == nil {
		if set.clock.Still() {
			t.bury(c.op.pk, c.op.rk)
		}
		t.rows.remove(c.op.pk, c.op.rk)
		return
	}
	c.entity.stamp(set.of(c.op.verb, t.lastStamp(c.entity.pk, c.entity.rk, set.clock)))
	t.rows.put(c.entity)
}

// lastStamp is the last stamp of the row with the key, also of one that is gone, where the clock is still.
func (t *table) lastStamp(pk, rk string, clock *Clock) time.Time {
	if !clock.Still() {
		return time.Time{}
	}
	if old := t.rows.get(pk, rk); old != nil {
		last, _ := old.timestamp.Time()
		return last
	}
	return t.graves[rowKey{pk, rk}]
}

// bury keeps the stamp of a row that goes: the next row with its key must have another ETag.
func (t *table) bury(pk, rk string) {
	old := t.rows.get(pk, rk)
	if old == nil {
		return
	}
	if t.graves == nil {
		t.graves = map[rowKey]time.Time{}
	}
	t.graves[rowKey{pk, rk}], _ = old.timestamp.Time()
}

// permit checks access for one operation. What inserts if there is nothing to update needs both permissions.
func permit(g *Grant, op *operation) *Fault {
	letters := "u"
	switch {
	case op.verb == verbInsert:
		letters = "a"
	case op.verb == verbDelete:
		letters = "d"
	case op.ifMatch == "":
		letters = "au"
	}
	fault := g.Entities(op.table, letters)
	if fault == nil && !g.Covers(op.pk, op.rk) {
		fault = FaultAuthorization()
	}
	return fault
}

// commit carries operations of one entity group out, all of them or none. The fault comes with the index of the operation
// that failed.
func (s *tableService) commit(g *Grant, ops []*operation) (changes []change, index int, fault *Fault) {
	if len(ops) == 0 {
		return nil, 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(ops[0].table)
	if fault != nil {
		return nil, 0, fault
	}
	changes = make([]change, len(ops))
	for i, op := range ops {
		if fault := permit(g, op); fault != nil {
			return nil, i, fault
		}
		if changes[i], fault = t.plan(op); fault != nil {
			return nil, i, fault
		}
	}
	if !s.admit(t, ops[0].pk, len(ops)) {
		return nil, 0, faultServerBusy()
	}
	set := &stamps{clock: s.clock}
	for _, c := range changes {
		t.apply(c, set)
	}
	return changes, 0, nil
}
