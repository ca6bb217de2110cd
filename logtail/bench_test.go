package logtail_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// BenchmarkLatest10 reads the newest ten of partitions of different sizes on the simulator, and does the same with the bare SDK
// in the same run. Requests and time do not depend on the size.
func BenchmarkLatest10(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, requests := harness.CountedService(storagetest.Simulator(b, nil))
			l := openLog(b, s, nil)
			fill(b, l, "223", size)
			requests.Reset()
			var ours, theirs time.Duration
			runs := 0
			for b.Loop() {
				start := time.Now()
				latest, err := l.Latest(b.Context(), "223", 10)
				ours += time.Since(start)
				if err != nil || len(latest) != 10 || latest[0].Amount != size {
					b.Fatal(len(latest), err)
				}
				start = time.Now()
				bareLatest(b, l.Table().Client(), size)
				theirs += time.Since(start)
				runs++
			}
			b.ReportMetric(float64(requests.Count())/float64(2*runs), "requests/op")
			b.ReportMetric(float64(ours.Microseconds())/float64(runs), "µs/Latest")
			b.ReportMetric(float64(theirs)/float64(ours), "SDK/ours")
		})
	}
}

// bareLatest is what a program without the library does.
func bareLatest(b *testing.B, client *aztables.Client, newest int) {
	top, filter := int32(10), "PartitionKey eq '223'"
	page, err := client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: &top, Filter: &filter}).NextPage(b.Context())
	if err != nil || len(page.Entities) != 10 {
		b.Fatal(len(page.Entities), err)
	}
	for i, raw := range page.Entities {
		var c struct {
			PartitionKey, RowKey, Employee, Category, LogID string
			LoggedAt                                        time.Time
			Amount                                          json.Number
		}
		if err := json.Unmarshal(raw, &c); err != nil || i == 0 && c.Amount.String() != fmt.Sprint(newest) {
			b.Fatal(c.Amount, err)
		}
	}
}

// BenchmarkPoll is an idle follower's look at a log with some entries in the window.
func BenchmarkPoll(b *testing.B) {
	for _, window := range []int{0, 60, 900} {
		b.Run(fmt.Sprint(window), func(b *testing.B) {
			c := &clock{day}
			s, requests := harness.CountedService(storagetest.Simulator(b, nil))
			l := openLog(b, s, c.now)
			fill(b, l, "223", 10_000)
			c.pass(10_001 * time.Second)
			for i := range window {
				write(b, l, i, c.at.Add(-time.Duration(i)*10*time.Millisecond))
			}
			f := follower(b, l, "")
			amounts(b, f.Poll(b.Context()))
			requests.Reset()
			runs := 0
			for b.Loop() {
				if got := amounts(b, f.Poll(b.Context())); len(got) != 0 {
					b.Fatal(got)
				}
				runs++
			}
			b.ReportMetric(float64(requests.Count())/float64(runs), "requests/op")
			b.ReportMetric(float64(len(f.Cursor())), "cursor-chars")
		})
	}
}
