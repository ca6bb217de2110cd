package tables

import (
	"net/http"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// change is the effect of an operation on its entity.
type change struct {
	op     *request.Operation
	entity *entity.Stored // the new entity; nil for a delete
}

// plan returns what an operation would change. It changes nothing.
func (t *table) plan(op *request.Operation) (change, *protocol.Fault) {
	old := t.rows.Get(op.Partition, op.Row)
	if op.IfMatch != "" {
		if old == nil {
			return change{}, resourceNotFound()
		}
		if op.IfMatch != "*" && op.IfMatch != old.ETag {
			return change{}, protocol.Refuse(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied",
				"The update condition specified in the request was not satisfied.")
		}
	}
	if op.Verb == request.Delete {
		return change{op: op}, nil
	}
	e := &entity.Stored{Partition: op.Partition, Row: op.Row, Properties: op.Properties}
	switch {
	case op.Verb == request.Insert && old != nil:
		return change{}, protocol.Refuse(http.StatusConflict, "EntityAlreadyExists", "The specified entity already exists.")
	case op.Verb == request.Insert:
		return change{op, e}, nil // the properties keep the order of the request
	case op.Verb == request.Merge && old != nil:
		e.Properties = entity.Merged(old.Properties, op.Properties)
		if fault := entity.Check(e.Partition, e.Row, e.Properties); fault != nil {
			return change{}, fault
		}
	}
	e.Sort()
	return change{op, e}, nil
}

// stamps are the timestamps of one change set. According to recorded responses of the service, all inserts
// have one timestamp, and all replaces and merges have another one, including those that insert a row.
type stamps struct {
	clock           *environment.Clock
	insert, replace time.Time // zero until a row needs it
}

// of returns the stamp of a row whose last stamp was last, or the zero Time if it never had one. Two stamps of one row always
// differ, because conditions depend on that.
func (s *stamps) of(v request.Verb, last time.Time) time.Time {
	if s.clock.Still() {
		return s.clock.After(last)
	}
	set := &s.replace
	if v == request.Insert {
		set = &s.insert
	}
	if set.IsZero() {
		*set = s.clock.Stamp()
	}
	return *set
}

// apply applies one change of a change set.
func (t *table) apply(c change, set *stamps) {
	if c.entity == nil {
		if set.clock.Still() {
			t.bury(c.op.Partition, c.op.Row)
		}
		t.rows.Remove(c.op.Partition, c.op.Row)
		return
	}
	c.entity.Stamp(set.of(c.op.Verb, t.lastStamp(c.entity.Partition, c.entity.Row, set.clock)))
	t.rows.Put(c.entity)
}

// lastStamp returns the last stamp of a row; on a still clock, even of a deleted row.
func (t *table) lastStamp(pk, rk string, clock *environment.Clock) time.Time {
	if !clock.Still() {
		return time.Time{}
	}
	if old := t.rows.Get(pk, rk); old != nil {
		last, _ := old.Timestamp.Time()
		return last
	}
	return t.graves[entity.Key{Partition: pk, Row: rk}]
}

// bury keeps the stamp of a deleted row, because the next row with its key must have another ETag.
func (t *table) bury(pk, rk string) {
	old := t.rows.Get(pk, rk)
	if old == nil {
		return
	}
	if t.graves == nil {
		t.graves = map[entity.Key]time.Time{}
	}
	t.graves[entity.Key{Partition: pk, Row: rk}], _ = old.Timestamp.Time()
}

// permit checks the permission for one operation. An operation that may insert or update needs both permissions.
func permit(g *authorization.Grant, op *request.Operation) *protocol.Fault {
	letters := "u"
	switch {
	case op.Verb == request.Insert:
		letters = "a"
	case op.Verb == request.Delete:
		letters = "d"
	case op.IfMatch == "":
		letters = "au"
	}
	fault := g.Entities(op.Table, letters)
	if fault == nil && !g.Covers(op.Partition, op.Row) {
		fault = authorization.Failure()
	}
	return fault
}

// commit applies the operations of one entity group, all or none. With a fault it returns the index of the operation that
// failed.
func (s *Service) commit(g *authorization.Grant, ops []*request.Operation) (changes []change, index int, fault *protocol.Fault) {
	if len(ops) == 0 {
		return nil, 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(ops[0].Table)
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
	if !s.admit(t, ops[0].Partition, len(ops)) {
		return nil, 0, protocol.ServerBusy()
	}
	set := &stamps{clock: s.clock}
	for _, c := range changes {
		t.apply(c, set)
	}
	return changes, 0, nil
}
