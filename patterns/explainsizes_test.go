package patterns_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// bodySizes records the sizes of the bodies of writes.
type bodySizes []int

func (s *bodySizes) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method != http.MethodGet {
		n := 0
		if body := r.Raw().Body; body != nil && body != http.NoBody {
			read, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			n = len(read)
			if err := r.RewindBody(); err != nil {
				return nil, err
			}
		}
		*s = append(*s, n)
	}
	return r.Next()
}

// TestExplainSizes compares the sizes that Explain foretells with the stored rows and with the bodies that are sent, for changes of one
// row and of several, with text whose JSON, UTF-8 and UTF-16 have different lengths.
func TestExplainSizes(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	sent := &bodySizes{}
	options := s.ClientOptions // the service is shared with other tests
	options.PerRetryPolicies = slices.Concat(options.PerRetryPolicies, []policy.Policy{sent})
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: options}))
	for name, attached := range map[string][]patterns.Pattern[note]{
		"one row": nil,
		"indexes": {byName(), intrapartition.NewUnique("length", func(n *note) compoundkey.Part { return compoundkey.Int(len(n.Name), 4) }, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			table := account.Table(s.TableName(t))
			assert.Check(t, table.Create(ctx))
			repository := noteRepository(t, table, attached...)
			explain := func(kind driver.ChangeKind, v *note) *patterns.Explanation {
				t.Helper()
				return assert.Must[*patterns.Explanation](t)(repository.Explain(ctx, kind, v))
			}
			n := &note{PartitionKey: "Größe", RowKey: "id_1", Name: "🙂 \"é\" <a>"}
			check := func(x *patterns.Explanation, change func() error) {
				t.Helper()
				*sent = nil
				assert.Check(t, change())
				if len(*sent) != 1 || (*sent)[0] != x.Body {
					t.Errorf("%v: bodies of %d bytes were sent, and Explain foretold one of %d", x.Kind, *sent, x.Body)
				}
				for _, row := range x.Rows {
					if row.Verb == "delete" {
						if row.Size != 0 || row.Properties != 0 {
							t.Errorf("%v: the deleted row %q has %d properties with %d bytes", x.Kind, row.RowKey, row.Properties, row.Size)
						}
						continue
					}
					stored := assert.Must[*tablerow.Row](t)((*core.Table)(table).Get(ctx, "Get", tables.Key{Partition: n.PartitionKey, Row: row.RowKey}, nil))
					size, count := edm.KeySize(stored.Key.Partition, stored.Key.Row)+edm.PropertySize(rows.WriteID, edm.String(stored.WriteID)), 1
					for _, p := range stored.AppendOwn(stored.Properties) {
						size, count = size+edm.PropertySize(p.Name, edm.Value(p.Value)), count+1
					}
					if row.Size != size || row.Properties != count {
						t.Errorf("%v: row %q has %d properties with %d bytes; Explain foretold %d with %d", x.Kind, row.RowKey, count, size, row.Properties, row.Size)
					}
				}
			}
			check(explain(driver.ChangeInsert, n), func() error { return repository.Insert(ctx, n) })
			n.Name = strings.Repeat("ä", 100)
			check(explain(driver.ChangeReplace, n), func() error { return repository.Replace(ctx, n) })
			check(explain(driver.ChangeDelete, n), func() error { return repository.Delete(ctx, n) })
		})
	}
}
