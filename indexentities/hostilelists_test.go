package indexentities_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// writeList puts other text in the place of the list Sales, Jones, past the library, as whoever can write it can.
func (w *world) writeList(t testing.TB, p *process, lines []string, count int) {
	t.Helper()
	ctx := t.Context()
	key := tables.Key{Partition: "Sales", Row: "lastname_Jones"}
	client := p.account.TableService().NewClient(p.lists.Name())
	row := assert.Must[*tables.Entity](t)(p.lists.Entities().Get(ctx, key))
	raw := `{"PartitionKey":"` + key.Partition + `","RowKey":"` + key.Row + `","Count":` + strconv.Itoa(count) + `,"Keys":` + strconv.Quote(strings.Join(lines, "\n")) + `}`
	_, err := client.UpdateEntity(ctx, []byte(raw), nil)
	assert.Must[any](t)(nil, err)
	if again := assert.Must[*tables.Entity](t)(p.lists.Entities().Get(ctx, key)); again.ETag == row.ETag {
		t.Fatal("the list was not written")
	}
}

// TestForgedLists: whoever can write a list adds to it what he likes. Find returns no entity that does not have the value and the group,
// nothing that is not an entity, and does not panic; a list that makes no sense is ErrGarbled.
func TestForgedLists(t *testing.T) {
	for _, o := range []option{inPartition} {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := (&world{option: o}).open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			elsewhere := with(4, "Jones")
			elsewhere.Department = "Works"
			for _, e := range []*employee{with(1, "Jones"), with(2, "Smith"), with(3, ""), elsewhere} {
				assert.Must[any](t)(nil, p.repo.Insert(ctx, e))
			}
			line := func(_, row string) string { return row }
			forged := []string{line("Sales", "empid_000001"), line("Sales", "empid_000002"), line("Sales", "empid_000003"), line("Works", "empid_000004"), line("Sales", "empid_000099"),
				line("Sales", "lastname_Jones"), line("Sales", "lastname_Smith"), line("lastname_Sales", "Jones"), line("", "")}
			w.writeList(t, p, forged, len(forged))
			if got := idsOf(t, p.index.In("Sales").Find(ctx, compoundkey.String("Jones"), nil)); !slices.Equal(got, []int{1}) {
				t.Errorf("Find yields %d, want 1", got)
			}
			for what, c := range map[string]struct {
				lines []string
				count int
			}{
				"no keys":           {[]string{"nothing"}, 1},
				"too few":           {forged[:1], 2},
				"a negative number": {forged[:1], -1},
				"a key twice":       {[]string{forged[0], forged[0]}, 2},
				"a key that is not": {[]string{line("a/b", "c#d")}, 1},
			} {
				w.writeList(t, p, c.lines, c.count)
				for e, err := range p.index.In("Sales").Find(ctx, compoundkey.String("Jones"), nil) {
					garbled := errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid)
					if err != nil && !garbled || err == nil && e.LastName != "Jones" {
						t.Errorf("%s: %v, %v", what, e, err)
					}
				}
				if _, err := p.index.In("Sales").Keys(ctx, compoundkey.String("Jones")); err != nil && !errors.Is(err, tables.ErrGarbled) {
					t.Errorf("%s: Keys says %v", what, err)
				}
			}
		})
	}
}
