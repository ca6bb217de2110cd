package highvolumedelete_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// BenchmarkDrop drops 60 of 90 days with 100,000 entities on the simulator, and deletes the same rows by transactions with the
// bare SDK in the same run: 1,112 logins a day, of 139 users.
func BenchmarkDrop(b *testing.B) {
	for b.Loop() {
		s, requests := harness.CountedService(storagetest.Simulator(b, nil))
		schema := schemaOf("Logins", func() time.Time { return noon })
		logins := mustStart(b, s, schema)
		fill(b, logins, 90, 139, 8)
		before := noon.AddDate(0, 0, -29)
		planned := assert.Must[highvolumedelete.DropReport](b)(logins.Drop(b.Context(), before, &highvolumedelete.DropOptions{DryRun: true, Count: true}))

		requests.Reset()
		start := time.Now()
		for _, name := range planned.Tables {
			deleteBySDK(b, logins.Control().Account().Table(name).Client())
		}
		theirs, sent := time.Since(start), requests.Reset()
		if int64(sent) != planned.Instead {
			b.Fatalf("%d requests, and it was said to be %d", sent, planned.Instead)
		}
		start = time.Now()
		report := assert.Must[highvolumedelete.DropReport](b)(logins.Drop(b.Context(), before, noGrace()))
		ours := time.Since(start)
		b.ReportMetric(float64(90*139*8), "entities")
		b.ReportMetric(float64(planned.Rows), "rows-dropped")
		b.ReportMetric(float64(len(report.Tables)), "drops")
		b.ReportMetric(float64(requests.Count()), "requests")
		b.ReportMetric(float64(sent), "EGT-requests")
		b.ReportMetric(float64(ours.Microseconds()), "µs/Drop")
		b.ReportMetric(float64(theirs)/float64(ours), "SDK/ours")
	}
}

// deleteBySDK finds and deletes the rows of a table as a program without the library does.
func deleteBySDK(b *testing.B, client *aztables.Client) {
	selected := "PartitionKey,RowKey"
	pager := client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: &selected})
	partitions := map[string][]aztables.TransactionAction{}
	for pager.More() {
		page, err := pager.NextPage(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, raw := range page.Entities {
			var e aztables.EDMEntity
			if err := e.UnmarshalJSON(raw); err != nil {
				b.Fatal(err)
			}
			partitions[e.PartitionKey] = append(partitions[e.PartitionKey], aztables.TransactionAction{ActionType: aztables.TransactionTypeDelete, Entity: raw})
		}
	}
	for _, actions := range partitions {
		for len(actions) > 0 {
			n := min(len(actions), 100)
			if _, err := client.SubmitTransaction(context.Background(), actions[:n], nil); err != nil {
				b.Fatal(err)
			}
			actions = actions[n:]
		}
	}
}

// BenchmarkInsert compares an Insert that finds its table by itself with one into a repository of a known table.
func BenchmarkInsert(b *testing.B) {
	s := storagetest.Simulator(b, nil)
	logins := mustStart(b, s, schemaOf("Logins", func() time.Time { return noon }))
	insert(b, logins, "june", noon)
	known := assert.Must[*patterns.Repository[login]](b)(logins.Repository(noon))
	var ours, plain time.Duration
	n := 0
	for b.Loop() {
		n++
		l := &login{User: "otto", At: noon.Add(time.Duration(n) * 100)}
		start := time.Now()
		if err := logins.Insert(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		l = &login{User: "ken", At: l.At}
		start = time.Now()
		if err := known.Insert(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		plain += time.Since(start)
	}
	b.ReportMetric(float64(ours)/float64(plain), "ours/plain")
}
