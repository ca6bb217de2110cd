package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// show is a row of the summary: what a scenario's question or action stands for.
type show struct {
	pattern string // of the guide
	what    string // the question or action that is measured
	naive   string // the action that is the other way; of a question it is the answer without patterns. Empty is none
	proves  string
}

// shown is a show with what was measured.
type shown struct {
	Pattern string `json:"pattern"`
	What    string `json:"what"`
	With    spent  `json:"with"`
	Without *spent `json:"without"` // null where there is no naive way to compare with
	Proves  string `json:"proves"`
}

// spent is what something took.
type spent struct {
	Requests     int     `json:"requests"`
	Milliseconds float64 `json:"milliseconds"`
}

// measured looks up what was shown. What is not in the section is an error: no number is made up.
func (x show) measured(s *section) (*shown, error) {
	row := &shown{Pattern: x.pattern, What: x.what, Proves: x.proves}
	for _, l := range s.Lookups {
		if l.Question == x.what {
			row.With = spent{l.With.Requests, l.With.Milliseconds}
			row.Without = &spent{l.Without.Requests, l.Without.Milliseconds}
			return row, nil
		}
	}
	with, err := s.spent(x.what)
	if err != nil {
		return nil, err
	}
	row.With = *with
	if x.naive != "" {
		row.Without, err = s.spent(x.naive)
	}
	return row, err
}

func (s *section) spent(what string) (*spent, error) {
	i := slices.IndexFunc(s.Actions, func(a *action) bool { return a.What == what })
	if i < 0 {
		return nil, fmt.Errorf("%s: %q is to be in the summary, and was not measured", s.Title, what)
	}
	return &spent{s.Actions[i].Requests, s.Actions[i].Milliseconds}, nil
}

// show adds what a scenario shows to the summary.
func (r *report) show(sc scenario, s *section) error {
	for _, x := range sc.shows {
		row, err := x.measured(s)
		if err != nil {
			return err
		}
		r.Patterns = append(r.Patterns, row)
	}
	return nil
}

// The columns of the summary.
const (
	patternWidth = 35
	whatWidth    = 38
)

func (r *report) writeSummary(w io.Writer) {
	fmt.Fprintf(w, "\nThe patterns of the guide, each by one measurement of those above\n")
	fmt.Fprintf(w, "  %-*s %-*s  %13s  %13s\n", patternWidth, "", whatWidth, "", "with it", "without it")
	fmt.Fprintf(w, "  %-*s %-*s %5s%9s  %5s%8s   %s\n", patternWidth, "pattern", whatWidth, "measured", "req", "ms", "req", "ms", "what the run proves")
	for _, row := range r.Patterns {
		without := fmt.Sprintf("%5s%8s", "-", "-")
		if row.Without != nil {
			without = row.Without.String()
		}
		line := fmt.Sprintf("  %-*s %-*s %s   %s   %s", patternWidth, row.Pattern, whatWidth, row.What, row.With, without, row.Proves)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// String is what was spent in its columns.
func (x spent) String() string {
	return fmt.Sprintf("%5s%8s", grouped(x.Requests), tenths(x.Milliseconds))
}
