package tablescan_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/tables"
)

// cosmos answers queries of a table in no order of keys, in pages of 3 rows.
func cosmos(t *testing.T, keys []tables.Key) *tables.Table {
	t.Helper()
	answer := harness.Transport(func(req *http.Request) (*http.Response, error) {
		asked := req.URL.Query()
		var rows []string
		for _, k := range keys {
			if filter := asked.Get("$filter"); filter == "" || strings.Contains(filter, "PartitionKey eq '"+k.Partition+"'") {
				rows = append(rows, fmt.Sprintf(`{"odata.etag":"W/\"1\"","PartitionKey":%q,"RowKey":%q}`, k.Partition, k.Row))
			}
		}
		from, _ := strconv.Atoi(asked.Get("NextPartitionKey"))
		if rows = rows[from:]; len(rows) <= 3 {
			return harness.Reply(req, http.StatusOK, `{"value":[`+strings.Join(rows, ",")+`]}`), nil
		}
		return harness.Reply(req, http.StatusOK, `{"value":[`+strings.Join(rows[:3], ",")+`]}`, "X-Ms-Continuation-Nextpartitionkey", strconv.Itoa(from+3)), nil
	})
	return harness.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: answer}})).Table("Events")
}

// TestOnCosmos: on Azure Cosmos DB one reader reads every row once, and from the state of each page the rest.
func TestOnCosmos(t *testing.T) {
	var keys []tables.Key
	for i := range 20 {
		keys = append(keys, tables.Key{Partition: string(rune('a' + i*7%4)), Row: fmt.Sprint(i * 13 % 20)})
	}
	for _, partitions := range [][]string{nil, {"a", "c", "d", "none"}} {
		ranges := tablescan.Partitions(partitions)
		worked := 0
		scan := tablescan.Scan[*[]string]{Table: cosmos(t, keys), Ranges: ranges, Readers: 8,
			New: func() *[]string { return new([]string) },
			Row: func(_ context.Context, page *[]string, row *tables.RawRow) error {
				*page = append(*page, row.Key.Partition+" "+row.Key.Row)
				return nil
			},
			Work: func(context.Context, rangescan.Range, *[]string) error { worked++; return nil },
		}
		read := func(from tablescan.State) (all []string, states []tablescan.State, pages []int) {
			for page, err := range scan.Pages(t.Context(), from) {
				harness.Check(t, err)
				all = append(all, *page.Content...)
				states, pages = append(states, page.Rest), append(pages, len(all))
			}
			return all, states, pages
		}
		all, states, pages := read(tablescan.State{})
		if want := map[bool]int{true: 20, false: 15}[partitions == nil]; len(all) != want || worked != len(states) {
			t.Fatalf("%d rows, %d pages of %d", len(all), worked, len(states))
		}
		done := 0
		for i, s := range states {
			rest, _, _ := read(s)
			if !slices.Equal(rest, all[pages[i]:]) || !s.Valid(len(ranges)) || s.Over(len(ranges)) != (i == len(states)-1) || s.Done() < done {
				t.Errorf("%v: %d rows after page %d, of %d: %+v", partitions, len(rest), i, len(all), s)
			}
			done = s.Done()
		}
		if partitions != nil && done != len(partitions) {
			t.Errorf("%d partitions of %d", done, len(partitions))
		}
	}
}
