// Package models walks small models of protocols: all worlds that can be reached from a first one, whoever acts next. The
// packages below it hold a model each. A model is the protocol written down without the storage service; the package that
// implements the protocol has its own walks of the real code.
package models

import "fmt"

// Model is a protocol to be walked. W is one state of its world.
type Model[W comparable] struct {
	Start W
	// Next emits every world that can follow, with who did what: two texts, so that nothing is made for each step.
	Next func(from W, emit func(to W, who, what string))
	// Wrong says what is wrong with a world; "" is nothing.
	Wrong func(W) string
	// Forbids says why a step must not happen; "" if it may, nil if all may.
	Forbids func(from, to W) string
	// Quiet reports whether a world is at rest: nobody is at work and no work is left.
	Quiet func(W) bool
	// MaxStates bounds the walk.
	MaxStates int
}

// Result is what a walk has found.
type Result struct {
	States, Quiet int
	// Violation is "" if nothing is wrong, or what is wrong at the end of Trace.
	Violation string
	Trace     []string
}

// walk holds the worlds that were reached, each with the world that it was first reached from.
type walk[W comparable] struct {
	*Model[W]
	index  map[W]int32
	worlds []W
	parent []int32
}

// Walk visits the worlds breadth first, so that Trace is a shortest way to the violation. It also requires that from every
// world a quiet one can be reached.
func (m Model[W]) Walk() Result {
	w := &walk[W]{Model: &m, index: map[W]int32{m.Start: 0}, worlds: []W{m.Start}, parent: []int32{-1}}
	quiet := 0
	for at := int32(0); int(at) < len(w.worlds); at++ {
		if len(w.worlds) > m.MaxStates {
			return w.result(fmt.Sprintf("the walk was stopped at %d states", len(w.worlds)), at)
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

// expand adds the worlds that follow one, and returns why one of the steps is forbidden.
func (w *walk[W]) expand(at int32) (forbidden string) {
	from := w.worlds[at]
	w.Next(from, func(to W, who, what string) {
		if w.Forbids != nil && forbidden == "" {
			if why := w.Forbids(from, to); why != "" {
				forbidden = who + " " + what + ": " + why
			}
		}
		if _, known := w.index[to]; !known {
			w.index[to] = int32(len(w.worlds))
			w.worlds, w.parent = append(w.worlds, to), append(w.parent, at)
		}
	})
	return forbidden
}

// stuck finds a world from which no quiet one can be reached, -1 for none. Worlds mostly lead to worlds that were found
// later, so it goes through them backwards until nothing changes.
func (w *walk[W]) stuck() int32 {
	reaches := make([]bool, len(w.worlds))
	for changed := true; changed; {
		changed = false
		for at := len(w.worlds) - 1; at >= 0; at-- {
			if reaches[at] {
				continue
			}
			ok := w.Quiet(w.worlds[at])
			if !ok {
				w.Next(w.worlds[at], func(to W, _, _ string) { ok = ok || reaches[w.index[to]] })
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

// result is that of a walk that ends at a world with a violation.
func (w *walk[W]) result(violation string, at int32) Result {
	r := Result{States: len(w.worlds), Violation: violation}
	var path []int32
	for ; at >= 0; at = w.parent[at] {
		path = append([]int32{at}, path...)
	}
	for i := 1; i < len(path); i++ {
		r.Trace = append(r.Trace, w.label(path[i-1], path[i]))
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
