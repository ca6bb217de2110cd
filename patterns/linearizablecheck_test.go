package patterns_test

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// event is one operation on one entity, as its caller saw it. The entity's state is the stamp of the write that left
// it, and 0 when it is not there; each write has a stamp of its own.
type event struct {
	what string // to print
	kind eventKind
	from int64 // what the operation found, or built on
	to   int64 // what it left
	call int   // when it began
	end  int   // when it was over; never for one that may be applied at any later time
}

type eventKind uint8

const (
	// eventRead found the state from.
	eventRead eventKind = iota
	// eventWrite turned the state from into to. No other write is between them: no update is lost.
	eventWrite
	// eventMaybe is a write that may have been applied, or may be later, until its end, or never.
	eventMaybe
	// eventRefused found that the state was not from.
	eventRefused
	// eventGone is a delete of the state from that was told, after an answer was lost, that the entity is gone. That is
	// what it wanted; a concurrent writer may have been the one who did it.
	eventGone
)

const (
	anyStamp   = -1 // as from: whatever there is, or nothing
	thereStamp = -2 // as from: whatever there is, but something
	never      = math.MaxInt
)

func (e *event) String() string {
	kind := [...]string{"read", "write", "maybe", "refused", "gone"}[e.kind]
	end := "never"
	if e.end != never {
		end = fmt.Sprint(e.end)
	}
	return fmt.Sprintf("%4d..%-5s %-7s %3d -> %-3d  %s", e.call, end, kind, e.from, e.to, e.what)
}

// apply is the register: it returns the state after the event, if the event can happen in this state.
func (e *event) apply(state int64) (next int64, ok bool) {
	found := state == e.from || e.from == anyStamp || e.from == thereStamp && state != 0
	switch e.kind {
	case eventRead:
		return state, found
	case eventRefused:
		return state, state != e.from
	case eventGone:
		return 0, found || state == 0
	}
	return e.to, found
}

// linearizable searches, as Wing and Gong did, for an order of the events in which each happens between its call and its
// end and finds what the one before it left. It remembers the sets of events, with the state they lead to, from which
// no order was found. There are at most 64 events.
func linearizable(events []event) bool {
	s := search{events: events, failed: map[searched]struct{}{}}
	for i := range events {
		if events[i].kind != eventMaybe {
			s.required |= 1 << i
		}
	}
	return s.from(searched{})
}

type searched struct {
	done  uint64
	state int64
}

type search struct {
	events   []event
	required uint64
	failed   map[searched]struct{}
}

func (s *search) from(at searched) bool {
	if s.required&^at.done == 0 {
		return true
	}
	if _, known := s.failed[at]; known {
		return false
	}
	// What is over before another one begins comes before it: the next event began before any that is missing was over.
	deadline := never
	for left := s.required &^ at.done; left != 0; left &= left - 1 {
		deadline = min(deadline, s.events[bits.TrailingZeros64(left)].end)
	}
	begun := 0 // what has ended before the last beginning is too late to come now
	for left := at.done; left != 0; left &= left - 1 {
		begun = max(begun, s.events[bits.TrailingZeros64(left)].call)
	}
	for i := range s.events {
		e := &s.events[i]
		if at.done&(1<<i) != 0 || e.call > deadline || e.end < begun {
			continue
		}
		if next, ok := e.apply(at.state); ok && s.from(searched{at.done | 1<<i, next}) {
			return true
		}
	}
	s.failed[at] = struct{}{}
	return false
}

// TestLinearizableChecker: histories that are in order, and histories that cannot be.
func TestLinearizableChecker(t *testing.T) {
	read := func(call, end int, from int64) event { return event{kind: eventRead, call: call, end: end, from: from} }
	write := func(call, end int, from, to int64) event {
		return event{kind: eventWrite, call: call, end: end, from: from, to: to}
	}
	maybe := func(call int, from, to int64) event {
		return event{kind: eventMaybe, call: call, end: never, from: from, to: to}
	}
	refused := func(call, end int, from int64) event {
		return event{kind: eventRefused, call: call, end: end, from: from}
	}
	gone := func(call, end int, from int64) event { return event{kind: eventGone, call: call, end: end, from: from} }
	for _, c := range []struct {
		name   string
		want   bool
		events []event
	}{
		{"nothing", true, nil},
		{"an insert and its read", true, []event{write(1, 2, 0, 1), read(3, 4, 1)}},
		{"a read of nothing after an insert", false, []event{write(1, 2, 0, 1), read(3, 4, 0)}},
		{"a read of nothing during an insert", true, []event{write(1, 4, 0, 1), read(2, 3, 0)}},
		{"a read of what nobody wrote", false, []event{write(1, 2, 0, 1), read(3, 4, 7)}},
		{"a read before the write", false, []event{read(1, 2, 1), write(3, 4, 0, 1)}},
		{"back in time", false, []event{write(1, 2, 0, 1), write(3, 9, 1, 2), read(4, 5, 2), read(6, 7, 1)}},
		{"two readers during a write", true, []event{write(1, 2, 0, 1), write(3, 9, 1, 2), read(4, 5, 1), read(6, 7, 2)}},
		{"a lost update", false, []event{write(1, 2, 0, 1), write(3, 6, 1, 2), write(4, 5, 1, 3)}},
		{"two inserts", false, []event{write(1, 4, 0, 1), write(2, 3, 0, 2)}},
		{"two inserts and a delete", true, []event{write(1, 4, 0, 1), write(2, 3, 0, 2), write(1, 9, 1, 0)}},
		{"two deletes of one version", false, []event{write(1, 2, 0, 1), write(3, 6, 1, 0), write(4, 5, 1, 0)}},
		{"two deletes, one after a lost answer", true, []event{write(1, 2, 0, 1), write(3, 6, 1, 0), gone(4, 5, 1)}},
		{"gone, and still there", false, []event{write(1, 2, 0, 1), gone(3, 4, 1), read(5, 6, 1)}},
		{"gone, and there was another version all the time", false, []event{write(1, 2, 0, 1), write(3, 4, 1, 2), gone(5, 6, 1), read(7, 8, 2)}},
		{"unknown and seen", true, []event{maybe(1, 0, 1), read(5, 6, 1)}},
		{"unknown and not seen", true, []event{maybe(1, 0, 1), read(5, 6, 0)}},
		{"unknown and seen late", true, []event{maybe(1, 0, 1), read(5, 6, 0), read(7, 8, 1)}},
		{"unknown and seen before it began", false, []event{read(1, 2, 1), maybe(3, 0, 1)}},
		{"unknown, seen and gone again", false, []event{maybe(1, 0, 1), read(5, 6, 1), read(7, 8, 0)}},
		{"unknown, overtaken, and applied all the same", false, []event{write(1, 2, 0, 1), maybe(3, 1, 2), write(4, 5, 1, 3), read(6, 7, 2)}},
		{"two unknown ones in a row", true, []event{maybe(1, 0, 1), maybe(2, 1, 2), read(5, 6, 2)}},
		{"unknown until its end, and later", false, []event{{kind: eventMaybe, call: 1, end: 2, to: 1}, read(3, 4, 0), read(5, 6, 1)}},
		{"unknown until its end, during a read", true, []event{{kind: eventMaybe, call: 1, end: 4, to: 1}, read(3, 5, 0), read(6, 7, 1)}},
		{"an insert that is repeated after a concurrent writer's delete", false, []event{write(1, 8, 0, 1), write(2, 3, thereStamp, 0), read(4, 5, 0), read(9, 10, 1)}},
		{"its echo", true, []event{write(1, 8, 0, 1), write(2, 3, thereStamp, 0), read(4, 5, 0), read(9, 10, 1), {kind: eventMaybe, call: 1, end: 8, to: 1}}},
		{"a plain failure that was applied", false, []event{write(1, 2, 0, 1), read(5, 6, 2)}},
		{"refused rightly", true, []event{write(1, 2, 0, 1), write(3, 4, 1, 2), refused(5, 6, 1)}},
		{"refused without a reason", false, []event{write(1, 2, 0, 1), refused(3, 4, 1)}},
		{"refused during the concurrent writer's write", true, []event{write(1, 2, 0, 1), write(3, 9, 1, 2), refused(4, 5, 1)}},
		{"refused because of one's own echo", true, []event{write(1, 2, 0, 1), maybe(3, 1, 2), refused(4, 5, 1)}},
		{"overwritten, whatever it was", true, []event{write(1, 2, 0, 1), write(3, 4, anyStamp, 2), read(5, 6, 2)}},
		{"deleted, whatever it was", false, []event{write(1, 2, thereStamp, 0)}},
	} {
		if got := linearizable(c.events); got != c.want {
			t.Errorf("%s: linearizable is %v", c.name, got)
		}
	}
}
