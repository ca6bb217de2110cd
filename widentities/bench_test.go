package widentities_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// BenchmarkRatioGet compares the read of an entity with the SDK's query of the same rows, undecoded, by turns.
func BenchmarkRatioGet(b *testing.B) {
	for _, properties := range []int{20, 1_000, 10_000} {
		b.Run(fmt.Sprint(properties), func(b *testing.B) {
			p, _ := open(b, storagetest.Simulator(b, nil))
			assert.Check(b, p.profiles.Insert(b.Context(), withNumbers(1, properties)))
			client := p.profiles.Table().Client()
			filter := "PartitionKey eq 'red' and RowKey ge 'profile_0001' and RowKey lt 'profile_0002'"
			var ours, bare time.Duration
			for b.Loop() {
				begin := time.Now()
				_, err := p.profiles.Get(b.Context(), at(1))
				between := time.Now()
				_, bareErr := client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(b.Context())
				assert.Check(b, err, bareErr)
				ours, bare = ours+between.Sub(begin), bare+time.Since(between)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/get")
			b.ReportMetric(float64(ours)/float64(bare), "ratio")
			b.ReportMetric(testing.AllocsPerRun(5, func() { _, _ = p.profiles.Get(b.Context(), at(1)) }), "allocs/get")
		})
	}
}
