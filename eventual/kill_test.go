package eventual_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// killAfter is how many messages a worker handles before it may be killed: however slow the machine is, each kill comes
	// after some progress.
	killAfter   = 40
	killSenders = 4
	killSend    = 10 // messages, before a sender looks at the queue again
	// killBacklog is how long the queue gets: Azurite takes the longer for each message the more there are.
	killBacklog = 200
)

// TestKilledWorkers sends some thousand messages through two worker processes, of which one after the other is killed in the
// middle of its work and started again: no message is lost, and each has its effect once. It is over when nothing is left,
// whenever that is.
func TestKilledWorkers(t *testing.T) {
	if names := os.Getenv(killVariable); names != "" {
		beWorker(t, names)
		return
	}
	storagetest.AzuriteOnly(t)
	n := 1_000
	switch {
	case harness.Shortened():
		n = 500
	case harness.Thorough():
		n = 10_000
	}
	s := storagetest.Azurite(t)
	q := newQueue(t, s, &eventual.QueueOptions{VisibilityTimeout: killVisibility})
	table := q.Account().Table(s.TableName(t))
	assert.Check(t, table.Create(t.Context()))
	newEffects(t, table)

	began := time.Now()
	sent := sendNumbers(t, q, n)
	start := func(int) *victim {
		return startChild(t, "TestKilledWorkers", s.ConnectionString, killVariable+"="+table.Name()+" "+q.Name())
	}
	killed := killInTurn(t, start, func(v *victim) bool { return v.said(handled) >= killAfter }, func([]*victim) bool {
		return !sent.Load() || assert.Must[int](t)(q.Length(t.Context())) > 0
	})
	took := time.Since(began)

	again, twice := 0, 0
	for _, v := range killed {
		again += v.said(redelivered)
		twice += v.said(duplicate)
	}
	t.Logf("%d messages in %.1f s, %.0f a second; %d workers killed; %d redeliveries, %d of them of messages whose effect was there",
		n, took.Seconds(), float64(n)/took.Seconds(), len(killed)-2, again, twice)
	if len(killed) < 4 || again == 0 {
		t.Error("the kills did not meet messages under way, so the test has not tested anything")
	}
	checkNumbers(t, table, n)
	if poisoned := assert.Must[int](t)(q.Poison().Length(t.Context())); poisoned != 0 {
		t.Errorf("%d messages are poisoned; the first: %+v", poisoned, entries(t, q)[0])
	}
}

// sendNumbers sends the numbers from 0 to n, a message each, and sets what it returns when it has ended.
func sendNumbers(t *testing.T, q *eventual.Queue, n int) *atomic.Bool {
	t.Helper()
	var next atomic.Int64
	var done atomic.Bool
	var senders sync.WaitGroup
	for range killSenders {
		senders.Go(func() {
			for first := next.Add(killSend) - killSend; first < int64(n); first = next.Add(killSend) - killSend {
				if err := sendSome(t.Context(), q, first, min(first+killSend, int64(n))); err != nil {
					t.Errorf("number %d or one behind it: %v", first, err)
					return
				}
			}
		})
	}
	go func() {
		senders.Wait()
		done.Store(true)
	}()
	t.Cleanup(senders.Wait)
	return &done
}

// sendSome sends some numbers, once the queue has room for them.
func sendSome(ctx context.Context, q *eventual.Queue, from, to int64) error {
	for {
		length, err := q.Length(ctx)
		if err != nil {
			return err
		}
		if length < killBacklog {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for number := from; number < to; number++ {
		if _, err := q.Send(ctx, killType, number, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers holds the data against what the messages should have done: each number is there once, and the counters have
// counted each row once.
func checkNumbers(t *testing.T, table *tables.Table, n int) {
	t.Helper()
	seen, rows, counted, sum := map[int64]int{}, map[string]int64{}, map[string]int64{}, int64(0)
	for row, err := range table.Entities().Query().AllowTableScan().All(t.Context()) {
		assert.Check(t, err)
		if row.Key == counterOf(row.Key.Partition) {
			counted[row.Key.Partition], _ = row.Get(countProperty).Int()
			sum += counted[row.Key.Partition]
			continue
		}
		number, ok := row.Get(numberProperty).Int()
		if !ok {
			t.Errorf("row %v has no number", row.Key)
		}
		seen[number]++
		rows[row.Key.Partition]++
	}
	for number := range int64(n) {
		assert.Equal(t, seen[number], 1, "times number %d is there", number)
	}
	if len(seen) != n || sum != int64(n) {
		t.Errorf("%d different numbers, and the counters say %d, of %d messages", len(seen), sum, n)
	}
	for bucket, count := range counted {
		if count != rows[bucket] {
			t.Errorf("%s has counted %d and has %d rows", bucket, count, rows[bucket])
		}
	}
}
