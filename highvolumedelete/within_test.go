package highvolumedelete_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPatternsStayWithinTheTable: what a pattern keeps elsewhere would stay there for good when the table is dropped, and an index
// would find entities that are gone. So such a pattern is refused, before any request and each time; one that keeps its copies
// in other partitions of the table goes with it.
func TestPatternsStayWithinTheTable(t *testing.T) {
	address := func(l *login) compoundkey.Part { return compoundkey.String(l.Address) }
	elsewhere := func(table *tables.Table) *tables.Table { return table.Account().Table("Elsewhere") }
	for name, c := range map[string]struct {
		pattern func(*tables.Table) patterns.Pattern[login]
		refused bool
	}{
		"copies in the table": {func(table *tables.Table) patterns.Pattern[login] {
			return interpartition.NewIndex("address", address, &interpartition.Options[login]{Table: table})
		}, false},
		"copies in another": {func(table *tables.Table) patterns.Pattern[login] {
			return interpartition.NewIndex("address", address, &interpartition.Options[login]{Table: elsewhere(table)})
		}, true},
		"lists in another": {func(table *tables.Table) patterns.Pattern[login] {
			return indexentities.NewInTable("address", address, elsewhere(table), nil)
		}, true},
		"lists in blobs": {func(table *tables.Table) patterns.Pattern[login] {
			return indexentities.NewInBlobs("address", address, table.Account().Container("lists"), nil)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, requests := counted(storagetest.Simulator(t, nil))
			account := harness.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			queue := harness.Must[*eventual.Queue](t)(eventual.NewQueue(account, s.QueueName(t), nil))
			if err := queue.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			schema := schemaOf(nameOf(t, s), func() time.Time { return noon })
			schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
				return patterns.NewRepository(harness.In(table, queue), patterns.Schema[login]{Key: keyOf, Rows: compoundkey.Starting("at")}, c.pattern(table))
			}
			logins := mustStart(t, s, schema)
			requests.Reset()
			for i := range 2 {
				err := logins.Insert(t.Context(), &login{User: "june", At: noon.Add(time.Duration(i) * time.Second), Address: "::" + string(rune('1'+i))})
				if !c.refused && err != nil || c.refused && (!errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), `"address"`)) {
					t.Errorf("Insert %d: %v", i, err)
				}
			}
			if c.refused != (requests.Count() == 0) {
				t.Errorf("%d requests", requests.Count())
			}
		})
	}
}
