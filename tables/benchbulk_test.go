package tables_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	bulkEntities   = 20_000
	bulkPartitions = 50
)

// bulkRow is like an employee: seven properties of six types.
func bulkRow(i int) *tables.Entity {
	e := &tables.Entity{Key: tables.Key{Partition: fmt.Sprintf("Department %02d", i%bulkPartitions), Row: fmt.Sprintf("empid_%06d", i)}}
	e.Set("FirstName", tables.String("Jun"))
	e.Set("LastName", tables.String(fmt.Sprintf("Jones %d", i)))
	e.Set("Email", tables.String(fmt.Sprintf("jonesj%d@contoso.com", i)))
	e.Set("Age", tables.Int32(int32(20+i%50)))
	e.Set("Salary", tables.Int64(int64(30_000+i)))
	e.Set("Rating", tables.Double(float64(i%50)/10))
	e.Set("Active", tables.Boolean(i%7 != 0))
	return e
}

func bulkRows(yield func(*tables.Entity, error) bool) {
	for i := range bulkEntities {
		if !yield(bulkRow(i), nil) {
			return
		}
	}
}

// replayBulk posts the recorded transactions to another table of the same length of name. SharedKeyLite signs date, account and
// path but no body, so that the recorded signatures still hold.
func replayBulk(b *testing.B, recorded []harness.Recorded, from, to string) {
	var batches []harness.Recorded
	for _, r := range recorded {
		if strings.HasSuffix(r.URL, "$batch") {
			r.Body = bytes.ReplaceAll(r.Body, []byte(from), []byte(to))
			batches = append(batches, r)
		}
	}
	harness.Replay(b, harness.BareTransport(b), batches, 8, func(_ *harness.Recorded, status int, answer []byte) {
		if status != http.StatusAccepted || bytes.Contains(answer, []byte("HTTP/1.1 4")) {
			b.Errorf("replay answered %d", status)
		}
	})
}

// BenchmarkBulk loads 20,000 entities over 50 partitions into Azurite three ways in each turn: BulkNonAtomic, a replay
// of its ready-made $batch bodies over plain HTTP (the server's ceiling), and, for a tenth of them, single inserts. Azurite
// is reached as it is: to keep it to Azure's rules would cost all three the same, and make them look more alike than they are.
func BenchmarkBulk(b *testing.B) {
	ctx := context.Background()
	var bulk, ceiling, naive time.Duration
	for b.Loop() {
		rec := &harness.Recorder{Transport: harness.BareTransport(b)}
		recording := open(b, rec)
		recorded, replayed := sameLength(b)
		if err := recording.Table(recorded).Create(ctx); err != nil {
			b.Fatal(err)
		}
		if _, err := recording.Table(recorded).Entities().BulkNonAtomic(ctx, bulkRows, nil); err != nil {
			b.Fatal(err)
		}
		sent := rec.Take()
		plain := open(b, harness.BareTransport(b))
		for round := range 2 { // the second round in the other order, so that a server that slows down favours none
			bulk += timed(func() {
				table := harness.NewTable(b, plain)
				if done, err := table.Entities().BulkNonAtomic(ctx, bulkRows, nil); err != nil || done.Rows != bulkEntities {
					b.Fatal(done, err)
				}
				drop(b, table)
			})
			to := replayed[round]
			ceiling += timed(func() {
				if err := plain.Table(to).Create(ctx); err != nil {
					b.Fatal(err)
				}
				replayBulk(b, sent, recorded, to)
				drop(b, plain.Table(to))
			})
		}
		table := harness.NewTable(b, plain)
		naive += 10 * timed(func() {
			for i := range bulkEntities / 10 {
				if err := table.Entities().Insert(ctx, bulkRow(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
		drop(b, table)
		drop(b, recording.Table(recorded))
	}
	bulk, ceiling = bulk/2, ceiling/2
	b.ReportMetric(float64(ceiling)/float64(bulk), "of-ceiling")
	b.ReportMetric(float64(naive)/float64(bulk), "x-naive")
	b.ReportMetric(bulkEntities*float64(b.N)/bulk.Seconds(), "entities/s")
}

func open(b *testing.B, transport policy.Transporter) *tables.Account {
	b.Helper()
	return harness.AccountWith(b, func(o *azcore.ClientOptions) { o.Transport = transport })
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// sameLength names tables whose names can be exchanged in a body without moving a byte.
func sameLength(b *testing.B) (string, [2]string) {
	base := storagetest.Open(b).TableName(b)
	base = base[:min(len(base), 62)]
	return base + "A", [2]string{base + "B", base + "C"}
}

func drop(b *testing.B, table *tables.Table) {
	if err := table.Drop(context.Background()); err != nil {
		b.Fatal(err)
	}
}
