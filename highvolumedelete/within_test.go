package highvolumedelete_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPatternsStayWithinTheTable: what a pattern keeps elsewhere would stay there for good when the table is dropped, and an index
// would find entities that are gone. So such a pattern is refused, before any request and each time; one that keeps its copies
// in other partitions of the table goes with it.
func TestPatternsStayWithinTheTable(t *testing.T) {
	address := func(l *login) string { return l.Address }
	elsewhere := func(table *tables.Table) *tables.Table { return table.Account().Table("Elsewhere") }
	for name, c := range map[string]struct {
		pattern func(*tables.Table) patterns.Pattern[login]
		refused bool
	}{
		"copies in the table": {func(table *tables.Table) patterns.Pattern[login] {
			return interpartition.NewIndex("address", address, &interpartition.Options[login]{ByPartition: true, Table: table})
		}, false},
		"copies in another": {func(table *tables.Table) patterns.Pattern[login] {
			return interpartition.NewIndex("address", address, &interpartition.Options[login]{ByPartition: true, Table: elsewhere(table)})
		}, true},
		"lists in another": {func(table *tables.Table) patterns.Pattern[login] {
			return indexentities.NewInTable("address", address, elsewhere(table), &indexentities.Options[login]{ByPartition: true})
		}, true},
		"values in blobs": {func(table *tables.Table) patterns.Pattern[login] {
			return largeentities.NewProperty[login]("Address", blobstorage.Container(table.Account(), "addresses"), nil)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, requests := harness.CountedService(storagetest.Simulator(t, nil))
			account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, s.QueueName(t), nil))
			assert.Check(t, queue.Create(t.Context()))
			schema := schemaOf(nameOf(t, s), func() time.Time { return noon })
			schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
				return patterns.NewRepository(harness.In(table, queue), patterns.Schema[login]{Key: keyOf, Prefix: "at"}, c.pattern(table))
			}
			logins := mustStart(t, s, schema)
			requests.Reset()
			for i := range 2 {
				err := logins.Insert(t.Context(), &login{User: "june", At: noon.Add(time.Duration(i) * time.Second), Address: "::" + string(rune('1'+i))})
				if !c.refused && err != nil || c.refused && (!errors.Is(err, tables.ErrWiring) || !strings.Contains(strings.ToLower(err.Error()), `"address"`)) {
					t.Errorf("Insert %d: %v", i, err)
				}
			}
			if c.refused != (requests.Count() == 0) {
				t.Errorf("%d requests", requests.Count())
			}
		})
	}
}

// TestDroppedPeriodWithIntents: the queue of intents has the repository of a period until the process ends, so that it cannot be made a
// second time. Nevertheless an entity of a dropped period is not found or late, and reads skip the period.
func TestDroppedPeriodWithIntents(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	store := assert.Must[*patterns.Store](t)(patterns.Open("logins", &patterns.StoreOptions{Account: account}))
	schema := schemaOf("Logins", func() time.Time { return noon })
	schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
		return patterns.NewRepository(store.RunTimeTable(table), patterns.Schema[login]{Key: keyOf, Prefix: "at"},
			interpartition.NewIndex("address", func(l *login) string { return l.Address }, &interpartition.Options[login]{ByPartition: true}))
	}
	logins := assert.Must[*highvolumedelete.Tables[login]](t)(highvolumedelete.New(account, schema))
	assert.Must[*patterns.Repository[login]](t)(logins.Repository(noon))
	old, today := &login{User: "june", At: noon.AddDate(0, 0, -3), Address: "::1"}, &login{User: "june", At: noon.Add(-time.Hour), Address: "::1"}
	assert.Check(t, store.Create(ctx), logins.Insert(ctx, old), logins.Insert(ctx, today))
	assert.Len(assert.Fatal(t), assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, noon, noGrace())).Tables, 1, "dropped")
	assert.ErrorIs(t, assert.Err(logins.Get(ctx, old.At, keyOf(old))), tables.ErrNotFound, "Get")
	assert.ErrorIs(t, logins.Insert(ctx, &login{User: "june", At: old.At, Address: "::2"}), highvolumedelete.ErrLate, "Insert")
	read := 0
	for _, err := range logins.Between(ctx, old.At.AddDate(0, 0, -1), noon, &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}}) {
		assert.Check(t, err)
		read++
	}
	assert.Equal(t, read, 1, "logins were read")
}
