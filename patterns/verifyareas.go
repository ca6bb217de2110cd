package patterns

import (
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/sharedlocks"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// area is one table, or one pattern with an Audit (an auditor), that stores something for entities.
type area struct {
	table   *tables.Table     // the table of those rows, nil for an auditor
	outside []*engine.Pattern // with copies in the table
	auditor *engine.Pattern
	lag     time.Duration // how long a difference must persist
}

// nearArea is the index of the area of the entities' own partitions, with a repository's further rows and copies.
const nearArea = 0

// verifier is one run of Verify or Repair.
type verifier struct {
	r       *engine.Engine
	op      string
	options JobOptions
	areas   []area
	scope   map[string]bool   // partitions, nil for all
	near    bool              // the near area is verified
	locks   sharedlocks.Locks // for Repair and Rebuild

	state    verifyState
	failures []*finding // failures that were not yet passed to the caller
	began    time.Time
	rowsHere int64 // rows read by this run

	checkpoint verifyState // a copy of state at the position from which the run can be resumed; zero before the first
	listing    bool        // an auditor's list is being read, so the run cannot be resumed from the state
}

func newVerifier(r *engine.Engine, op string, o *JobOptions) (*verifier, error) {
	options, err := o.checked(op, r.Patterns)
	if err != nil {
		return nil, tables.Wiringf(op, r.Table.Name(), "%w", err)
	}
	v := &verifier{r: r, op: op, options: options, areas: []area{{table: r.Table}}, began: time.Now()}
	if options.Partitions != nil {
		v.scope = map[string]bool{}
		for _, p := range options.Partitions {
			v.scope[p] = true
		}
	}
	v.near = r.Layout != nil && v.chosen(r.Layout.Name) ||
		slices.ContainsFunc(r.Copies, func(p *engine.Pattern) bool { return v.chosen(p.Name) })
	for _, p := range r.Outside {
		v.addOutside(p)
	}
	for _, p := range r.Patterns {
		if p.Audit != nil && v.chosen(p.Name) {
			v.areas = append(v.areas, area{auditor: p, lag: v.lagOf(p)})
		}
	}
	return v, nil
}

// addOutside adds the table in which a pattern stores its copies. If patterns share a table, the rows of all of them are read, since a row
// does not name its pattern.
func (v *verifier) addOutside(p *engine.Pattern) {
	table := p.Outside.Table
	wanted := slices.ContainsFunc(v.r.Outside, func(q *engine.Pattern) bool {
		return v.chosen(q.Name) && q.Outside.Table.Same(table)
	})
	if !wanted {
		return
	}
	for i := range v.areas {
		if a := &v.areas[i]; len(a.outside) > 0 && a.table.Same(table) {
			a.outside = append(a.outside, p)
			return
		}
	}
	v.areas = append(v.areas, area{table: table, outside: []*engine.Pattern{p}, lag: v.options.Lag})
}

// lagOf returns how long a difference in an auditor's facts must persist: 0 for facts that are written in the entity's
// own transaction.
func (v *verifier) lagOf(p *engine.Pattern) time.Duration {
	if p.Audit.Remove != nil {
		return 0
	}
	return v.options.Lag
}

// chosen reports whether a pattern is verified. For a finding without a pattern it returns true.
func (v *verifier) chosen(pattern string) bool {
	return pattern == "" || v.options.Patterns == nil || slices.Contains(v.options.Patterns, pattern)
}

// mine reports whether an entity is in the scope and, judging by its key, belongs to the repository.
func (v *verifier) mine(entity tables.Key) bool {
	return (v.scope == nil || v.scope[entity.Partition]) && v.r.Schema.Own.Keeps(entity)
}

// outsideIn returns the index of the area of copies in a table, or -1 if no area has it.
func (v *verifier) outsideIn(table *tables.Table) int {
	return slices.IndexFunc(v.areas, func(a area) bool { return len(a.outside) > 0 && a.table.Same(table) })
}

// far reports whether the run has other areas than the near one.
func (v *verifier) far() bool { return len(v.areas) > 1 }

// ownerName returns the name of the pattern that owns an outside row, if the row's key shows it. known is false for a row of another
// repository.
func (a *area) ownerName(key tables.Key) (name string, known bool) {
	open := 0
	for _, p := range a.outside {
		switch owns := p.Outside.Owns; {
		case owns == nil:
			open++
		case owns(key):
			return p.Name, true
		}
	}
	if len(a.outside) == 1 && open == 1 {
		return a.outside[0].Name, true
	}
	return prefixOf(key.Partition, a.outside), open > 0
}

// prefixOf guesses the owner of a key that no entity requires. It uses that the index packages make keys of
// the index's name, alone or followed by "_" and further parts.
func prefixOf(key string, candidates []*engine.Pattern) string {
	for _, p := range candidates {
		if name := p.Name; key == name || strings.HasPrefix(key, name+"_") {
			return name
		}
	}
	return ""
}
