package harness

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// GeneratedTable is a table whose rows no memory holds: its service makes each row when the client reads it. So a test can measure the memory
// of a job alone.
type GeneratedTable struct {
	*tables.Table
	gate sync.RWMutex // locked while requests have to wait
}

// Generated returns a table of n rows. row returns the keys of row i, in ascending order, and members appends its properties as JSON, each
// after a comma.
func Generated(t testing.TB, n int, row func(i int) tables.Key, members func(dst []byte, i int) []byte) *GeneratedTable {
	t.Helper()
	g := &GeneratedTable{}
	g.Table = InProcess(t, func(req *http.Request) (*http.Response, error) {
		g.pass()
		asked := req.URL.Query()
		terms := comparisons.FindAllStringSubmatch(asked.Get("$filter"), -1)
		from := sort.Search(n, func(i int) bool { return beside(terms, row(i)) >= 0 })
		if next := asked.Get("NextRowKey"); next != "" {
			from, _ = strconv.Atoi(next)
		}
		page := tables.MaxPageSize
		if top, err := strconv.Atoi(asked.Get("$top")); err == nil {
			page = min(page, top)
		}
		to := min(n, from+page)
		to = from + sort.Search(to-from, func(i int) bool { return beside(terms, row(from+i)) > 0 })
		resp := Reply(req, http.StatusOK, "")
		resp.Body, resp.ContentLength = io.NopCloser(&generator{pass: g.pass, next: from, to: to, row: row, members: members}), -1
		if to == from+page && to < n && beside(terms, row(to)) == 0 {
			resp.Header.Set("X-Ms-Continuation-Nextpartitionkey", row(to).Partition)
			resp.Header.Set("X-Ms-Continuation-Nextrowkey", strconv.Itoa(to))
		}
		return resp, nil
	}).Table("Generated")
	return g
}

// pass waits until the gate is open.
func (g *GeneratedTable) pass() {
	g.gate.RLock()
	defer g.gate.RUnlock()
}

// comparisons matches the terms of a filter that the library writes for a range of keys.
var comparisons = regexp.MustCompile(`(PartitionKey|RowKey) (eq|ge|gt|le|lt) '([^']*)'`)

// beside compares a key with the range that a filter selects: it is negative before the range, and positive after it.
func beside(terms [][]string, key tables.Key) int {
	for _, t := range terms {
		c := cmp.Compare(key.Partition, t[3])
		if t[1] == "RowKey" {
			c = cmp.Compare(key.Row, t[3])
		}
		switch op := t[2]; {
		case c < 0 && (op == "eq" || op == "ge" || op == "gt") || c == 0 && op == "gt":
			return -1
		case c > 0 && (op == "eq" || op == "le" || op == "lt") || c == 0 && op == "lt":
			return 1
		}
	}
	return 0
}

// generator is the body of a response, which it makes row by row.
type generator struct {
	pass     func()
	next, to int
	begun    bool
	rest     []byte
	row      func(i int) tables.Key
	members  func(dst []byte, i int) []byte
}

// Read implements io.Reader.
func (g *generator) Read(p []byte) (int, error) {
	if len(g.rest) == 0 {
		if g.pass(); g.next > g.to {
			return 0, io.EOF
		}
		g.rest = g.rest[:0]
		switch {
		case !g.begun:
			g.rest = append(g.rest, `{"value":[`...)
			g.begun = true
		case g.next < g.to:
			g.rest = append(g.rest, ',')
		}
		if g.next < g.to {
			key := g.row(g.next)
			g.rest = fmt.Appendf(g.rest, `{"odata.etag":"W/\"datetime'2026-01-01T00%%3A00%%3A00Z'\"","PartitionKey":%q,"RowKey":%q,"Timestamp":"2026-01-01T00:00:00Z"`, key.Partition, key.Row)
			g.rest = append(g.members(g.rest, g.next), '}')
		} else {
			g.rest = append(g.rest, "]}"...)
		}
		g.next++
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// LiveHeap calls a job that reads the table, and returns by how many bytes the live heap was larger meanwhile than before, at most. For each
// measurement it holds all requests until the job stands still, since what a collection sees of a running job is a matter of chance.
func (g *GeneratedTable) LiveHeap(job func()) (most int64) {
	before := live()
	done := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		// A short job is measured often, so that its peak is not missed, and a long one seldom, so that it ends.
		for pause := 2 * time.Millisecond; ; pause = min(pause*5/4, 50*time.Millisecond) {
			select {
			case <-done:
				return
			case <-time.After(pause):
				g.gate.Lock()
				standStill()
				most = max(most, live()-before)
				g.gate.Unlock()
			}
		}
	})
	job()
	close(done)
	measuring.Wait()
	return most
}

// live returns the bytes in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// standStill waits until the process has allocated next to nothing for a while: a job also pauses while it writes a file.
func standStill() {
	var m runtime.MemStats
	last := uint64(0)
	for still := 0; still < 10; still++ {
		time.Sleep(5 * time.Millisecond)
		if runtime.ReadMemStats(&m); m.TotalAlloc-last > 16<<10 {
			still = 0
		}
		last = m.TotalAlloc
	}
}
