package logdata_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const benchText = "GET /employees/223 200 12ms user=jonesj@contoso.com agent=Mozilla/5.0 region=west trace=4bf92f3577b34da6"

// BenchmarkWriter compares writers with a table row for each record, inserted with the bare SDK, by as many goroutines in
// the same run. ratio is the writer's rate by the SDK's. append-ratio is that by the SDK's appends of a record each, one
// after the other, as they are to one blob.
func BenchmarkWriter(b *testing.B) {
	for _, c := range []struct {
		name       string
		o          logdata.WriterOptions
		goroutines int
		records    int
	}{
		{"durable/1", logdata.WriterOptions{}, 1, 300},
		{"durable/64", logdata.WriterOptions{}, 64, 3000},
		{"buffered/1", logdata.WriterOptions{Buffered: true}, 1, 100_000},
		{"buffered/64", logdata.WriterOptions{Buffered: true}, 64, 100_000},
	} {
		b.Run(c.name, func(b *testing.B) { benchWriter(b, &c.o, c.goroutines, c.records) })
	}
}

func benchWriter(b *testing.B, o *logdata.WriterOptions, goroutines, records int) {
	s := storagetest.Open(b)
	counter := &storagetest.RequestCounter{}
	faulty, _ := s.Faulty(counter)
	const rows = 300
	var ours, bare, appends time.Duration
	requests := 0
	for b.Loop() {
		l := newLog(b, faulty, nil)
		w := assert.Must[*logdata.Writer](b)(l.NewWriter(o))
		counter.Reset()
		ours += spread(b, goroutines, records, func() error {
			return w.Write(b.Context(), logdata.Record{Data: []byte(benchText)})
		}, func() error { return w.Close(b.Context()) })
		requests += counter.Reset()
		bare += benchRows(b, s, goroutines, rows)
		appends += benchAppends(b, s, rows)
	}
	rate, sdk := float64(b.N*records)/ours.Seconds(), float64(b.N*rows)/bare.Seconds()
	b.ReportMetric(rate, "records/s")
	b.ReportMetric(sdk, "sdk-rows/s")
	b.ReportMetric(rate/sdk, "ratio")
	b.ReportMetric(rate*appends.Seconds()/float64(b.N*rows), "append-ratio")
	b.ReportMetric(float64(requests)/float64(b.N*records), "requests/record")
	b.ReportMetric(0, "ns/op")
}

// benchAppends appends records to one blob.
func benchAppends(b *testing.B, s *storagetest.Service, records int) time.Duration {
	c := assert.Must[*container.Client](b)(containerOf(s, newContainer(b, s)))
	log := c.NewAppendBlobClient("log")
	assert.Must[appendblob.CreateResponse](b)(log.Create(b.Context(), nil))
	return spread(b, 1, records, func() error {
		_, err := log.AppendBlock(b.Context(), streaming.NopCloser(strings.NewReader(benchText+"\n")), nil)
		return err
	}, func() error { return nil })
}

// benchRows inserts a row for each record into one partition of an hour, as the guide's anti-pattern does.
func benchRows(b *testing.B, s *storagetest.Service, goroutines, rows int) time.Duration {
	account := assert.Must[*tables.Account](b)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	table := account.TableService().NewClient(s.TableName(b))
	assert.Must[aztables.CreateTableResponse](b)(table.CreateTable(b.Context(), nil))
	var mu sync.Mutex
	n := 0
	return spread(b, goroutines, rows, func() error {
		mu.Lock()
		n++
		row := fmt.Sprintf(`{"PartitionKey":"2026112012","RowKey":"20261120120000_%09d","Message":%q}`, n, benchText)
		mu.Unlock()
		_, err := table.AddEntity(b.Context(), []byte(row), nil)
		return err
	}, func() error { return nil })
}

// spread has goroutines do something n times together, and then something else.
func spread(b *testing.B, goroutines, n int, do, end func() error) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n; i += goroutines {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	assert.Check(b, end())
	return time.Since(began)
}

// BenchmarkQuery reads 100,000 records of 10 minutes.
func BenchmarkQuery(b *testing.B) {
	l := newLog(b, storagetest.Open(b), nil)
	w := newWriter(b, l, &logdata.WriterOptions{Buffered: true, BlobBytes: 2 << 20})
	const records = 100_000
	for i := range records {
		assert.Check(b, w.Write(b.Context(), logdata.Record{Time: noon().Add(time.Duration(i) * 6 * time.Millisecond), Data: []byte(benchText)}))
	}
	assert.Check(b, w.Close(b.Context()))
	for b.Loop() {
		n := 0
		for _, err := range l.Query(b.Context(), noon(), noon().Add(10*time.Minute), nil) {
			assert.Check(b, err)
			n++
		}
		if n != records {
			b.Fatalf("%d records", n)
		}
	}
	b.ReportMetric(float64(b.N*records)/b.Elapsed().Seconds(), "records/s")
}

// TestBytesOfARecord is what a record takes in a blob, and as a row of the anti-pattern's table by the service's formula.
func TestBytesOfARecord(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
	const n = 100
	for range n {
		assert.Check(t, w.Write(t.Context(), record(noon(), benchText)))
	}
	assert.Check(t, w.Close(t.Context()))
	stored := blobsOf(t, l)[0].Size / n
	row := 4 + 2*(len("2026112012")+len("20261120120000_000000001")) + 8 + 2*len("Message") + 4 + 2*len(benchText)
	if overhead := stored - int64(len(benchText)); overhead != 46 || row < 300 {
		t.Errorf("%d bytes of %d in a blob, %d as a row", stored, len(benchText), row)
	}
	t.Logf("%d bytes of text: %d in a blob, %d as a row; 1,000 in one append of %d, or 1,000 inserts", len(benchText), stored, row, 1000*stored)
	if strings.ContainsAny(benchText, "\x1e\x10") {
		t.Error("the text has marks")
	}
}
