package scatter_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// BenchmarkBucket is the hash alone.
func BenchmarkBucket(b *testing.B) {
	for b.Loop() {
		scatter.Bucket("access_0635442654320000000_00000017", 16)
	}
}

// BenchmarkMeter is one count, among as many partitions as a meter tells apart by itself.
func BenchmarkMeter(b *testing.B) {
	m := assert.Must[*scatter.Meter](b)(scatter.NewMeter(nil))
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprintf("access_%03d", i)
	}
	i := 0
	for b.Loop() {
		m.Add(names[i%len(names)], 1)
		i++
	}
}

// BenchmarkInsert compares an insert, hash, routing and meter included, with the SDK's insert of the same properties and with
// that of a repository that does not spread, in turns against one simulator. The ratios are of time: below 1, the spread
// insert takes less.
func BenchmarkInsert(b *testing.B) {
	s := storagetest.Simulator(b, nil)
	a := assert.Must[*tables.Account](b)(account(s))
	handles := make([]*tables.Table, 3)
	for i := range handles {
		handles[i] = a.Table(fmt.Sprintf("Events%d", i))
		assert.Check(b, handles[i].Create(b.Context()))
	}
	start := s.Clock.Now()
	of := func(i int) *access {
		return &access{Department: "Sales", Employee: i % 100, At: start.Add(time.Duration(i) * time.Microsecond), ID: i % 1e8, Resource: "printer"}
	}
	meter := assert.Must[*scatter.Meter](b)(scatter.NewMeter(nil))
	p := assert.Must[*scatter.Spread[access]](b)(scatter.New(handles[0], scatter.Schema[access]{Order: scatter.ByTime("access", 0), Row: (*access).row, Partitions: 16},
		&scatter.Options{Meter: meter, Now: s.Clock.Now}))
	plain := assert.Must[*patterns.Repository[access]](b)(patterns.NewRepository(handles[1], patterns.Schema[access]{Key: func(a *access) tables.Key {
		return tables.Key{Partition: "access_000", Row: a.row()}
	}}))
	client := handles[2].Client()
	sides := []func(i int) error{
		func(i int) error { return p.Insert(b.Context(), of(i)) },
		func(i int) error { return plain.Insert(b.Context(), of(i)) },
		func(i int) error {
			e := of(i)
			body, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "access_000", RowKey: e.row()}, Properties: map[string]any{
				"Department": e.Department, "Employee": aztables.EDMInt64(e.Employee), "At": aztables.EDMDateTime(e.At), "ID": aztables.EDMInt64(e.ID), "Resource": e.Resource}})
			if err == nil {
				_, err = client.AddEntity(b.Context(), body, nil)
			}
			return err
		},
	}
	const turn = 200
	took := make([]time.Duration, len(sides))
	next := 0
	for b.Loop() {
		for side, insert := range sides {
			runtime.GC()
			began := time.Now()
			for i := range turn {
				assert.Check(b, insert(next+i))
			}
			took[side] += time.Since(began)
		}
		next += turn
	}
	b.ReportMetric(float64(took[0].Nanoseconds())/float64(next), "ns/insert")
	b.ReportMetric(float64(took[0])/float64(took[1]), "of-plain-repository")
	b.ReportMetric(float64(took[0])/float64(took[2]), "of-SDK")
}
