package composition_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// benchClerk is like the guide's employee.
type benchClerk struct {
	tables.Meta
	Department, FirstName, LastName, Email string
	ID, Age                                int
	Salary                                 int64
}

func benchClerks(n, departments int) func(yield func(*benchClerk, error) bool) {
	return func(yield func(*benchClerk, error) bool) {
		for i := range n {
			c := &benchClerk{Department: fmt.Sprintf("D%02d", i%departments), ID: i, FirstName: "Jun", LastName: fmt.Sprintf("Jones %d", i),
				Email: fmt.Sprintf("jonesj%d@contoso.com", i), Age: 20 + i%50, Salary: int64(30_000 + i)}
			if !yield(c, nil) {
				return
			}
		}
	}
}

var benchSchema = patterns.Schema[benchClerk]{Prefix: "empid", Key: func(c *benchClerk) tables.Key {
	return tables.Key{Partition: c.Department, Row: compoundkey.Join("empid", compoundkey.Int(c.ID, 6))}
}}

func benchAccount(b *testing.B, transport policy.Transporter) *tables.Account {
	b.Helper()
	return harness.AccountWith(b, func(o *azcore.ClientOptions) { o.Transport = transport })
}

// elapsed runs f and returns how long it took.
func elapsed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

// fresh makes an empty table of this name.
func fresh(b *testing.B, a *tables.Account, name string) *tables.Table {
	b.Helper()
	table := a.Table(name)
	assert.Check(b, table.CreateIfMissing(b.Context()), table.Drop(b.Context()), table.Create(b.Context()))
	return table
}

var ifMatch = regexp.MustCompile(`If-Match: W/[^\r\n]*`)

// BenchmarkRebuildOnService compares Rebuild of an index for the entities of one partition with what it cannot do without: a scan of the
// table, and the transactions of the same rows, ready-made.
func BenchmarkRebuildOnService(b *testing.B) {
	for _, n := range []int{2_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchRebuild(b, n) })
	}
}

func benchRebuild(b *testing.B, n int) {
	ctx := b.Context()
	name := storagetest.Open(b).TableName(b)
	name = name[:min(len(name), 62)]
	recorder := &harness.Recorder{Transport: harness.BareTransport(b)}
	recording, plain := benchAccount(b, recorder), benchAccount(b, harness.BareTransport(b))
	filled := func(a *tables.Account, name string) *tables.Table {
		table := fresh(b, a, name)
		bare := assert.Must[*patterns.Repository[benchClerk]](b)(patterns.NewRepository(table, benchSchema))
		assert.Must[tables.BulkReport](b)(bare.BulkNonAtomic(ctx, benchClerks(n, 1), nil))
		return table
	}
	rebuild := func(table *tables.Table) {
		index := intrapartition.NewUnique("email", func(c *benchClerk) string { return c.Email }, nil)
		repo := assert.Must[*patterns.Repository[benchClerk]](b)(patterns.NewRepository(table, benchSchema, index))
		if report, err := repo.Rebuild(ctx, nil); err != nil || report.Written != int64(n) {
			b.Fatal(report, err)
		}
	}
	var ours, ceiling time.Duration
	for b.Loop() {
		recorded := filled(recording, name+"A")
		recorder.Take()
		rebuild(recorded)
		var batches []harness.Recorded
		for _, r := range recorder.Take() {
			if strings.HasSuffix(r.URL, "$batch") {
				r.Body = ifMatch.ReplaceAll(bytes.ReplaceAll(r.Body, []byte(name+"A"), []byte(name+"B")), []byte("If-Match: *"))
				batches = append(batches, r)
			}
		}
		for range 2 {
			table := filled(plain, name+"B")
			ours += elapsed(func() { rebuild(table) })
			table = filled(plain, name+"B")
			rows := assert.Must[*tables.Rows[benchClerk]](b)(tables.RowsOf[benchClerk](table))
			ceiling += elapsed(func() {
				for _, err := range rows.Query().AllowTableScan().All(ctx) {
					assert.Check(b, err)
				}
				harness.Replay(b, harness.BareTransport(b), batches, 8, func(_ *harness.Recorded, status int, answer []byte) {
					if status != http.StatusAccepted || bytes.Contains(answer, []byte("HTTP/1.1 4")) {
						b.Errorf("replay answered %d: %s", status, answer)
					}
				})
			})
		}
		assert.Check(b, plain.Table(name+"A").Drop(ctx), plain.Table(name+"B").Drop(ctx))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours)/float64(ceiling), "x-scan-and-replay")
	b.ReportMetric(ours.Seconds()/float64(2*b.N), "s/rebuild")
}

// BenchmarkBulkOnService compares a bulk insert with two indexes outside of the partition with a replay of its own requests: tables, queue
// and all.
func BenchmarkBulkOnService(b *testing.B) {
	const n, departments = 2_000, 10
	ctx := b.Context()
	name := storagetest.Open(b).TableName(b)
	name = name[:min(len(name), 50)]
	recorder := &harness.Recorder{Transport: harness.BareTransport(b)}
	recording, plain := benchAccount(b, recorder), benchAccount(b, harness.BareTransport(b))
	suffixes := []string{"Staff", "Emails", "Names"}
	open := func(a *tables.Account) *patterns.Repository[benchClerk] {
		for _, suffix := range suffixes {
			fresh(b, a, name+suffix)
		}
		store := assert.Must[*patterns.Store](b)(patterns.Open(strings.ToLower(name), &patterns.StoreOptions{Account: a}))
		options := func(suffix string) *interpartition.Options[benchClerk] {
			return &interpartition.Options[benchClerk]{ByPartition: true, Table: store.Table(name + suffix)}
		}
		emails := interpartition.NewIndex("email", func(c *benchClerk) string { return c.Email }, options("Emails"))
		names := interpartition.NewIndex("name", func(c *benchClerk) string { return c.LastName }, options("Names"))
		repo := assert.Must[*patterns.Repository[benchClerk]](b)(patterns.NewRepository(store.Table(name+"Staff"), benchSchema, emails, names))
		assert.Check(b, store.Create(ctx))
		b.Cleanup(func() { assert.Check(b, harness.Settle(context.Background(), store)) })
		return repo
	}
	load := func(repo *patterns.Repository[benchClerk]) {
		if report, err := repo.BulkNonAtomic(ctx, benchClerks(n, departments), nil); err != nil || report.Written != n {
			b.Fatal(report, err)
		}
	}
	var ours, ceiling time.Duration
	requests := 0
	for b.Loop() {
		repo := open(recording)
		recorder.Take()
		load(repo)
		sent := recorder.Take()
		requests += len(sent)
		for range 2 {
			repo := open(plain)
			ours += elapsed(func() { load(repo) })
			open(plain)
			ceiling += elapsed(func() {
				for _, round := range inRounds(sent, name+"Staff") {
					harness.Replay(b, harness.BareTransport(b), round, 8, func(r *harness.Recorded, status int, answer []byte) {
						if status >= 300 || bytes.Contains(answer, []byte("HTTP/1.1 4")) {
							b.Errorf("replay of %s %s answered %d: %s", r.Method, r.URL, status, answer)
						}
					})
				}
			})
		}
		for _, suffix := range suffixes {
			assert.Check(b, plain.Table(name+suffix).Drop(ctx))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ceiling)/float64(ours), "of-replay")
	b.ReportMetric(float64(requests)/float64(b.N), "requests")
	b.ReportMetric(ours.Seconds()/float64(2*b.N), "s/bulk")
}

// inRounds divides the requests of a bulk insert: all rows in other partitions are marked, then all entities written, then all rows settled. A replay of
// them in the order in which they were sent, several at once, would settle rows before it has marked them.
func inRounds(sent []harness.Recorded, table string) (rounds [3][]harness.Recorded) {
	for _, r := range sent {
		round := 2
		switch {
		case bytes.Contains(r.Body, []byte(table)):
			round = 1
		case bytes.Contains(r.Body, []byte("_tpMark")):
			round = 0
		}
		r.Body = ifMatch.ReplaceAll(r.Body, []byte("If-Match: *")) // the marks have other ETags now
		rounds[round] = append(rounds[round], r)
	}
	return rounds
}
