package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMain lets the program start its worker: from a test, that is the test binary once more.
func TestMain(m *testing.M) {
	job := os.Getenv(workerVariable)
	if job == "" {
		leaks.Main(m)
	}
	if err := beWorker(context.Background(), job, os.Stdin, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestRun is the program from its start to its end, on what the environment asks for.
func TestRun(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-n", "300", "-json"}, findPlace, scenarios(), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if bytes.Contains(bytes.ReplaceAll(stdout.Bytes(), []byte("sig=REDACTED"), nil), []byte("sig=")) {
		t.Error("a token's signature is in the report")
	}
	var r report
	decoder := json.NewDecoder(&stdout)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if decoder.More() {
		t.Error("something follows the JSON document")
	}
	if len(r.Sections) != len(scenarios()) || r.Employees != 300 || r.Kept || r.Chaos != nil || len(r.Tables) < 30 || len(r.Queues) != 3 || len(r.Containers) < 4 {
		t.Fatalf("%d sections, %d employees, chaos %v, tables %q, queues %q, containers %q", len(r.Sections), r.Employees, r.Chaos, r.Tables, r.Queues, r.Containers)
	}
	if r.Summary.With.Searched*4 > r.Summary.Without.Searched { // nearly all of the first are log records in blobs
		t.Errorf("with the patterns %d rows are searched, without them %d", r.Summary.With.Searched, r.Summary.Without.Searched)
	}
	for _, row := range r.Patterns {
		if row.Proves == "" || row.With.Requests == 0 || row.Without != nil && row.Without.Requests == 0 {
			t.Errorf("the summary has %+v", row)
		}
	}
	if !strings.Contains(stderr.String(), "300 of 300 employees, 100 %") {
		t.Errorf("no progress: %q", &stderr)
	}
	if r.Emulator != "" { // an account may make a client repeat a request
		checkRequests(t, &r)
	}
}

// checkRequests compares the requests of every question and action with what they should cost.
func checkRequests(t *testing.T, r *report) {
	t.Helper()
	lookups := map[string][2]int{
		"employee 000223 of Sales":           {1, 1},
		"ids 000100 to 000199 in Sales":      {1, 1},
		"three ids joined by or":             {3, 1},
		"older than 40 in Sales":             {1, 1},
		"jonesj@contoso.com in Sales":        {1, 1},
		"emails that start with a, in Sales": {1, 1},
		"the first 20 of Sales by name":      {1, 1},
		"everybody named Jones in Sales":     {1, 1},
		"hired in 2012 by Sales, in order":   {1, 1},
		"everybody named Jones":              {10, 1},
		"one email, anywhere":                {1, 1},
		"emails that start with a, anywhere": {1, 1},
		"emails that start with m, in Sales": {1, 1},
		"Jones in Sales, by row (option 2)":  {1 + 3, 1},
		"Jones anywhere, by row (option 3)":  {1 + 5, 1},
		"Jones anywhere, by blob (option 1)": {1 + 5, 1},
		"Sales with its manager":             {1, 2},

		"the profile of 000223 in Sales":              {2, 1},
		"the profile of june.jones@contoso.com":       {2, 2},
		"a day by the hour, entity a message":         {1, 2},
		"a day by the hour, entity an hour":           {1, 1},
		"a year by the day, entity an hour":           {1, 2},
		"a tenth of a second, in order":               {partitions, 1},
		fmt.Sprintf("what employee %06d did", ofWhom): {1, 1},
		"her appraisals":                              {1, 1},
		"the ten latest claims":                       {1, 2},
		"her logins of July":                          {5, 1},
		"errors of two minutes, rows by hour":         {1 + servers, 1},
		"errors of two minutes, rows by server":       {1 + servers, 1},
		"June Jones with her photo":                   {2, 1},
		"the emails of Sales":                         {1, 1},
		"how many employees Sales has":                {1, 1},
		"20 employees with their floor":               {1, 21},
		"everybody in Sales, of all types":            {1, 2},
		"one national id in Sales":                    {1, 1},
	}
	actions := map[string]int{
		"LastName eq 'Jones', of the whole table":    0,
		"the first 25 of Sales by email":             1,
		"the token with another query":               0,
		"read by email":                              1,
		"replaced, with another email and age":       2,
		"read by the old email and by the new":       2,
		"a new employee with that email":             3,
		"inserted with an email of his own":          1,
		"his age merged":                             2,
		"deleted":                                    1,
		"the first of two readers writes":            1,
		"the second one, who read the index, writes": 1,
		"an employee and three reviews written":      1,
		"read together":                              1,
		"the review of 2012 alone":                   1,
		"employees inserted":                         7 * inOrganisation,
		"her email changed":                          11,
		"found by the old email and by the new":      2,
		"found by email, and read herself":           2,
		"both indexes, read whole":                   1 + 10 + 1 + 2, // the last of them look for intents
		"moves asked for":                            former,
		"one inserted, option 2 alone":               2,
		"and deleted":                                2,
		"employees inserted, all options":            (1 + 1 + 2 + 2*2 + 1) * inNames,
		"last names, and how many have each":         1,
		"her last name changed":                      1 + 2 + 2 + 2*4 + 1,
		"looked up by the old name and the new":      2 * 3,
		"departments and employees inserted":         10 + minEmployees + 10,
		"the manager's email changed":                2,
		"the department read":                        1,
		"another manager begins":                     2,
		"the one before stops":                       2,
		"each department with its manager":           10,
		"one answer merged":                          3,
		"two change different answers":               2,
		"read while another edition is written":      2 + 1 + 2,
		"the same by hand, row by row":               answers/inOneRow + 1,
		"a day and a year of one employee":           2 + 1, // what is added to is read first
		"a message counted":                          2,
		"the same message once more":                 3,
		"the first event of a minute":                3,
		"the next one":                               1,
		"the events of one second at nine":           2 + 20,
		"more partitions":                            2,
		"events of a second two minutes later":       2 + 4*partitions,
		"all events, in order":                       1 + 4*partitions,
		"a token signed and opened":                  0,
		"the whole department asked for":             1,
		"her comment written":                        2,
		"a colleague's appraisal read":               0,
		"another department asked for":               0,
		"her own appraisal deleted":                  0,
		"one of the next year inserted":              0,
		"her own, by the bare SDK":                   1,
		"a colleague's, by the bare SDK":             1,
		"a colleague's, the range taken out":         1,
		"her own, with the token of yesterday":       1,
		"tokens asked for by users":                  0,
		"claims imported":                            claimed / 100,
		"a claim appended":                           1,
		"the same claim once more":                   2,
		"claims followed":                            1,
		"and by another process, from its cursor":    1,
		"logins imported":                            13*2 + 13*loggingIn,
		"the first login of a week":                  4,
		"what there is to drop, by a dry run":        2 + 5,
		"the old weeks dropped":                      2 + 2 + 1 + 5,
		"the same in the plain table, by hand":       1 + loggingIn,
		"log records written to blobs":               2 * (3*servers + 2*(servers-1)),
		"the same as rows by the hour":               12,
		"the same as rows by the server":             12,
		"all records read back":                      2 + 2*servers,
		"employees with photos inserted":             5 * photographed,
		"1,000 bytes of it read":                     1,
		"all of it read":                             1,
		"her photo replaced":                         6,
		"an employee deleted":                        6,
		"employees with three patterns":              6 * (jones - reviewed + 1),
		"a color merged by an older program":         3,
		"replaced, by one that does not":             3,
		"an employee and her locker inserted":        2,
		"both read, side by side":                    2,
		"read by the program of version 2":           1,
		"everybody looked up by national id":         minEmployees,
		"rows empid_...":                             10,
		"rows email_...":                             10,
		"rows name_...":                              10,
		"rows hired_...":                             10,
		"all rows, by a table scan":                  2,
	}
	for _, s := range r.Sections {
		for _, l := range s.Lookups {
			if got, want := [2]int{l.With.Requests, l.Without.Requests}, lookups[l.Question]; got != want || l.Found == 0 {
				t.Errorf("%s: requests %v, want %v; found %d", l.Question, got, want, l.Found)
			}
			delete(lookups, l.Question)
		}
		for _, a := range s.Actions {
			if want, ok := actions[a.What]; ok && a.Requests != want {
				t.Errorf("%s: %d requests, want %d", a.What, a.Requests, want)
			}
			delete(actions, a.What)
		}
	}
	if len(lookups)+len(actions) > 0 {
		t.Errorf("not in the report: %v %v", lookups, actions)
	}
}

// lasting is a place where what a run makes outlives it, as on an account: the service that the tests share. made lists what
// runs have made there, by what it is and its name.
func lasting(t *testing.T) (find finder, account *tables.Account, made func() []string) {
	t.Helper()
	s := storagetest.Open(t)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		t.Fatal(err)
	}
	find = func(context.Context, options, *progress) (*place, error) {
		at := &place{connection: s.ConnectionString, options: s.ClientOptions, outside: s.Clock == nil, pass: time.Sleep, lasts: true, leave: func() error { return nil }}
		if s.Clock != nil {
			at.now, at.pass = s.Clock.Now, func(d time.Duration) { time.Sleep(d); s.Clock.Advance(d) }
		}
		return at, nil
	}
	return find, account, func() []string {
		names := slices.Concat(tablesOf(t, account), queuesOf(t, account), containersOf(t, account))
		slices.Sort(names)
		return names
	}
}

func tablesOf(t *testing.T, account *tables.Account) []string {
	t.Helper()
	var names []string
	for pager := account.TableService().NewListTablesPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range page.Tables {
			if strings.HasPrefix(*table.Name, "Contoso") {
				names = append(names, "table "+*table.Name)
			}
		}
	}
	return names
}

func queuesOf(t *testing.T, account *tables.Account) []string {
	t.Helper()
	var names []string
	for pager := account.QueueService().NewListQueuesPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, queue := range page.Queues {
			if strings.HasPrefix(*queue.Name, "contoso") {
				names = append(names, "queue "+*queue.Name)
			}
		}
	}
	return names
}

func containersOf(t *testing.T, account *tables.Account) []string {
	t.Helper()
	var names []string
	for pager := account.BlobService().NewListContainersPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, container := range page.ContainerItems {
			if strings.HasPrefix(*container.Name, "contoso") {
				names = append(names, "container "+*container.Name)
			}
		}
	}
	return names
}

// remove drops what a run has kept.
func remove(t *testing.T, account *tables.Account, what string) {
	t.Helper()
	kind, name, _ := strings.Cut(what, " ")
	var err error
	switch kind {
	case "table":
		err = account.Table(name).Drop(context.Background())
	case "queue":
		_, err = account.Queue(name).Delete(context.Background(), nil)
	default:
		_, err = account.Container(name).Delete(context.Background(), nil)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestChaos: with faults in all writes, and a worker that is killed again and again, the run ends right, and leaves nothing.
func TestChaos(t *testing.T) {
	find, _, made := lasting(t)
	before := made()
	parts := []scenario{loading(), secondaryIndexes(), formerEmployees(), names(), managers(), relations(), photos()} // those whose writes reach beyond a partition
	if harness.Thorough() {
		parts = scenarios()
	}
	r := reportOf(t, []string{"-n", "250", "-seed", "7", "-chaos"}, find, parts)
	if len(r.Sections) != len(parts) {
		t.Errorf("%d sections", len(r.Sections))
	}
	// Of the transactions about insideRate fail inside their answer. How many transactions there are depends on how often workers poll and
	// retry, and so on the speed of the service: a fixed number of failures would test that speed.
	share := float64(r.Chaos.Inside) / float64(r.Chaos.Transactions)
	if len(r.Chaos.Faults) != 8 || r.Chaos.Calls < 1000 || r.Chaos.Transactions < 500 || share < insideRate/2 || share > insideRate*5/3 {
		t.Errorf("the run met %v", r.Chaos)
	}
	simulated, err := storagetest.Simulated()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(killsAt()); !simulated && r.Chaos.Kills != want {
		t.Errorf("%d workers were killed, want %d", r.Chaos.Kills, want)
	}
	if got := made(); !slices.Equal(got, before) {
		t.Errorf("%q were left", got)
	}
}

// reportOf runs scenarios, and returns the report of the run.
func reportOf(t *testing.T, args []string, find finder, parts []scenario) *report {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), append(args, "-json"), find, parts, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	r := &report{}
	if err := json.Unmarshal(stdout.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKept: with -keep, what a run has made is there after it, by the names in the report.
func TestKept(t *testing.T) {
	find, account, made := lasting(t)
	before := made()
	r := reportOf(t, []string{"-n", "250", "-keep"}, find, []scenario{loading(), formerEmployees()})
	var want []string
	for _, name := range r.Tables {
		want = append(want, "table "+name)
	}
	for _, name := range r.Queues { // each with a poison queue and a container of large bodies
		want = append(want, "queue "+name, "queue "+name+"-poison", "container "+name+"-claims")
	}
	for _, name := range r.Containers {
		want = append(want, "container "+name)
	}
	slices.Sort(want)
	kept := slices.DeleteFunc(made(), func(name string) bool { return slices.Contains(before, name) })
	if !slices.Equal(kept, want) || len(r.Tables) != 4 || !r.Kept {
		t.Errorf("%q were kept, want %q", kept, want)
	}
	for _, what := range kept {
		remove(t, account, what)
	}
}

// cancelling ends the run's context at the first word of progress, as Ctrl-C does.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	find, _, made := lasting(t)
	before := made()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	err := run(ctx, []string{"-n", "2000", "-json"}, find, scenarios(), &stdout, cancelling{cancel})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if stdout.Len() > 0 {
		t.Errorf("a run that was cut off printed %q", &stdout)
	}
	if got := made(); !slices.Equal(got, before) {
		t.Errorf("%q were left", got)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Setenv(connectionVariable, "")
	for _, args := range [][]string{{"-n", "3"}, {"-n", "x"}, {"-n", "1000000"}, {"-keep"}, {"extra"}, {"-h"}} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), args, findPlace, scenarios(), &stdout, &stderr)
		if err == nil || stdout.Len() > 0 {
			t.Errorf("%q: error %v, output %q", args, err, &stdout)
		}
		if errors.Is(err, flag.ErrHelp) && !strings.Contains(stderr.String(), "-seed") {
			t.Errorf("%q: no help in %q", args, &stderr)
		}
	}
}

func TestStaffIsMadeFromItsSeed(t *testing.T) {
	a, b, other := newStaff(3000, 1), newStaff(3000, 1), newStaff(3000, 2)
	emails := map[string]bool{}
	same := 0
	for i, e := range a {
		if e.record() != b[i].record() {
			t.Fatalf("employee %d differs", e.ID)
		}
		if e.record() == other[i].record() {
			same++
		}
		if emails[e.Email] {
			t.Fatalf("email %s is there twice", e.Email)
		}
		emails[e.Email] = true
	}
	if same > 10 {
		t.Errorf("%d employees are the same with another seed", same)
	}
	weights := 0
	for _, d := range departments() {
		weights += d.weight
	}
	if weights != 100 {
		t.Errorf("the weights are %d in all, pick takes them for 100", weights)
	}
}

func TestDifferentAnswersAreAnError(t *testing.T) {
	staff := newStaff(3, 1)
	changed := *staff[1]
	changed.Age++
	for name, answers := range map[string][2][]*Employee{
		"nobody":   {nil, nil},
		"fewer":    {staff[:2], staff},
		"order":    {{staff[0], staff[1]}, {staff[1], staff[0]}},
		"property": {{staff[1]}, {&changed}},
	} {
		if sameAnswers(answers[0], answers[1], (*Employee).record) == nil {
			t.Errorf("%s: the answers count as the same", name)
		}
	}
	if err := sameAnswers(staff, newStaff(3, 1), (*Employee).record); err != nil {
		t.Error(err)
	}
}

// TestSummaryMakesNothingUp: what was not measured is no row of the summary.
func TestSummaryMakesNothingUp(t *testing.T) {
	s := &section{Lookups: []*lookup{{Question: "who", With: cost{Searched: 1, Requests: 2}, Without: cost{Searched: 3, Requests: 4}}},
		Actions: []*action{{What: "done", Requests: 5}, {What: "done by hand", Requests: 6}}}
	for _, c := range []struct {
		show          show
		with, without string
	}{
		{show{what: "who"}, "     1     2     0.0", "     3     4     0.0"},
		{show{what: "done"}, "     -     5     0.0", "     -     -       -"},
		{show{what: "done", naive: "done by hand"}, "     -     5     0.0", "     -     6     0.0"},
	} {
		row, err := c.show.measured(s)
		if err != nil || row.With.String() != c.with || row.Without.String() != c.without {
			t.Errorf("%+v: %+v, error %v", c.show, row, err)
		}
	}
	for _, x := range []show{{what: "nothing"}, {what: "done", naive: "nothing"}} {
		if _, err := x.measured(s); err == nil {
			t.Errorf("%+v was measured", x)
		}
	}
}

// TestDriftIsFoundExactly: what Verify leaves out, makes up or tells twice ends the run.
func TestDriftIsFoundExactly(t *testing.T) {
	a := patterns.Finding{Kind: patterns.Missing, Pattern: "email", Location: "email_a@contoso.com"}
	b := patterns.Finding{Kind: patterns.Different, Pattern: "email", Location: "email_b@contoso.com"}
	other := a
	other.Kind = patterns.Spurious
	d := &drifting{damages: []damage{{want: a}, {want: b}}}
	for name, found := range map[string][]patterns.Finding{
		"nothing":      nil,
		"one":          {a},
		"one twice":    {a, a},
		"one too many": {a, b, other},
		"another kind": {other, b},
	} {
		if d.exactly(found) == nil {
			t.Errorf("%s: the differences count as those that were made", name)
		}
	}
	b.Err = errors.New("what is wrong with it")
	if err := d.exactly([]patterns.Finding{b, a}); err != nil {
		t.Error(err)
	}
}

// TestWithoutKeyNothingIsSigned: whoever has a signature in place of the account's key is told so.
func TestWithoutKeyNothingIsSigned(t *testing.T) {
	c := &company{place: &place{connection: "TableEndpoint=https://contoso.table.core.windows.net;SharedAccessSignature=sv=2019-02-02&sig=c2VjcmV0"}}
	var s section
	if err := ownRows().run(t.Context(), c, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Actions) > 0 || len(s.Text) != 1 || !strings.Contains(s.Text[0], "is missing") || strings.Contains(s.Text[0], "c2VjcmV0") {
		t.Errorf("%d actions, %q", len(s.Actions), s.Text)
	}
}

// TestTornProfileIsNotTheSame: rows of two editions, put together by hand, are none of the two.
func TestTornProfileIsNotTheSame(t *testing.T) {
	e := newStaff(1, 1)[0]
	before, after := newProfile(e, "2012"), newProfile(e, "2013")
	whole, err := fromHand(each(before.byHand()))
	if err := sameProfile(whole, before, err); err != nil {
		t.Error(err)
	}
	rows := append(before.byHand()[:1], after.byHand()[1:]...)
	torn, err := fromHand(each(rows))
	if err != nil {
		t.Fatal(err)
	}
	if sameProfile(torn, before, nil) == nil || sameProfile(torn, after, nil) == nil {
		t.Error("a torn profile counts as a whole one")
	}
}

// TestAddUp: rows of one slot are one count, and an error comes once, last.
func TestAddUp(t *testing.T) {
	first := time.Date(theYear, 1, 1, 9, 0, 0, 0, time.UTC)
	hours := []*Hour{newHour(1, first, 3), newHour(1, first.Add(time.Hour), 4), newHour(1, first.AddDate(0, 0, 2), 5)}
	got, err := collect(addUp(each(hours), ofDay))
	if err != nil || len(got) != 2 || *got[0] != (count{0, 7}) || *got[1] != (count{2, 5}) {
		t.Errorf("%v, error %v", got, err)
	}
	hours = append(hours, &Hour{RowKey: "hour_of_nothing"})
	got, err = nil, nil
	for n, e := range addUp(each(hours), ofDay) {
		if err != nil {
			t.Fatal("something follows the error")
		}
		got, err = append(got, n), e
	}
	if err == nil || len(got) != 2 {
		t.Errorf("%d counts, error %v", len(got), err)
	}
}
