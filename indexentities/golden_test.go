package indexentities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The golden tests pin what is stored: lists that exist in accounts must be read for ever. docs/reference/storage-format.md
// describes the same in words. Where one of them fails, either the change is wrong or readers need a way to tell the old from the
// new.

// goldenID is a write id: 26 characters of base32.
var goldenID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// rawRow is a row as it is stored, with the library's own properties.
func rawRow(ctx context.Context, table *tables.Table, key tables.Key) (string, error) {
	answer, err := table.Client().GetEntity(ctx, key.Partition, key.Row, nil)
	if err != nil {
		return "", err
	}
	var row map[string]any
	if err := json.Unmarshal(answer.Value, &row); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(row)) {
		value := row[name]
		if text, ok := value.(string); ok && goldenID.MatchString(text) {
			value = "ID"
		}
		if !strings.HasPrefix(name, "odata.") && !strings.HasPrefix(name, "Timestamp") {
			fmt.Fprintf(&b, "%s=%#v\n", name, value)
		}
	}
	return b.String(), nil
}

// goldenStaff is who is in the golden lists: sorted as the service sorts, and with a partition key that another begins with.
func goldenStaff(t *testing.T, p *process) {
	t.Helper()
	for _, e := range []*employee{with(223, "O'Brien/Ng"), with(152, "O'Brien/Ng"), {Department: "Sales B", ID: 1, LastName: "O'Brien/Ng"}, {ID: 5, LastName: "O'Brien/Ng"}} {
		if err := p.repo.Insert(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoldenRows(t *testing.T) {
	for _, c := range []struct {
		world
		key  tables.Key
		want string
	}{
		{world{option: inPartition}, tables.Key{Partition: "Sales", Row: "lastname_O&1Brien.\uFFFCNg"},
			"Count=2\nKeys=\"empid_000152\\nempid_000223\"\nPartitionKey=\"Sales\"\nRowKey=\"lastname_O&1Brien.\uFFFCNg\"\n_tpShared=\"lastname\"\n_tpWrite=\"ID\"\n"},
		{world{option: outside}, tables.Key{Partition: "lastname_Sales", Row: "O&1Brien.\uFFFCNg!_Sales!_empid^1000152"},
			"PartitionKey=\"lastname_Sales\"\nRowKey=\"O&1Brien.\uFFFCNg!_Sales!_empid^1000152\"\n_tpIncarnation=\"ID\"\n_tpPartition=\"Sales\"\n_tpPrimary=\"empid_000152\"\n_tpWrite=\"ID\"\n"},
		{world{option: outside, global: true}, tables.Key{Partition: "lastname", Row: "O&1Brien.\uFFFCNg!_!_empid^1000005"},
			"PartitionKey=\"lastname\"\nRowKey=\"O&1Brien.\uFFFCNg!_!_empid^1000005\"\n_tpIncarnation=\"ID\"\n_tpPartition=\"\"\n_tpPrimary=\"empid_000005\"\n_tpWrite=\"ID\"\n"},
	} {
		t.Run(c.String(), func(t *testing.T) {
			s := storagetest.Open(t)
			w := c.world
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			goldenStaff(t, p)
			if got := assert.Must[string](t)(rawRow(t.Context(), p.lists, c.key)); got != c.want {
				t.Errorf("the stored format has changed:\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestGoldenToken pins the tokens of pages.
func TestGoldenToken(t *testing.T) {
	const token = "eyJ2IjoxLCJxIjoiOGQ4MGEwNjY0ZDQ3NDgzOSIsInAiOiJTYWxlcyIsInIiOiJlbXBpZF8wMDAwMDEifQ"
	p := staff(t, &world{option: inPartition}, 3)
	page, err := p.index.In("Sales").Page(t.Context(), byLastName(with(0, "Jones")), 2, "")
	if err != nil || page.Next != token {
		t.Errorf("the token is %s, %v", page.Next, err)
	}
	page, err = p.index.In("Sales").Page(t.Context(), byLastName(with(0, "Jones")), 2, token)
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != 2 {
		t.Errorf("%+v, %v", page, err)
	}
}
