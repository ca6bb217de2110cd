package tables_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestInOrder: rows of Cosmos DB are sorted, those of Azure come as they are; an error comes once, and callers may stop.
func TestInOrder(t *testing.T) {
	broken := errors.New("broken")
	rows := func(end error, names ...string) iter.Seq2[*tables.Entity, error] {
		return func(yield func(*tables.Entity, error) bool) {
			for _, name := range names {
				if !yield(&tables.Entity{Key: tables.Key{Partition: "p", Row: name}}, nil) {
					return
				}
			}
			if end != nil {
				yield(nil, end)
			}
		}
	}
	for address, want := range map[string]string{"https://contoso.table.cosmos.azure.com": "[a b c]", "https://contoso.table.core.windows.net": "[b a c]"} {
		table := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: address}, "contoso", "a2V5", nil)).Table("Rows")
		var got []string
		for row, err := range table.InOrder(rows(nil, "b", "a", "c")) {
			assert.Check(t, err)
			got = append(got, row.Key.Row)
		}
		assert.Equal(t, fmt.Sprint(got), want, "%s: %v", address, got)
		var failed []error
		for _, err := range table.InOrder(rows(broken, "b")) {
			if err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) != 1 || !errors.Is(failed[0], broken) {
			t.Errorf("%s: errors %v", address, failed)
		}
		for range table.InOrder(rows(nil, "b", "a")) {
			break
		}
	}
}
