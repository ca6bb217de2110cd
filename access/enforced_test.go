package access_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// addressOf is the address of a row, or of the table, behind a token.
func addressOf(token access.Token, row string) string {
	base, query, _ := strings.Cut(token.RevealAddress(), "?")
	return base + row + "?" + query
}

func rowAddress(key tables.Key) string {
	quote := func(s string) string { return url.PathEscape(strings.ReplaceAll(s, "'", "''")) }
	return "(PartitionKey='" + quote(key.Partition) + "',RowKey='" + quote(key.Row) + "')"
}

// attempt is one kind of request, as a client without any guard would send it, and the permission that it needs.
type attempt struct {
	name  string
	needs access.Permission
	do    func(t testing.TB, s *storagetest.Service, token access.Token, key tables.Key) int
}

func attempts() []attempt {
	body := func(key tables.Key) string {
		return fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"Text":"new"}`, key.Partition, key.Row)
	}
	one := func(method, body string, headers ...string) func(testing.TB, *storagetest.Service, access.Token, tables.Key) int {
		return func(t testing.TB, s *storagetest.Service, token access.Token, key tables.Key) int {
			status, _ := send(t, s, method, addressOf(token, rowAddress(key)), body, headers...)
			return status
		}
	}
	return []attempt{
		{"get", access.Query, one(http.MethodGet, "")},
		{"insert", access.Add, func(t testing.TB, s *storagetest.Service, token access.Token, key tables.Key) int {
			key.Row += "+" // behind the row, and in every range that the row is in and that goes on
			status, _ := send(t, s, http.MethodPost, addressOf(token, ""), body(key))
			return status
		}},
		{"replace", access.Update, one(http.MethodPut, `{}`, "If-Match", "*")},
		{"merge", access.Update, one(http.MethodPatch, `{}`, "If-Match", "*")},
		{"upsert", access.Add | access.Update, one(http.MethodPut, `{}`)},
		{"delete", access.Delete, one(http.MethodDelete, "", "If-Match", "*")},
	}
}

// TestPermissionsAndRangesAreEnforced: every permission, every range, inside and outside of it, by requests that nothing but
// the service checks. The simulator holds key ranges, and Strict holds them in front of Azurite.
func TestPermissionsAndRangesAreEnforced(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	keys := []tables.Key{at("Marketing", "empid_000123"), at("Sales", "empid_000122"), at("Sales", "empid_000123"), at("Sales", "empid_000123_2012"),
		at("Sales", "empid_000124"), at("Sales", "f"), at("Tax", "empid_000123")}
	inside := map[string]string{"partition": "12345", "partitions": "12345", "rows": "23", "rows from": "12345", "rows to": "1234", "row": "2", "through": "12", "table": "0123456"}
	tried := 0
	for name, keyRange := range ranges() {
		want, known := inside[name]
		for p := access.Query; p <= access.Everything; p++ {
			if few := testing.Short() || o.s.Clock == nil; !known || few && p&(p-1) != 0 && p != access.Everything {
				continue // one permission at a time, and all of them
			}
			token := o.sign(access.Grant{Range: keyRange, Permissions: p})
			for i, key := range keys {
				in := strings.Contains(want, fmt.Sprint(i))
				if in != keyRange.Contains(key) {
					t.Errorf("%s contains %v: %v", name, key, !in)
				}
				for _, a := range attempts() {
					if a.name == "upsert" && o.s.Clock == nil {
						a.needs = access.Update // Azurite takes an upsert for an update
					}
					assert.Check(t, o.table.Entities().Upsert(t.Context(), bag(key)))
					status := a.do(t, o.s, token, key)
					allowed := p.Has(a.needs) && (in && a.name != "insert" || a.name == "insert" && keyRange.Contains(at(key.Partition, key.Row+"+")))
					if allowed != (status < 300) || !allowed && status != http.StatusForbidden {
						t.Errorf("%s, %v, %s %v: %d", name, p, a.name, key, status)
					}
					if a.name == "insert" && status < 300 {
						assert.Check(t, o.table.Entities().DeleteUnconditional(t.Context(), at(key.Partition, key.Row+"+")))
					}
					tried++
				}
			}
		}
	}
	t.Logf("%d requests", tried)
	if tried < 1500 {
		t.Errorf("%d requests", tried)
	}
}

// TestQueriesAreCut: a query returns what is within the range.
func TestQueriesAreCut(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	keys := []tables.Key{at("Marketing", "empid_000123"), at("Sales", "empid_000122"), at("Sales", "empid_000123"), at("Sales", "empid_000124"), at("Tax", "a")}
	o.insert(keys...)
	for name, keyRange := range ranges() {
		var want []tables.Key
		for _, key := range keys {
			if keyRange.Contains(key) {
				want = append(want, key)
			}
		}
		for query, q := range map[string]tables.Query[tables.Entity]{
			"all":       o.open(access.Grant{Range: keyRange, Permissions: access.Query}).Table().Entities().Query().AllowTableScan(),
			"page of 1": o.open(access.Grant{Range: keyRange, Permissions: access.Query}).Table().Entities().Query().AllowTableScan().PageSize(1),
		} {
			var got []tables.Key
			for e, err := range q.All(t.Context()) {
				assert.Check(t, err)
				got = append(got, e.Key)
			}
			assert.Slices(t, got, want, "%s, %s", name, query)
		}
	}
}

// TestTransactionsAreEnforced is on the simulator: Azurite takes no transaction under a table's signature.
func TestTransactionsAreEnforced(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	o.insert(at("Sales", "a"), at("Sales", "b"), at("Sales", "c"))
	for _, c := range []struct {
		permissions access.Permission
		rows        string
		want        error
	}{
		{access.Add | access.Update, "ab", nil}, {access.Add | access.Update, "ac", access.ErrOutside}, {access.Update, "ab", access.ErrNotPermitted},
		{access.Everything, "b", nil}, {access.Everything, "c", access.ErrOutside},
	} {
		client, counter := o.counted(access.Grant{Range: access.Rows("Sales", compoundkey.Range("a", "c")), Permissions: c.permissions})
		x := client.Table().NewTransaction()
		for _, row := range c.rows {
			x.Upsert(bag(at("Sales", string(row))))
		}
		_, err := x.Commit(t.Context())
		if c.want == nil && err != nil || c.want != nil && (!errors.Is(err, c.want) || !errors.Is(err, tables.ErrDenied)) {
			t.Errorf("%v %s: %v", c.permissions, c.rows, err)
		}
		if c.want != nil && counter.Count() != 0 {
			t.Errorf("%v %s: %d requests", c.permissions, c.rows, counter.Count())
		}
	}
}
