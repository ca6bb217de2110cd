package main

import (
	"fmt"
	"io"
)

// show is a row of the summary: what a scenario's question or action stands for.
type show struct {
	Pattern string `json:"pattern"` // of the guide
	What    string `json:"what"`    // the question or action that is measured
	Proves  string `json:"proves"`
	Naive   string `json:"-"` // the action that is the other way; a question is compared with the answer without patterns. Empty is none
}

// shown is a show with what was measured.
type shown struct {
	show
	With    spent  `json:"with"`
	Without *spent `json:"without"` // null where there is no naive way to compare with
}

// measured looks up what was shown. What is not in the section is an error: no number is made up.
func (x show) measured(s *section) (*shown, error) {
	row := &shown{show: x}
	for _, l := range s.Lookups {
		if l.Question == x.What {
			row.With, row.Without = l.With.spent, &l.Without.spent
			return row, nil
		}
	}
	with, err := s.spent(x.What)
	if err != nil {
		return nil, err
	}
	row.With = *with
	if x.Naive != "" {
		row.Without, err = s.spent(x.Naive)
	}
	return row, err
}

func (s *section) spent(what string) (*spent, error) {
	for _, a := range s.Actions {
		if a.What == what {
			return &a.spent, nil
		}
	}
	return nil, fmt.Errorf("%s: %q is to be in the summary, and was not measured", s.Title, what)
}

// show adds what a scenario shows to the summary.
func (r *report) show(sc scenario, s *section) {
	for _, x := range sc.shows {
		r.Patterns = append(r.Patterns, must(x.measured(s)))
	}
}

// The columns of the summary.
const (
	patternWidth = 34
	whatWidth    = 37
	spentWidth   = 6 + 6 + 8
)

func (r *report) writeSummary(w io.Writer) {
	fmt.Fprintf(w, "\nThe patterns, each by one measurement of those above\n")
	fmt.Fprintf(w, "  %-*s %-*s%*s   %*s\n", patternWidth, "", whatWidth, "", spentWidth, "with it", spentWidth, "without it")
	head := fmt.Sprintf("%6s%6s%8s", "rows", "req", "ms")
	fmt.Fprintf(w, "  %-*s %-*s%s   %s   %s\n", patternWidth, "pattern", whatWidth, "measured", head, head, "what the run proves")
	for _, row := range r.Patterns {
		fmt.Fprintf(w, "  %-*s %-*s%s   %s   %s\n", patternWidth, row.Pattern, whatWidth, row.What, &row.With, row.Without, row.Proves)
	}
	fmt.Fprintf(w, "  rows: those that Azure goes through, for a question. A dash: there is no other way to compare with, or no rows to count.\n")
}

// String is what was spent in its columns; nothing is dashes.
func (x *spent) String() string {
	switch {
	case x == nil:
		return fmt.Sprintf("%6s%6s%8s", "-", "-", "-")
	case x.Searched == 0:
		return fmt.Sprintf("%6s%6s%8s", "-", grouped(x.Requests), tenths(x.Milliseconds))
	}
	return fmt.Sprintf("%6s%6s%8s", grouped(x.Searched), grouped(x.Requests), tenths(x.Milliseconds))
}
