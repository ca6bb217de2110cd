package backup_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const benchRows = 20_000

// BenchmarkBackup backs up a table of 20,000 rows, and scans it in parallel by turns with that: times-of-scan is the time of a backup
// divided by that of a scan.
func BenchmarkBackup(b *testing.B) {
	transport := harness.BareTransport(b)
	table := newTable(b, harness.AccountWith(b, func(o *azcore.ClientOptions) { o.Transport = transport }))
	if _, err := table.Entities().BulkNonAtomic(b.Context(), spreadRows(benchRows), nil); err != nil {
		b.Fatal(err)
	}
	v, n := opened(b), 0
	var saved, scanned time.Duration
	for b.Loop() {
		began := time.Now()
		scan(b, table, benchRows)
		scanned += time.Since(began)
		began, n = time.Now(), n+1
		if report, err := v.Backup(b.Context(), fmt.Sprint("backup", n), []*tables.Table{table}, nil); err != nil || report.Written != benchRows {
			b.Fatal(report, err)
		}
		saved += time.Since(began)
	}
	b.ReportMetric(float64(n)*benchRows/saved.Seconds(), "rows/s")
	b.ReportMetric(float64(saved)/float64(scanned), "times-of-scan")
}

// BenchmarkRestore restores 20,000 rows into an empty table, and sends the same transactions with ready bodies by turns with that:
// times-of-replay is the time of a restore divided by that of a replay.
func BenchmarkRestore(b *testing.B) {
	transport := harness.BareTransport(b)
	recorder := &harness.Recorder{Transport: transport}
	from := newTable(b, harness.AccountWith(b, func(o *azcore.ClientOptions) { o.Transport = transport }))
	if _, err := from.Entities().BulkNonAtomic(b.Context(), spreadRows(benchRows), nil); err != nil {
		b.Fatal(err)
	}
	v := opened(b)
	if _, err := v.Backup(b.Context(), "backup", []*tables.Table{from}, nil); err != nil {
		b.Fatal(err)
	}
	restore := func(to *tables.Table) time.Duration {
		began := time.Now()
		report, err := v.Restore(b.Context(), "backup", []backup.Target{{Name: from.Name(), To: to}}, nil)
		if err != nil || report.Written != benchRows {
			b.Fatal(report, err)
		}
		return time.Since(began)
	}
	recorded := newTable(b, harness.AccountWith(b, func(o *azcore.ClientOptions) { o.Transport = recorder }))
	restore(recorded)
	requests := slices.DeleteFunc(recorder.Take(), func(r harness.Recorded) bool { return !strings.Contains(r.URL, "$batch") })
	if len(requests) < benchRows/100 {
		b.Fatal(len(requests))
	}
	to, n := newTable(b, from.Account()), 0
	var restored, replayed time.Duration
	for b.Loop() {
		assert.Check(b, recorded.Drop(b.Context()), to.Drop(b.Context()))
		if s := storagetest.Open(b); s.Clock != nil {
			s.Wait(time.Minute) // the name of a dropped table is taken for a while
		}
		assert.Check(b, recorded.Create(b.Context()), to.Create(b.Context()))
		began := time.Now()
		harness.Replay(b, transport, requests, 8, func(r *harness.Recorded, status int, _ []byte) {
			if status != http.StatusAccepted {
				b.Error(r.URL, status)
			}
		})
		replayed += time.Since(began)
		scan(b, recorded, benchRows)
		restored += restore(to)
		n++
	}
	b.ReportMetric(float64(n)*benchRows/restored.Seconds(), "rows/s")
	b.ReportMetric(float64(restored)/float64(replayed), "times-of-replay")
}
