package dataseries_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// replay answers each kind of request with what the simulator has answered the first time, so that what is left is the
// clients' own work.
type replay struct {
	inner   policy.Transporter
	answers map[string]*http.Response
	bodies  map[string][]byte
}

func (r *replay) Do(req *http.Request) (*http.Response, error) {
	if r.answers[req.Method] == nil {
		resp, err := r.inner.Do(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		r.answers[req.Method], r.bodies[req.Method] = resp, body
	} else if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	resp := *r.answers[req.Method]
	resp.Request, resp.Body = req, io.NopCloser(bytes.NewReader(r.bodies[req.Method]))
	return &resp, nil
}

// BenchmarkSeries compares reads and writes of a series with the bare SDK's, over one transport within the process: how many
// times the time of this library the SDK takes.
func BenchmarkSeries(b *testing.B) {
	for _, slots := range []int{24, dataseries.MaxSlotsPerRow} {
		s, w := storagetest.Simulator(b, nil), &world{place: inRow, slots: slots}
		w.open(b, s)
		values := map[int]int64{}
		for slot := range slots {
			values[slot] = int64(slot) << 30
		}
		if err := assert.Must[*dataseries.Counter[int64]](b)(w.start(s)).SetMany(b.Context(), today, values); err != nil {
			b.Fatal(err)
		}
		replayed := s.WithTransport(func(inner policy.Transporter) policy.Transporter {
			return &replay{inner: inner, answers: map[string]*http.Response{}, bodies: map[string][]byte{}}
		})
		c := assert.Must[*dataseries.Counter[int64]](b)(w.start(replayed))
		client := assert.Must[*tables.Account](b)(accountOf(replayed)).Table(w.table).Client()
		ctx := context.Background()
		b.Run(fmt.Sprint("Read", slots), func(b *testing.B) {
			compare(b, func() error { _, err := c.Read(ctx, today); return err }, func() error {
				answer, err := client.GetEntity(ctx, today.Partition, today.Row, nil)
				if err != nil {
					return err
				}
				var e aztables.EDMEntity
				return json.Unmarshal(answer.Value, &e)
			})
		})
		b.Run(fmt.Sprint("Set", slots), func(b *testing.B) {
			compare(b, func() error { return c.Set(ctx, today, 7, 7) }, func() error {
				e := aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: today.Partition, RowKey: today.Row}, Properties: map[string]any{"Count_07": aztables.EDMInt64(7)}}
				body, err := json.Marshal(e)
				if err == nil {
					_, err = client.UpsertEntity(ctx, body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
				}
				return err
			})
		})
	}
}

// compare gives each side turns of one length, so that a change of the machine's speed meets both.
func compare(b *testing.B, ours, sdk func() error) {
	const turn = 20 * time.Millisecond
	var cost [2]time.Duration
	var runs [2]int
	for b.Loop() {
		for i, run := range []func() error{ours, sdk} {
			runtime.GC()
			began := time.Now()
			for time.Since(began) < turn {
				if err := run(); err != nil {
					b.Fatal(err)
				}
				runs[i]++
			}
			cost[i] += time.Since(began)
		}
	}
	each := float64(cost[0]) / float64(runs[0])
	b.ReportMetric(0, "ns/op") // the length of a round says nothing
	b.ReportMetric(each, "ns-ours")
	b.ReportMetric(float64(cost[1])/float64(runs[1])/each, "x-sdk")
}
