package patterns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// takesAll is a service that every write succeeds on.
func takesAll(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(req.URL.Path, "/$batch") {
		return harness.Reply(req, http.StatusNoContent, "", "ETag", `W/"1"`), nil
	}
	answer := harness.BatchAnswer(bytes.Count(body, []byte("\r\nContent-ID: ")))
	return harness.Reply(req, http.StatusAccepted, string(answer), "Content-Type", "multipart/mixed; boundary=batchresponse_1"), nil
}

// TestBulkIsBoundedWhileTheServiceStalls: of a source without end, no more is taken than the documented bound, and no
// more goroutines run than transactions may be under way; neither with many partitions nor with one.
func TestBulkIsBoundedWhileTheServiceStalls(t *testing.T) {
	const concurrency = 2
	for name, partition := range map[string]func(i int) string{
		"a partition each": func(i int) string { return fmt.Sprint(i) },
		"30,000":           func(i int) string { return fmt.Sprint(i % 30_000) },
		"one":              func(int) string { return "p" },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			table := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}).Table("Employees")
			before := runtime.NumGoroutine()
			var taken atomic.Int64
			ended := make(chan error)
			go func() {
				_, err := table.Entities().BulkNonAtomic(ctx, func(yield func(*tables.Entity, error) bool) {
					for i := 0; yield(&tables.Entity{Key: tables.Key{Partition: partition(i), Row: fmt.Sprint(i)}}, nil); i++ {
						taken.Add(1)
					}
				}, &tables.BulkOptions{Concurrency: concurrency})
				ended <- err
			}()
			most := 0
			for last := int64(-1); last != taken.Load(); time.Sleep(100 * time.Millisecond) {
				last = taken.Load()
				most = max(most, runtime.NumGoroutine()-before)
			}
			if n := taken.Load(); n > 20_000 || n == 0 {
				t.Errorf("%d rows were taken", n)
			}
			if most > 20+4*concurrency {
				t.Errorf("%d goroutines", most)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestBulkOfManyPartitions: what a row costs does not grow with the number of partitions, in processor time.
func TestBulkOfManyPartitions(t *testing.T) {
	few, many := 2_000, 30_000
	if race.Enabled {
		many /= 4
	}
	bulkOfPartitions(t, few) // what runs for the first time costs more
	each, eachOfMany := bulkOfPartitions(t, few), bulkOfPartitions(t, many)
	t.Logf("%v for each of %d rows, %v for each of %d", each, few, eachOfMany, many)
	if eachOfMany > 5*each { // the same, and more for the garbage; a search through all partitions for each row takes 15 times as much
		t.Errorf("%v for each of %d rows, and %v for each of %d", each, few, eachOfMany, many)
	}
}

// bulkOfPartitions writes a row to each of n partitions, and returns the processor time for one.
func bulkOfPartitions(t *testing.T, n int) time.Duration {
	t.Helper()
	var sent atomic.Int64
	table := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		sent.Add(1)
		return takesAll(req)
	}).Table("Employees")
	start := harness.CPUTime()
	done, err := table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			if !yield(&tables.Entity{Key: tables.Key{Partition: fmt.Sprint(i), Row: "r"}}, nil) {
				return
			}
		}
	}, nil)
	if err != nil || done.Written != int64(n) || done.Resume != "" || sent.Load() != int64(n) {
		t.Fatalf("%+v with %d requests, %v", done, sent.Load(), err)
	}
	return (harness.CPUTime() - start) / time.Duration(n)
}

// TestBulkFlushesStragglers: a row whose partition has no more is not held back until the end of the sequence, so that
// Resume goes on.
func TestBulkFlushesStragglers(t *testing.T) {
	const rows = 41_000
	var mu sync.Mutex
	var resumed []int64
	table := harness.InProcess(t, takesAll).Table("Employees")
	_, err := table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		for i := range rows {
			partition := "p"
			if i == 0 {
				partition = "straggler"
			}
			if !yield(&tables.Entity{Key: tables.Key{Partition: partition, Row: fmt.Sprint(i)}}, nil) {
				return
			}
		}
	}, &tables.BulkOptions{Progress: func(p tables.BulkReport) {
		mu.Lock()
		defer mu.Unlock()
		if p.Written < rows-5000 { // before the end of the sequence, which is at most 40 transactions ahead
			done, err := strconv.ParseInt(p.Resume, 10, 64)
			if err != nil {
				t.Error(err)
			}
			resumed = append(resumed, done)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Max(resumed) == 0 {
		t.Error("nothing was done before the end")
	}
}

// TestBulkTakesOverCopiesLeftBehind: as Insert does by itself; a key that is really taken is refused as before.
func TestBulkTakesOverCopiesLeftBehind(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	index := func() *intrapartition.Unique[person, string] {
		return intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)
	}
	open := func(attached ...patterns.Pattern[person]) *patterns.Repository[person] {
		return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), attached...))
	}
	people := func(n int) (list []*person) {
		for i := range n {
			list = append(list, &person{Team: "red", ID: i, Email: fmt.Sprintf("%d@contoso.com", i)})
		}
		return list
	}
	source := func(list []*person) func(func(*person, error) bool) {
		return func(yield func(*person, error) bool) {
			for _, p := range list {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
	indexed, plain := open(index()), open()
	for _, p := range people(6)[3:5] {
		if err := indexed.Insert(ctx, p); err != nil {
			t.Fatal(err)
		}
		if err := plain.DeleteUnconditional(ctx, p.Key()); err != nil { // by a program without the index: the copy stays
			t.Fatal(err)
		}
	}
	list := people(8)
	done, err := indexed.BulkNonAtomic(ctx, source(list), nil)
	if err != nil || done.Written != 8 || done.Rows != 16 || done.Resume != "" || done.Transactions != 1 { // both orphaned copies are claimed in one change set
		t.Fatalf("%+v, %v", done, err)
	}
	for _, p := range list {
		p.Name = "Ann"
		if err := indexed.Replace(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	concurrent := []*person{{Team: "red", ID: 20, Email: "20@contoso.com"}, {Team: "red", ID: 21, Email: "1@contoso.com"}}
	done, err = indexed.BulkNonAtomic(ctx, source(concurrent), nil)
	if e := harness.WantKind(t, err, tables.ErrDuplicate); e.Pattern != "email" || e.Op != "BulkNonAtomic" || e.Change != 2 || done.Written != 1 || done.Resume != "1" {
		t.Errorf("%+v, %+v", e, done)
	}
	if done, err = indexed.BulkNonAtomic(ctx, source(people(9)), &tables.BulkOptions{SkipExisting: true}); err != nil || done.Unchanged != 8 || done.Written != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}
