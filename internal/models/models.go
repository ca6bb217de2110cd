// Package models explores small models of protocols: it visits all states that can be reached from an initial one in
// any order of steps. Most packages below it hold a model, which is the protocol without the storage service. The
// package that implements the protocol tests its real code separately.
//
// The packages below it:
//
//   - deferred: rows that are written under an intent: by a writer that returns before the closing read, by a worker, and by Rebuild
//   - blobs: blobs that rows name, and the sweep of those that none names
//   - fanout: holders of one partition that are read and written together
//   - marks: copies that are marked before a commit and settled after it, without a queue; it calls the functions of internal/marks
//   - holder: concurrent changes of a holder and of its source
//   - outbox: a handler that is called after each commit
//   - mover, archive: entities that move to another table or to a blob
//   - messages: what all models but holder and marks share: messages, the actors that hold them, crashes and late requests
//   - moves: the ends of a move and its users, for mover and archive
package models

import "fmt"

// Model is a protocol to explore. W is a state.
type Model[W comparable] struct {
	Start W
	// Next emits every successor of a state. Two texts say who did what; they are separate so that a step allocates
	// nothing.
	Next func(from W, emit func(to W, who, what string))
	// Wrong returns the violation in a state, or "".
	Wrong func(W) string
	// Forbids returns why a step must not happen, "" if it may; nil allows all steps.
	Forbids func(from, to W) string
	// Quiet reports whether a state is final: nobody is working and no work is left.
	Quiet func(W) bool
	// Show describes a state in Trace; nil shows only the steps.
	Show func(W) string
	// MaxStates limits the number of states.
	MaxStates int
}

// Result is the result of Walk.
type Result struct {
	States, Quiet int
	// Violation describes the violation in the last state of Trace; "" if the walk found none.
	Violation string
	Trace     []string
	// Stopped reports that the walk reached MaxStates, so that it has not checked the remaining states.
	Stopped bool
}

// walk holds the reached states, each with the state from which it was first reached.
type walk[W comparable] struct {
	*Model[W]
	index  map[W]int32
	worlds []W
	parent []int32
	// next are the successors of all states, those of state i up to ends[i].
	next []int32
	ends []int
}

// Walk visits the states breadth first, so that Trace is a shortest path to the violation. It also requires that a
// final state can be reached from every state.
func (m Model[W]) Walk() Result {
	w := &walk[W]{Model: &m, index: map[W]int32{m.Start: 0}, worlds: []W{m.Start}, parent: []int32{-1}}
	quiet := 0
	for at := int32(0); int(at) < len(w.worlds); at++ {
		if len(w.worlds) > m.MaxStates {
			r := w.result(fmt.Sprintf("the walk was stopped at %d states", len(w.worlds)), at)
			r.Stopped = true
			return r
		}
		if wrong := m.Wrong(w.worlds[at]); wrong != "" {
			return w.result(wrong, at)
		}
		if m.Quiet(w.worlds[at]) {
			quiet++
		}
		if forbidden := w.expand(at); forbidden != "" {
			return w.result(forbidden, at)
		}
	}
	if at := w.stuck(); at >= 0 {
		return w.result("no quiet world can be reached any more", at)
	}
	return Result{States: len(w.worlds), Quiet: quiet}
}

// expand adds the successors of a state, and returns why one of the steps is forbidden.
func (w *walk[W]) expand(at int32) (forbidden string) {
	from := w.worlds[at]
	w.Next(from, func(to W, who, what string) {
		if w.Forbids != nil && forbidden == "" {
			if why := w.Forbids(from, to); why != "" {
				forbidden = who + " " + what + ": " + why
			}
		}
		n, known := w.index[to]
		if !known {
			n = int32(len(w.worlds))
			w.index[to] = n
			w.worlds, w.parent = append(w.worlds, to), append(w.parent, at)
		}
		w.next = append(w.next, n)
	})
	w.ends = append(w.ends, len(w.next))
	return forbidden
}

// stuck returns a state from which no final state can be reached, -1 for none. Most successors have a higher
// number than their state. So it is fast to repeat a pass over all states, from the last to the first, until
// nothing changes.
func (w *walk[W]) stuck() int32 {
	reaches := make([]bool, len(w.worlds))
	for changed := true; changed; {
		changed = false
		for at := len(w.worlds) - 1; at >= 0; at-- {
			if reaches[at] {
				continue
			}
			ok := w.Quiet(w.worlds[at])
			for i := w.begins(at); i < w.ends[at] && !ok; i++ {
				ok = reaches[w.next[i]]
			}
			if ok {
				reaches[at], changed = true, true
			}
		}
	}
	for at, ok := range reaches {
		if !ok {
			return int32(at)
		}
	}
	return -1
}

// begins returns where in next the successors of a state begin.
func (w *walk[W]) begins(at int) int {
	if at == 0 {
		return 0
	}
	return w.ends[at-1]
}

// result returns the result of a walk that ends at a state with a violation.
func (w *walk[W]) result(violation string, at int32) Result {
	r := Result{States: len(w.worlds), Violation: violation}
	var path []int32
	for ; at >= 0; at = w.parent[at] {
		path = append([]int32{at}, path...)
	}
	for i := 1; i < len(path); i++ {
		line := w.label(path[i-1], path[i])
		if w.Show != nil {
			line += ": " + w.Show(w.worlds[path[i]])
		}
		r.Trace = append(r.Trace, line)
	}
	return r
}

func (w *walk[W]) label(from, to int32) (label string) {
	w.Next(w.worlds[from], func(y W, who, what string) {
		if label == "" && y == w.worlds[to] {
			label = who + " " + what
		}
	})
	return label
}
