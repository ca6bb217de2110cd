package patterns_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// BenchmarkRatioVerbs compares single verbs with the SDK's requests for the same rows, by turns, in processor time. All answers are made
// in the process, so that what is left is the work of both sides; an outside index needs a queue, and so a simulator.
func BenchmarkRatioVerbs(b *testing.B) {
	batch := string(harness.BatchAnswer(2))
	account := harness.InProcess(b, func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/$batch") {
			return harness.Reply(req, http.StatusAccepted, batch, "Content-Type", "multipart/mixed; boundary=batchresponse_1"), nil
		}
		return harness.Reply(req, http.StatusNoContent, "", "ETag", `W/"datetime'2026-01-01T00%3A00%3A00.0000001Z'"`), nil
	})
	b.Run("insert", func(b *testing.B) { verbContenders(b, account.Table("People"), false) })
	b.Run("insert, index in the partition", func(b *testing.B) { verbContenders(b, account.Table("People"), true) })
	b.Run("insert, index outside", func(b *testing.B) {
		s := storagetest.Simulator(b, nil)
		a := assert.Must[*tables.Account](b)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
		store := assert.Must[*patterns.Store](b)(patterns.Open("verbs", &patterns.StoreOptions{Account: a}))
		index := interpartition.NewIndex("email", func(p *person) string { return p.Email }, &interpartition.Options[person]{ByPartition: true})
		repo := assert.Must[*patterns.Repository[person]](b)(patterns.NewRepository(store.Table("People"), verbSchema, index))
		assert.Check(b, store.Create(b.Context()))
		defer func() { assert.Check(b, harness.Settle(context.Background(), store)) }()
		n, bare := 0, store.Table("Bare")
		assert.Check(b, bare.Create(b.Context()))
		harness.Ratios(b, []harness.Contender{
			{Name: "ours", Run: func() error { n++; return repo.Insert(b.Context(), benchPerson(n)) }},
			{Name: "SDK", Run: func() error { n++; return insertBare(b.Context(), bare.Client(), n, false) }},
		})
	})
}

var verbSchema = patterns.Schema[person]{Prefix: "person", Key: func(p *person) tables.Key {
	return tables.Key{Partition: "red", Row: compoundkey.Join("person", compoundkey.Int(p.ID, 9))}
}}

func benchPerson(n int) *person {
	p := ann()
	p.ID, p.Photo, p.Email = n, nil, fmt.Sprintf("p%d@contoso.com", n)
	return p
}

// verbContenders inserts a person and, with an index, her copy.
func verbContenders(b *testing.B, table *tables.Table, indexed bool) {
	var indexes []patterns.Pattern[person]
	if indexed {
		indexes = append(indexes, intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil))
	}
	repo := assert.Must[*patterns.Repository[person]](b)(patterns.NewRepository(table, verbSchema, indexes...))
	n := 0
	harness.Ratios(b, []harness.Contender{
		{Name: "ours", Run: func() error { n++; return repo.Insert(b.Context(), benchPerson(n)) }},
		{Name: "SDK", Run: func() error { n++; return insertBare(b.Context(), table.Client(), n, indexed) }},
	})
}

// insertBare stores a person as a program without the library does.
func insertBare(ctx context.Context, client *aztables.Client, n int, indexed bool) error {
	p := benchPerson(n)
	row := aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "red", RowKey: fmt.Sprintf("person_%09d", n)},
		Properties: map[string]any{"Team": p.Team, "ID": int32(p.ID), "Email": p.Email, "Name": p.Name, "Salary": aztables.EDMInt64(p.Salary)}}
	text, err := row.MarshalJSON()
	if err != nil {
		return err
	}
	if !indexed {
		_, err = client.AddEntity(ctx, text, nil)
		return err
	}
	row.RowKey = "email_" + p.Email
	copied, err := row.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = client.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: text}, {ActionType: aztables.TransactionTypeAdd, Entity: copied}}, nil)
	return err
}
