package simulator

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestChaosLosesNothing(t *testing.T) {
	for _, c := range []Chaos{
		{ShortPages: 1}, {EmptyPages: 1}, {PartitionPages: 1}, {PartitionPages: 1, NoNextRowKey: 1}, {Unordered: true}, {Unordered: true, ShortPages: 0.5, EmptyPages: 0.5},
		{ShortPages: 0.5, EmptyPages: 0.5, PartitionPages: 0.5, NoNextRowKey: 0.5},
	} {
		for seed := range uint64(5) {
			a := withTable(t, Options{Seed: seed, Chaos: c})
			fill(a, 6, 50)
			pages := a.walk("/Employees()?$top=70")
			all := slices.Concat(pages...)
			if slices.IsSorted(all) == c.Unordered {
				t.Errorf("%+v: sorted %v", c, !c.Unordered)
			}
			slices.Sort(all)
			if n := len(slices.Compact(all)); n != 300 || len(all) != 300 {
				t.Errorf("%+v: %d rows, %d of them different", c, len(all), n)
			}
			if len(pages) <= 5 && (c.ShortPages > 0 || c.EmptyPages > 0 || c.PartitionPages > 0) {
				t.Errorf("%+v: only %d pages", c, len(pages))
			}
		}
	}
}

func TestEmptyPagesAndMissingRowKeys(t *testing.T) {
	a := withTable(t, Options{Chaos: Chaos{EmptyPages: 1}})
	fill(a, 2, 2)
	if got := sizes(a.walk("/Employees()?$top=3")); !slices.Equal(got, []int{0, 3, 0, 1}) {
		t.Errorf("pages of %v", got)
	}
	a.SetChaos(Chaos{PartitionPages: 1, NoNextRowKey: 1})
	r := a.send(http.MethodGet, "/Employees()", "")
	if r.Header.Get("x-ms-continuation-NextPartitionKey") == "" || r.Header.Get("x-ms-continuation-NextRowKey") != "" {
		t.Errorf("headers %v", r.Header)
	}
	if got := sizes(a.walk("/Employees()?x=")); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("pages of %v", got)
	}
}

func TestFailuresComeBeforeOrAfter(t *testing.T) {
	for _, c := range []struct {
		chaos  Chaos
		status int
		code   string
		rows   int
	}{
		{Chaos{Busy: 1}, 503, "ServerBusy", 0}, {Chaos{Internal: 1}, 500, "InternalError", 0},
		{Chaos{Busy: 1, Applied: 1}, 503, "", 1}, {Chaos{Internal: 1, Applied: 1}, 500, "InternalError", 1},
		{Chaos{Limited: 1}, 429, "TooManyRequests", 0}, {Chaos{Limited: 1, Applied: 1}, 429, "TooManyRequests", 0},
	} {
		a := withTable(t, Options{})
		a.SetChaos(c.chaos)
		a.want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r"}`, c.status, c.code)
		if n := len(a.Rows("Employees")); n != c.rows {
			t.Errorf("%+v: %d rows", c.chaos, n)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, a.QueueEndpoint()+"/q", nil)
		if c.chaos.Applied == 0 {
			a.do(req).check(t, "queue", c.status, c.code)
		}
	}
}

// TestTransactionsFailInside: half of the transactions that fail do so inside an answer with status 202, half of these without a
// code, before or after they are carried out. 429 and ServerBusy are said before, always.
func TestTransactionsFailInside(t *testing.T) {
	const runs = 200
	for _, c := range []struct {
		chaos Chaos
		want  []string
	}{
		{Chaos{Busy: 1}, []string{"202 503 0 rows", "202 503 ServerBusy 0 rows", "503 ServerBusy 0 rows"}},
		{Chaos{Busy: 1, Applied: 1}, []string{"202 503 2 rows", "503 2 rows"}},
		{Chaos{Internal: 1}, []string{"202 500 0 rows", "202 500 InternalError 0 rows", "500 InternalError 0 rows"}},
		{Chaos{Internal: 1, Applied: 1}, []string{"202 500 2 rows", "202 500 InternalError 2 rows", "500 InternalError 2 rows"}},
		{Chaos{Limited: 1, Applied: 1}, []string{"202 429 0 rows", "202 429 TooManyRequests 0 rows", "429 TooManyRequests 0 rows"}},
	} {
		a, seen := withTable(t, Options{}), map[string]int{}
		a.SetChaos(c.chaos)
		for i := range runs {
			before := len(a.Rows("Employees"))
			r := a.transact(part("PUT", fmt.Sprintf("(PartitionKey='%d',RowKey='a')", i), "{}"), part("PUT", fmt.Sprintf("(PartitionKey='%d',RowKey='b')", i), "{}"))
			what := strings.TrimSpace(r.code(t))
			if m := regexp.MustCompile(`HTTP/1.1 (\d+)`).FindStringSubmatch(r.text); m != nil {
				what = strings.TrimSpace(strings.Replace(what, "202", "202 "+m[1], 1))
			}
			seen[fmt.Sprintf("%s %d rows", what, len(a.Rows("Employees"))-before)]++
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.chaos, seen)
		}
		for what, n := range seen {
			if want := runs / 2; !strings.HasPrefix(what, "202") && (n < want-30 || n > want+30) {
				t.Errorf("%+v: %d of %d are answered %s", c.chaos, n, runs, what)
			}
		}
	}
}

func TestOneSeedIsOneRun(t *testing.T) {
	run := func(seed uint64) string {
		a := withTable(t, Options{Seed: seed})
		fill(a, 3, 30)
		a.SetChaos(Chaos{ShortPages: 0.5, EmptyPages: 0.2, Busy: 0.2, Internal: 0.2, Applied: 0.5, Latency: time.Millisecond, Jitter: time.Second})
		text := ""
		for i := range 50 {
			text += fmt.Sprintln(a.send(http.MethodGet, "/Employees()", "").text, a.send(http.MethodPut, fmt.Sprintf("/Employees(PartitionKey='x',RowKey='%d')", i), "{}").StatusCode)
		}
		return text
	}
	first, again := run(1), run(1)
	if first != again {
		t.Error("one seed, two runs")
	}
	if first == run(2) {
		t.Error("two seeds, one run")
	}
}

func TestLatencyMovesTheClock(t *testing.T) {
	a := newAccount(t, Options{Chaos: Chaos{Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}})
	for range 20 {
		before := a.Clock().Now()
		a.send(http.MethodGet, "/Tables", "")
		if took := a.Clock().Now().Sub(before); took < 20*time.Millisecond || took >= 30*time.Millisecond {
			t.Errorf("a request took %v", took)
		}
	}
}

func TestBeforeComesInBetween(t *testing.T) {
	a := withTable(t, Options{})
	done := false
	a.SetChaos(Chaos{Before: func(*http.Request) {
		if !done {
			done = true // first: the insert comes by here as well
			insert(a, "p", "r", "")
		}
	}})
	defer a.SetChaos(Chaos{})
	a.want(http.MethodPut, "/Employees(PartitionKey='p',RowKey='r')", "{}", 204, "", "If-Match", "*")
}

func TestPartitionRate(t *testing.T) {
	a := withTable(t, Options{})
	fill(a, 2, 1000)
	a.SetChaos(Chaos{PartitionLimit: true})
	const first, second = "/Employees()?$filter=PartitionKey%20eq%20'p000'", "/Employees()?$filter=PartitionKey%20eq%20'p001'"
	a.want(http.MethodGet, first, "", 200, "")
	a.want(http.MethodGet, first, "", 200, "")
	a.want(http.MethodGet, first, "", 503, "ServerBusy")
	a.want(http.MethodPut, "/Employees(PartitionKey='p000',RowKey='new')", "{}", 503, "ServerBusy")
	inside := map[string]bool{}
	for range 20 {
		r := a.transact(part("PUT", "(PartitionKey='p000',RowKey='new')", "{}"))
		if r.StatusCode != 202 || !strings.Contains(r.text, "HTTP/1.1 503 Service Unavailable") {
			t.Fatalf("transaction: %d %s", r.StatusCode, clip(r.text))
		}
		inside[r.code(t)] = true
	}
	if !inside["202 "] || !inside["202 ServerBusy"] || len(inside) != 2 {
		t.Errorf("transactions are answered %v", inside)
	}
	a.want(http.MethodGet, second, "", 200, "")
	a.Clock().Advance(time.Second / PartitionRate)
	a.want(http.MethodGet, "/Employees(PartitionKey='p000',RowKey='r000001')", "", 200, "")
	a.want(http.MethodGet, "/Employees(PartitionKey='p000',RowKey='r000001')", "", 503, "ServerBusy")
	a.Clock().Advance(time.Hour)
	a.want(http.MethodGet, first, "", 200, "")
	a.want(http.MethodGet, first, "", 200, "")
	a.want(http.MethodGet, first, "", 503, "ServerBusy")
	if n := len(a.Rows("Employees")); n != 2000 {
		t.Errorf("%d rows: something refused was written", n)
	}
}

// TestManyGoroutines counts up under ETags: no increment may be lost.
func TestManyGoroutines(t *testing.T) {
	a := withTable(t, Options{})
	insert(a, "p", "r", `,"N":0`)
	const address, workers, each = "/Employees(PartitionKey='p',RowKey='r')", 8, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				row := a.Rows("Employees")[0]
				n, _ := row.Properties["N"].Int()
				if a.send(http.MethodPut, address, fmt.Sprintf(`{"N":%d}`, n+1), "If-Match", row.ETag).StatusCode == 204 {
					done++
				}
			}
		})
	}
	wg.Wait()
	if n, _ := a.Rows("Employees")[0].Properties["N"].Int(); n != workers*each {
		t.Errorf("counted to %d, want %d", n, workers*each)
	}
}
