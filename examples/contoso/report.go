package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// report is the whole run; -json prints it.
type report struct {
	Account      string     `json:"account"`
	Emulator     string     `json:"emulator"`         // azurite or simulator; empty on an account
	Chosen       string     `json:"chosen,omitempty"` // why the program has chosen the simulator
	Seed         uint64     `json:"seed"`
	Employees    int        `json:"employees"`
	Departments  int        `json:"departments"`
	Sections     []*section `json:"sections"`
	Patterns     []*shown   `json:"patterns"`
	Summary      summary    `json:"summary"`
	Chaos        *chaos     `json:"chaos"` // null without -chaos
	Requests     int        `json:"requests"`
	Milliseconds float64    `json:"milliseconds"`
	Growth       []*growth  `json:"growth"`
	Resources    []string   `json:"resources"` // "table ContosoEmployees", and so on
	Kept         bool       `json:"kept"`
	File         string     `json:"file"` // with the report in HTML
}

// section is what one scenario saw.
type section struct {
	Title   string          `json:"title"`
	Guide   string          `json:"guide"`
	Plain   string          `json:"plain,omitempty"` // what is asked without the patterns; empty is one row an employee
	Lookups []*lookup       `json:"lookups,omitempty"`
	Actions []*action       `json:"actions,omitempty"`
	Text    []string        `json:"text,omitempty"`
	Loads   []partitionLoad `json:"loads,omitempty"`
}

// partitionLoad is what a partition had to take in its busiest second.
type partitionLoad struct {
	Design    string  `json:"design"` // how the partitions are made
	Partition string  `json:"partition"`
	Writes    int     `json:"writes"`
	Share     float64 `json:"share"` // of the target of a partition
}

// lookup is one question, answered with the patterns and without. Both answers were the same.
type lookup struct {
	Question string `json:"question"`
	Found    int    `json:"found"`
	With     cost   `json:"with"`
	Without  cost   `json:"without"`
}

// spent is what an answer or an action took.
type spent struct {
	Searched     int     `json:"searched,omitempty"` // rows that the service has to go through, by the class of the query; 0 of an action
	Requests     int     `json:"requests"`
	Milliseconds float64 `json:"milliseconds"`
}

// cost is what one answer took.
type cost struct {
	How string `json:"how"` // class of the query, or what is read in place of a table
	spent
}

// action is something done, and what came of it.
type action struct {
	What string `json:"what"`
	spent
	Outcome string `json:"outcome"`
}

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

// growth is what one question costs with more and more employees.
type growth struct {
	Question string        `json:"question"`
	Points   []growthPoint `json:"points"`
}

type growthPoint struct {
	Employees int  `json:"employees"`
	With      cost `json:"with"`
	Without   cost `json:"without"`
}

// summary adds the lookups up.
type summary struct {
	Lookups int   `json:"lookups"`
	Actions int   `json:"actions"`
	With    spent `json:"with"`
	Without spent `json:"without"`
}

func (r *report) sumUp() {
	for _, s := range r.Sections {
		r.Summary.Actions += len(s.Actions)
		for _, l := range s.Lookups {
			r.Summary.Lookups++
			r.Summary.With.add(l.With.spent)
			r.Summary.Without.add(l.Without.spent)
		}
	}
}

func (x *spent) add(y spent) {
	x.Searched += y.Searched
	x.Requests += y.Requests
	x.Milliseconds += y.Milliseconds
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

func (r *report) writeHead(w io.Writer) {
	fmt.Fprintf(w, "Contoso: %s employees in %d departments (seed %d), on %s\n", grouped(r.Employees), r.Departments, r.Seed, r.Account)
	if r.Chosen != "" {
		fmt.Fprintln(w, r.Chosen)
	}
	fmt.Fprintf(w, "Each question is asked %d times each way; ms is the middle of %[1]d. \"searched\" are the rows that Azure goes through.\n", repetitions)
	if r.Chaos != nil {
		fmt.Fprintf(w, "Chaos: %g %% of the calls of the scenarios' writes go wrong, %g %% of the transactions among them inside the answer, and the requests and times are those with repetitions.\n",
			100*faultRate, 100*insideRate)
	}
	switch r.Emulator {
	case "azurite":
		fmt.Fprint(w, "Azurite goes through all rows of a table, in memory, for every query but a point query: its times are not Azure's.\n")
	case "simulator":
		fmt.Fprint(w, "The simulator is in this process, without a network: its times are not Azure's.\n")
	}
}

// nameWidth is the column of questions and actions.
const nameWidth = 38

func (s *section) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", s.Title)
	if s.Guide != "" && s.Guide != s.Title {
		fmt.Fprintf(w, "  guide: %s\n", s.Guide)
	}
	if len(s.Lookups) > 0 {
		head := fmt.Sprintf("%-14s%9s%5s%10s", "how", "searched", "req", "ms")
		fmt.Fprintf(w, "  %*s   %-*s   %s\n", nameWidth+7, "", len(head), "with the patterns", cmp.Or(s.Plain, "one row an employee, no indexes"))
		fmt.Fprintf(w, "  %*s   %s   %s\n", nameWidth+7, "found", head, head)
	}
	for _, l := range s.Lookups {
		fmt.Fprintf(w, "  %-*s%7s   %s   %s\n", nameWidth, l.Question, grouped(l.Found), l.With, l.Without)
	}
	width := nameWidth
	for _, a := range s.Actions {
		width = max(width, utf8.RuneCountInString(a.What))
	}
	for _, a := range s.Actions {
		fmt.Fprintf(w, "  %-*s  %12s  %10s ms   %s\n", width, a.What, counted(a.Requests, "request"), tenths(a.Milliseconds), a.Outcome)
	}
	for _, line := range s.Text {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

// String is the cost in its columns.
func (c cost) String() string {
	return fmt.Sprintf("%-14s%9s%5s%10s", c.How, grouped(c.Searched), grouped(c.Requests), tenths(c.Milliseconds))
}

// writeEnd is what follows the sections.
func (r *report) writeEnd(w io.Writer) {
	r.writeSummary(w)
	r.writeGrowth(w)
	if r.Kept {
		fmt.Fprintf(w, "\nKept: %s\n", strings.Join(r.Resources, ", "))
	} else {
		fmt.Fprintf(w, "\nDropped: %d tables, queues and containers\n", len(r.Resources))
	}
	if r.Chaos != nil {
		fmt.Fprintf(w, "Chaos, in the writes of the scenarios: %s\n", r.Chaos)
		fmt.Fprintf(w, "Worker processes killed: %d. Their calls meet faults, too, which are not counted.\n", r.Chaos.Kills)
	}
	s := r.Summary
	fmt.Fprintf(w, "The report with plots: %s\n", r.File)
	fmt.Fprintf(w, "All is as it should be: %d questions had the same answers both ways, %s rows searched with the patterns, %s without; %s in %s s.\n",
		s.Lookups, grouped(s.With.Searched), grouped(s.Without.Searched), counted(r.Requests, "request"), tenths(r.Milliseconds/1000))
}

func (r *report) writeSummary(w io.Writer) {
	fmt.Fprintf(w, "\nThe patterns, each by one measurement of those above\n")
	fmt.Fprintf(w, "  %-34s %-37s%22s   %22s\n", "", "", "with it", "without it")
	head := fmt.Sprintf("%7s%7s%8s", "rows", "req", "ms")
	fmt.Fprintf(w, "  %-34s %-37s%s   %s   %s\n", "pattern", "measured", head, head, "what the run proves")
	for _, row := range r.Patterns {
		fmt.Fprintf(w, "  %-34s %-37s%s   %s   %s\n", row.Pattern, row.What, &row.With, row.Without, row.Proves)
	}
	fmt.Fprintf(w, "  rows: those that Azure goes through, for a question. A dash: there is no other way to compare with, or no rows to count.\n")
}

// String is what was spent in its columns, with dashes for what is not known.
func (x *spent) String() string {
	rows, requests, ms := "-", "-", "-"
	if x != nil {
		requests, ms = grouped(x.Requests), tenths(x.Milliseconds)
		if x.Searched > 0 {
			rows = grouped(x.Searched)
		}
	}
	return fmt.Sprintf("%7s%7s%8s", rows, requests, ms)
}

func (r *report) writeGrowth(w io.Writer) {
	if len(r.Growth) == 0 {
		return
	}
	fmt.Fprintf(w, "\nRows searched as the company grows, on a simulator\n")
	head := ""
	for _, point := range r.Growth[0].Points {
		head += fmt.Sprintf("%14s", grouped(point.Employees))
	}
	fmt.Fprintf(w, "  %-*s%s employees, with the pattern / without it\n", nameWidth, "", head)
	for _, g := range r.Growth {
		line := ""
		for _, point := range g.Points {
			line += fmt.Sprintf("%14s", grouped(point.With.Searched)+" / "+grouped(point.Without.Searched))
		}
		fmt.Fprintf(w, "  %-*s%s\n", nameWidth, g.Question, line)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes 12345 as 12,345.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

func tenths(f float64) string {
	whole := int(f*10 + 0.5)
	return fmt.Sprintf("%s.%d", grouped(whole/10), whole%10)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
