package tablescan_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOnCosmos: on Azure Cosmos DB one reader reads every row once, and from the state of each page the rest.
func TestOnCosmos(t *testing.T) {
	var keys []tables.Key
	for i := range 20 {
		keys = append(keys, tables.Key{Partition: string(rune('a' + i*7%4)), Row: fmt.Sprint(i * 13 % 20)})
	}
	for _, partitions := range [][]string{nil, {"a", "c", "d", "none"}} {
		ranges := tablescan.Partitions(partitions)
		worked := 0
		scan := tablescan.Scan[*[]string]{Table: (*core.Table)(harness.Cosmos(t, keys)), Ranges: ranges, Readers: 8,
			New: func() *[]string { return new([]string) },
			Row: func(_ context.Context, page *[]string, row *tablerow.Row) error {
				*page = append(*page, row.Key.Partition+" "+row.Key.Row)
				return nil
			},
			Work: func(context.Context, rangescan.Range, *[]string) error { worked++; return nil },
		}
		read := func(from tablescan.State) (all []string, states []tablescan.State, pages []int) {
			for page, err := range scan.Pages(t.Context(), from) {
				assert.Check(t, err)
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
			if !slices.Equal(rest, all[pages[i]:]) || !s.Valid(ranges) || s.Over(len(ranges)) != (i == len(states)-1) || s.Done() < done {
				t.Errorf("%v: %d rows after page %d, of %d: %+v", partitions, len(rest), i, len(all), s)
			}
			done = s.Done()
		}
		if partitions != nil && done != len(partitions) {
			t.Errorf("%d partitions of %d", done, len(partitions))
		}
	}
}
