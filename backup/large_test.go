package backup_test

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// largestMemory calls a function and returns how much more memory the process held meanwhile than before, at most, in MiB.
func largestMemory(f func()) int {
	debug.FreeOSMemory() // what earlier tests have left
	held := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64() - sample[1].Value.Uint64()
	}
	before := held()
	done := make(chan struct{})
	var sampling sync.WaitGroup
	most := before
	sampling.Go(func() {
		for {
			most = max(most, held())
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	f()
	close(done)
	sampling.Wait()
	return int((most - before) >> 20)
}

// rate is rows in a second.
func rate(n int, began time.Time) float64 { return float64(n) / time.Since(began).Seconds() }

// bestRate takes the best of three.
func bestRate(n int, f func(i int)) (best float64) {
	for i := range 3 {
		runtime.GC()
		began := time.Now()
		f(i)
		best = max(best, rate(n, began))
	}
	return best
}

// spreadRows makes rows of 9 properties in 50 partitions.
func spreadRows(n int) func(yield func(*tables.Entity, error) bool) {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			e := rowOf(i)
			e.Key = tables.Key{Partition: fmt.Sprintf("p%02d", i*50/n), Row: fmt.Sprintf("%08d", i)}
			e.Set("Zulu", tables.String(fmt.Sprintf("employee %d of %s", i, strings.Repeat("contoso ", i%9))))
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestLarge backs up and restores a table, and compares both with a plain parallel scan and with a replay of the same requests with ready
// bodies. The thorough run takes 200,000 rows, and wants 85 % of their speed and at most 256 MiB.
func TestLarge(t *testing.T) {
	n := 1_000
	if harness.Thorough() {
		n = 200_000
	}
	transport := harness.BareTransport(t)
	account := harness.AccountWith(t, func(o *azcore.ClientOptions) { o.Transport = transport })
	table := newTable(t, account)
	assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(t.Context(), spreadRows(n), nil)))
	v := opened(t)
	options := backup.Options{}
	memory := largestMemory(func() {
		if report, err := v.Backup(t.Context(), "first", []*tables.Table{table}, &options); err != nil || report.Written != int64(n) {
			t.Fatal(report, err)
		}
	})
	scanned := bestRate(n, func(int) { scan(t, table, n) })
	saved := bestRate(n, func(i int) {
		if report, err := v.Backup(t.Context(), fmt.Sprint("more", i), []*tables.Table{table}, &options); err != nil || report.Written != int64(n) {
			t.Fatal(report, err)
		}
	})
	restore := func(a *tables.Account) *tables.Table {
		to := newTable(t, a)
		if result, err := v.Restore(t.Context(), "first", []backup.Target{{Name: table.Name(), To: to}}, &options); err != nil || result.Written != int64(n) || result.Transactions < int64(n/100) {
			t.Fatal(result, err)
		}
		return to
	}
	var to *tables.Table
	memory = max(memory, largestMemory(func() { to = restore(account) }))
	memory = max(memory, largestMemory(func() { wantSame(t, table, to, n) }))
	if found, err := inBackup(t.Context(), v, "first", table.Name(), to); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	if memory > 256 {
		t.Errorf("%d MiB", memory)
	}
	if !harness.Thorough() {
		return
	}
	replayed, written := replay(t, n, transport, restore)
	t.Logf("%d rows: scan %.0f rows a second, backup %.0f, ratio %.2f; replay %.0f, restore %.0f, ratio %.2f; %d MiB", n, scanned, saved, saved/scanned, replayed, written, written/replayed, memory)
	if saved < 0.85*scanned || written < 0.85*replayed {
		t.Error("too slow")
	}
}

func scan(t testing.TB, table *tables.Table, n int) {
	t.Helper()
	rows := 0
	for _, err := range table.Entities().Query().AllowTableScan().AllParallel(t.Context(), &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
		assert.Check(t, err)
		rows++
	}
	assert.Equal(assert.Fatal(t), rows, n)
}

// replay records the transactions of a restore, and measures them by turns with other restores, each into an empty table.
func replay(t *testing.T, n int, transport policy.Transporter, restore func(*tables.Account) *tables.Table) (replayed, written float64) {
	recorder := &harness.Recorder{Transport: transport}
	table := restore(harness.AccountWith(t, func(o *azcore.ClientOptions) { o.Transport = recorder }))
	requests := slices.DeleteFunc(recorder.Take(), func(r harness.Recorded) bool { return !strings.Contains(r.URL, "$batch") })
	if len(requests) < n/100 {
		t.Fatal(len(requests))
	}
	for range 3 {
		assert.Check(t, table.Drop(t.Context()), table.Create(t.Context()))
		began := time.Now()
		harness.Replay(t, transport, requests, 8, func(r *harness.Recorded, status int, _ []byte) {
			if status != http.StatusAccepted {
				t.Error(r.URL, status)
			}
		})
		replayed = max(replayed, rate(n, began))
		scan(t, table, n)
		began = time.Now()
		to := restore(table.Account())
		written = max(written, rate(n, began))
		assert.Check(t, to.Drop(t.Context()))
	}
	return replayed, written
}
