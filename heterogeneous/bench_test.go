package heterogeneous_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// replay answers every query with the answer to the first, so that what is left is the clients' own work.
type replay struct {
	inner  policy.Transporter
	answer *http.Response
	body   []byte
}

func (r *replay) Do(req *http.Request) (*http.Response, error) {
	if r.answer == nil {
		resp, err := r.inner.Do(req)
		if err != nil {
			return nil, err
		}
		if r.body, err = io.ReadAll(resp.Body); err != nil {
			return nil, err
		}
		resp.Body.Close()
		r.answer = resp
	}
	resp := *r.answer
	resp.Request, resp.Body = req, io.NopCloser(bytes.NewReader(r.body))
	return &resp, nil
}

// BenchmarkPage compares a page of 1,000 entities of two types, a part of them of an older version, with the bare SDK's property
// bags, and with this library's: how many times the time of the registry they take.
func BenchmarkPage(b *testing.B) {
	ctx, s := b.Context(), storagetest.Simulator(b, nil)
	name, p := newTable(b, s)
	before := assert.Must[*program](b)(startOld(s, name))
	assert.Check(b, p.departments.Insert(ctx, &department{DepartmentName: "Sales"}))
	for id := range 999 {
		if id%10 == 0 {
			assert.Check(b, before.v1.Insert(ctx, old(id)))
		} else {
			assert.Check(b, p.employees.Insert(ctx, current(id)))
		}
	}
	replayed := s.WithTransport(func(inner policy.Transporter) policy.Transporter { return &replay{inner: inner} })
	p = assert.Must[*program](b)(start(replayed, name))
	filter := "PartitionKey eq 'Sales'"
	sides := []func() (int, error){
		func() (int, error) {
			page, err := p.registry.Query().Partition("Sales").Page(ctx, "")
			return len(page.Items), err
		},
		func() (n int, err error) {
			page, err := p.table.Client().NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(ctx)
			for _, raw := range page.Entities {
				var e aztables.EDMEntity
				if err := json.Unmarshal(raw, &e); err != nil {
					return 0, err
				}
				n++
			}
			return n, err
		},
		func() (int, error) {
			var page tables.Page[tables.Entity]
			page, err := p.table.Entities().Query().Partition("Sales").Page(ctx, "")
			return len(page.Items), err
		},
	}
	cost := make([]time.Duration, len(sides))
	for b.Loop() {
		for i, side := range sides {
			began := time.Now()
			if n, err := side(); err != nil || n != 1000 {
				b.Fatal(n, err)
			}
			cost[i] += time.Since(began)
		}
	}
	b.ReportMetric(0, "ns/op") // the length of a round says nothing
	b.ReportMetric(float64(cost[0].Microseconds())/float64(b.N), "us-registry")
	b.ReportMetric(float64(cost[1])/float64(cost[0]), "x-sdk")
	b.ReportMetric(float64(cost[2])/float64(cost[0]), "x-bags")
}
