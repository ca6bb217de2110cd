package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// difference is something in which targets are known to differ from the simulator, which holds to Azure. What is written
// here goes into docs/explanation/azurite.md.
type difference struct {
	capability string // what the target lacks or does otherwise
	reason     string // what Azure does instead, and what that means for a test
	on         []string
	where      []place
}

// place is where a difference shows; at least one field must differ there on each target. at is case/step; all three may
// hold * and ?. theirs is what the target says, "-" where it says nothing.
type place struct{ at, field, theirs string }

// observation is one field in which an answer may differ.
type observation struct{ target, at, field, ours, theirs string }

func (o observation) String() string {
	return fmt.Sprintf("%s, %s: %s is %.400q, the simulator's %.400q", o.at, o.target, o.field, o.theirs, o.ours)
}

// observations remember which declarations were needed.
type observations struct {
	mu      sync.Mutex
	used    map[string]bool // by target and place
	reached map[string]bool // those of a case that was run, whatever it said
}

func (p place) covers(o observation) bool {
	theirs := o.theirs
	if theirs == "" {
		theirs = "-"
	}
	return like(p.field, o.field) && like(p.theirs, theirs)
}

// allow says whether a field may be as it is.
func (s *observations) allow(o observation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used, s.reached = map[string]bool{}, map[string]bool{}
	}
	ok := o.ours == o.theirs
	for _, d := range differences {
		if !slices.Contains(d.on, o.target) {
			continue
		}
		for _, p := range d.where {
			if !like(p.at, o.at) {
				continue
			}
			key := o.target + fmt.Sprint(p)
			s.reached[key] = true
			if o.ours != o.theirs && p.covers(o) {
				s.used[key], ok = true, true
			}
		}
	}
	return ok
}

// checkStale fails for a declared difference that was not observed, if its case was run, or if all were.
func (s *observations) checkStale(t *testing.T, all bool) {
	t.Helper()
	for _, d := range differences {
		for _, tg := range d.on {
			for _, p := range d.where {
				if key := tg + fmt.Sprint(p); (all || s.reached[key] && p.at != "*") && !s.used[key] {
					t.Errorf("%q is declared for %s at %+v, and is no difference any more", d.capability, tg, p)
				}
			}
		}
	}
}

// like matches * and ?, across slashes and whatever else.
func like(pattern, text string) bool {
	flat := strings.NewReplacer("/", "\x01", "[", "\x02", "]", "\x03", "\\", "\x04")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(text))
	return err == nil && ok
}
