package tables_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// resend makes one signed request that can be sent again and again.
func resend(b *testing.B, a accounts.Account, req *http.Request, body []byte, status int) {
	b.Helper()
	req.Body = http.NoBody
	if body != nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := a.Do(req)
	if err != nil || resp.StatusCode != status {
		b.Fatal(resp, err)
	}
}

// BenchmarkPointRead reads an entity of 12 properties out of 100,000, end to end through Do: a test makes thousands.
func BenchmarkPointRead(b *testing.B) {
	a := accounts.WithTable(b, simulator.Options{})
	accounts.Fill(a, 1, 100_000)
	a.Want(http.MethodPut, "/Employees(PartitionKey='p000',RowKey='r050000')", probe.EveryType[:1]+probe.EveryType[len(`{"PartitionKey":"p","RowKey":"r",`):], 204, "")
	req := a.Request(http.MethodGet, "/Employees(PartitionKey='p000',RowKey='r050000')", "", "x-ms-version", "2019-02-02",
		"Accept", "application/json;odata=minimalmetadata", "DataServiceVersion", "3.0", "x-ms-client-request-id", "c9da6455-213d-42c9-9a79-3e9149a57833")
	b.ReportAllocs()
	for b.Loop() {
		resend(b, a, req, nil, 200)
	}
	if perRead := b.Elapsed() / time.Duration(b.N); b.N >= 1000 && perRead > 20*time.Microsecond {
		b.Errorf("a point read took %v, more than 20 µs", perRead)
	}
}

func BenchmarkUpsert(b *testing.B) {
	a := accounts.WithTable(b, simulator.Options{})
	accounts.Fill(a, 1, 100_000)
	body := []byte(probe.EveryType[:1] + probe.EveryType[len(`{"PartitionKey":"p","RowKey":"r",`):])
	req := a.Request(http.MethodPut, "/Employees(PartitionKey='p000',RowKey='r050000')", string(body))
	b.ReportAllocs()
	for b.Loop() {
		resend(b, a, req, body, 204)
	}
}

func BenchmarkTransactionOf100(b *testing.B) {
	a := accounts.WithTable(b, simulator.Options{})
	parts := ""
	for i := range 100 {
		parts += probe.Part("PUT", fmt.Sprintf("(PartitionKey='p',RowKey='%d')", i), `{"A":1,"B":"text","C":true}`)
	}
	body := []byte(probe.Batch(parts))
	req := a.Request(http.MethodPost, "/$batch", string(body), "Content-Type", "multipart/mixed; boundary=b")
	b.ReportAllocs()
	for b.Loop() {
		resend(b, a, req, body, 202)
	}
}

func BenchmarkPageOf1000(b *testing.B) {
	a := accounts.WithTable(b, simulator.Options{})
	accounts.Fill(a, 1, 100_000)
	req := a.Request(http.MethodGet, "/Employees()?$filter=PartitionKey%20eq%20'p000'%20and%20RowKey%20ge%20'r050000'", "")
	b.ReportAllocs()
	for b.Loop() {
		resend(b, a, req, nil, 200)
	}
}
