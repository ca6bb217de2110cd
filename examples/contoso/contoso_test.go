package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
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
	page := filepath.Join(t.TempDir(), "report.html")
	if err := run(t.Context(), []string{"-n", "300", "-json", "-growth", "250,500", "-report", page}, findPlace, scenarios(), &stdout, &stderr); err != nil {
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
	if len(r.Sections) != len(scenarios()) || r.Employees != 300 || r.Kept || r.Chaos != nil || len(r.Resources) < 40 || r.File != page {
		t.Fatalf("%d sections, %d employees, chaos %v, resources %q, file %s", len(r.Sections), r.Employees, r.Chaos, r.Resources, r.File)
	}
	if r.Summary.With.Searched*4 > r.Summary.Without.Searched { // nearly all of the first are log records in blobs
		t.Errorf("with the patterns %d rows are searched, without them %d", r.Summary.With.Searched, r.Summary.Without.Searched)
	}
	for _, row := range r.Patterns {
		if row.Proves == "" || row.With.Requests == 0 || row.Without != nil && row.Without.Requests == 0 {
			t.Errorf("the summary has %+v", row)
		}
	}
	for _, g := range r.Growth {
		if len(g.Points) != 2 || g.Points[1].With.Searched >= g.Points[1].Without.Searched {
			t.Errorf("growth of %+v", g)
		}
	}
	if !strings.Contains(stderr.String(), "300 of 300 employees, 100 %") {
		t.Errorf("no progress: %q", &stderr)
	}
	text := string(assert.Must[[]byte](t)(os.ReadFile(page)))
	checkPage(t, &r, text)
	for _, secret := range []string{"sig=", "AccountKey", "SharedAccessSignature", "DefaultEndpointsProtocol"} {
		if strings.Contains(text, secret) {
			t.Errorf("the page has %s", secret)
		}
	}
	if r.Emulator != "" { // an account may make a client repeat a request
		checkRequests(t, &r)
	}
}

// checkRequests compares the requests of every question, and of actions, with what they should cost.
func checkRequests(t *testing.T, r *report) {
	t.Helper()
	lookups := map[string][2]int{
		"employee 000223 of Sales":              {1, 1},
		"ids 000100 to 000199 in Sales":         {1, 1},
		"older than 40 in Sales":                {1, 1},
		"three ids joined by or":                {3, 1},
		"jonesj@contoso.com in Sales":           {1, 1},
		"emails that start with a, in Sales":    {1, 1},
		"the first 20 of Sales by name":         {1, 1},
		"everybody named Jones in Sales":        {1, 1},
		"hired in 2012 by Sales, in order":      {1, 1},
		"everybody named Jones":                 {10, 1},
		"the emails of Sales":                   {1, 1},
		"an employee and three reviews":         {1, 2},
		"one email, anywhere":                   {1, 1},
		"emails that start with a, anywhere":    {1, 1},
		"Jones in Sales, by row (option 2)":     {1 + 3, 1},
		"Jones anywhere, by row (option 3)":     {1 + 4, 1},
		"Sales with its manager":                {1, 2},
		"how many employees Sales has":          {1, 1},
		"20 employees with their floor":         {1, 21},
		"everybody in Sales, of all types":      {1, 2},
		"the profile of 000223 in Sales":        {2, 1},
		"June Jones with her photo":             {2, 1},
		"a year by the day":                     {1, 2},
		"the ten latest claims":                 {1, 2},
		"a tenth of a second, in order":         {partitions, 1},
		"what employee 000060 did":              {1, 1},
		"her logins of July":                    {5, 1},
		"errors of two minutes, rows by hour":   {1 + 3, 1},
		"errors of two minutes, rows by server": {1 + 3, 1},
		"her appraisals":                        {1, 1},
		"one national id in Sales":              {1, 1},
	}
	actions := map[string]int{
		"LastName eq 'Jones', of the whole table": 0,
		"the first 25 of Sales by email":          1,
		"the token with another query":            0,
		"a color merged by an older program":      1,
		"the card replaced by it":                 1,
		"replaced, with another email and age":    2,
		"read by the old email":                   1,
		"read by the new one":                     1,
		"a new employee with that email":          3,
		"one with an email of his own":            1,
		"the first of two readers writes":         1,
		"the second one writes":                   1,
		"written together":                        1,
		"employees inserted":                      5 * minEmployees,
		"her email changed":                       5,
		"found by her new email":                  1,
		"moves asked for":                         former,
		"employees inserted, both options":        (1 + 1 + 2) * (jones - reviewed),
		"her last name changed":                   1 + 2 + 2,
		"the manager's email changed":             2,
		"another manager begins":                  2,
		"the one before stops":                    2,
		"an employee and her locker inserted":     2,
		"both read, side by side":                 2,
		"read by the program of version 1":        1,
		"one answer merged":                       3,
		"another answer of it changed meanwhile":  1,
		"12 employees with photos inserted":       2 * 12,
		"all of it read":                          1,
		"an employee deleted":                     4,
		"a year of one employee":                  1,
		"claims imported":                         1200 / 100,
		"a claim appended":                        1,
		"the same claim once more":                2,
		"the events of one second at nine":        2 + 20,
		"more partitions":                         2,
		"events of a second two minutes later":    2 + 4*partitions,
		"logins imported":                         13*2 + 13*20,
		"the first login of a week":               4,
		"the old weeks dropped":                   2 + 2 + 1 + 5,
		"the same in the plain table, by hand":    1 + 20,
		"log records written to blobs":            2 * (3*3 + 2*(3-1)),
		"her comment written":                     1,
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
	find = func(_ context.Context, o options, _ *progress) (*place, error) {
		if s.Clock == nil {
			return &place{connection: s.ConnectionString, options: s.ClientOptions, pass: time.Sleep, lasts: true, leave: func() error { return nil }}, nil
		}
		at := simulated(s)
		at.lasts = true
		if o.chaos {
			return at, at.serve()
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
	for pager := eventual.QueueService(account).NewListQueuesPager(nil); pager.More(); {
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
	for pager := blobstorage.Service(account).NewListContainersPager(nil); pager.More(); {
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
		_, err = eventual.QueueService(account).NewQueueClient(name).Delete(context.Background(), nil)
	default:
		_, err = blobstorage.Container(account, name).Delete(context.Background(), nil)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestChaos: with faults in all writes, and a worker that is killed again and again, the run ends right, and leaves nothing.
func TestChaos(t *testing.T) {
	find, _, made := lasting(t)
	before := made()
	parts := titled(t, "Loading", "Employees by email", "Former employees", "Employees by last name", "Departments with their manager",
		"Departments, their employees and their lockers", "Photos and contracts", "Everything verified") // those whose writes reach beyond a partition
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
	if want := len(killsAt()); r.Chaos.Kills != want {
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
	if err := run(t.Context(), append(args, "-json", "-growth", "", "-report", filepath.Join(t.TempDir(), "report.html")), find, parts, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	r := &report{}
	if err := json.Unmarshal(stdout.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// titled returns the scenarios with these titles.
func titled(t *testing.T, titles ...string) []scenario {
	t.Helper()
	parts := slices.DeleteFunc(scenarios(), func(part scenario) bool { return !slices.Contains(titles, part.title) })
	if len(parts) != len(titles) {
		t.Fatalf("of the scenarios %q there are %d", titles, len(parts))
	}
	return parts
}

// TestKept: with -keep, what a run has made is there after it, by the names in the report.
func TestKept(t *testing.T) {
	find, account, made := lasting(t)
	before := made()
	r := reportOf(t, []string{"-n", "250", "-keep"}, find, titled(t, "Loading", "Former employees"))
	kept := slices.DeleteFunc(made(), func(name string) bool { return slices.Contains(before, name) })
	slices.Sort(r.Resources)
	if !slices.Equal(kept, r.Resources) || len(kept) < 8 || !r.Kept {
		t.Errorf("%q were kept, want %q", kept, r.Resources)
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
	for _, args := range [][]string{{"-n", "3"}, {"-n", "x"}, {"-n", "1000000"}, {"-keep"}, {"extra"}, {"-h"}, {"-service", "x"}, {"-service", "account"}, {"-growth", "3"}} {
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

// TestWithoutNode: where there is no Node.js, the program runs on the simulator, and says so before anything else.
func TestWithoutNode(t *testing.T) {
	t.Setenv(connectionVariable, "")
	t.Setenv(storagetest.ServiceVariable, "")
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-n", "250", "-growth", "", "-report", filepath.Join(t.TempDir(), "r.html")}, findPlace, scenarios(), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(stdout.String(), "\n")
	if !strings.Contains(lines[1], "There is no node on PATH") || !strings.Contains(stdout.String(), "All is as it should be") {
		t.Errorf("the output begins with %q", lines[:2])
	}
}

// TestServiceOfTheEnvironment: what -service does not name, the environment does.
func TestServiceOfTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		simulated, account bool
		want               string
	}{{true, true, "simulator"}, {true, false, "simulator"}, {false, true, "account"}} {
		if got, chosen := defaultService(c.simulated, c.account); got != c.want || chosen != "" {
			t.Errorf("%+v: %s, %q", c, got, chosen)
		}
	}
	t.Setenv(connectionVariable, "UseDevelopmentStorage=true")
	at, err := findPlace(t.Context(), options{service: "simulator"}, &progress{w: io.Discard})
	if err != nil || at.emulator != "simulator" || at.lasts {
		t.Errorf("-service simulator: %+v, error %v", at, err)
	}
}

// TestGrowthOfShortRuns: without -growth, a short run measures the reads of smaller companies only.
func TestGrowthOfShortRuns(t *testing.T) {
	for args, want := range map[string][]int{"-n 250": {500, 5_000}, "-n 5000": {500, 5_000, 20_000}, "-n 250 -growth 20000,300": {20_000, 300}, "-growth=": nil} {
		o, err := parseOptions(strings.Fields(args), io.Discard)
		if err != nil || !slices.Equal(o.growth, want) {
			t.Errorf("%s: %v, error %v", args, o.growth, err)
		}
	}
}

func TestStaffIsMadeFromItsSeed(t *testing.T) {
	a, b, other := newStaff(3000, 1), newStaff(3000, 1), newStaff(3000, 2)
	emails := map[string]bool{}
	alike := 0
	for i, e := range a {
		if same(e, b[i]) != nil {
			t.Fatalf("employee %d differs", e.ID)
		}
		if same(e, other[i]) == nil {
			alike++
		}
		if emails[e.Email] {
			t.Fatalf("email %s is there twice", e.Email)
		}
		emails[e.Email] = true
	}
	if alike > 10 {
		t.Errorf("%d employees are the same with another seed", alike)
	}
	weights := 0
	for _, d := range departments {
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
		if sameAnswers(answers[0], answers[1]) == nil {
			t.Errorf("%s: the answers count as the same", name)
		}
	}
	if err := sameAnswers(staff, newStaff(3, 1)); err != nil {
		t.Error(err)
	}
}

// TestSummaryMakesNothingUp: what was not measured is no row of the summary.
func TestSummaryMakesNothingUp(t *testing.T) {
	s := &section{Lookups: []*lookup{{Question: "who", With: cost{spent: spent{1, 2, 0}}, Without: cost{spent: spent{3, 4, 0}}}},
		Actions: []*action{{What: "done", spent: spent{Requests: 5}}, {What: "done by hand", spent: spent{Requests: 6}}}}
	for _, c := range []struct {
		show          show
		with, without string
	}{
		{show{What: "who"}, "      1      2     0.0", "      3      4     0.0"},
		{show{What: "done"}, "      -      5     0.0", "      -      -       -"},
		{show{What: "done", Naive: "done by hand"}, "      -      5     0.0", "      -      6     0.0"},
	} {
		row, err := c.show.measured(s)
		if err != nil || row.With.String() != c.with || row.Without.String() != c.without {
			t.Errorf("%+v: %+v, error %v", c.show, row, err)
		}
	}
	for _, x := range []show{{What: "nothing"}, {What: "done", Naive: "nothing"}} {
		if _, err := x.measured(s); err == nil {
			t.Errorf("%+v was measured", x)
		}
	}
}
