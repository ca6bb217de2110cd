package tables_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rows runs a query and lists the row keys it finds.
func rows(t testing.TB, q tables.Query[tables.Entity]) []string {
	t.Helper()
	found := []string{}
	for e, err := range q.All(context.Background()) {
		assert.Check(t, err)
		found = append(found, e.Key.Row)
	}
	return found
}

// fill inserts rows of one partition, in transactions.
func fill(t testing.TB, table *tables.Table, entities []*tables.Entity) {
	t.Helper()
	for chunk := range slices.Chunk(entities, tables.MaxTransactionOperations) {
		x := table.NewTransaction()
		for _, e := range chunk {
			x.Insert(e)
		}
		assert.Check(t, assert.Err(x.Commit(context.Background())))
	}
}

// hostileLiterals are values of one property each, and the same in the service's filter language.
func hostileLiterals(t testing.TB) map[string][]struct {
	value   tables.Value
	literal string
} {
	date := func(text string) tables.Value {
		return assert.Must[tables.Value](t)(tables.DateTime(assert.Must[time.Time](t)(time.Parse(time.RFC3339Nano, text))))
	}
	type pair = struct {
		value   tables.Value
		literal string
	}
	return map[string][]pair{
		"Text": {
			{tables.String("O'Brien"), "'O''Brien'"}, {tables.String("'"), "''''"}, {tables.String("''"), "''''''"}, {tables.String(""), "''"},
			{tables.String("a' or 'a' eq 'a"), "'a'' or ''a'' eq ''a'"}, {tables.String("x eq 5"), "'x eq 5'"}, {tables.String("50% + & = # ? / \\"), `'50% + & = # ? / \'`},
			{tables.String("ü😀日"), "'ü😀日'"}, {tables.String("5"), "'5'"}, {tables.String("(("), "'(('"}, {tables.String(`"`), `'"'`},
		},
		"Id": {
			{tables.GUID(uuid.UUID{}), "guid'00000000-0000-0000-0000-000000000000'"},
			{tables.GUID(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")), "guid'c9da6455-213d-42c9-9a79-3e9149a57833'"},
		},
		"At": {
			{date("2024-05-06T07:08:09.1234567Z"), "datetime'2024-05-06T07:08:09.1234567Z'"}, {date("2024-05-06T09:08:09+02:00"), "datetime'2024-05-06T07:08:09Z'"},
			{date("1601-01-01T00:00:00Z"), "datetime'1601-01-01T00:00:00Z'"}, {date("9999-12-31T23:59:59.9999999Z"), "datetime'9999-12-31T23:59:59.9999999Z'"},
		},
		"Photo": {{tables.Binary([]byte{0, 1, 255}), "X'0001ff'"}, {tables.Binary([]byte("'")), "X'27'"}},
		"Long": {
			{tables.Int64(math.MaxInt64), "9223372036854775807L"}, {tables.Int64(1<<53 + 1), "9007199254740993L"}, {tables.Int64(-5), "-5L"}, {tables.Int64(5), "5L"},
		},
		"Small": {{tables.Int32(5), "5"}, {tables.Int32(math.MinInt32), "-2147483648"}, {tables.Int32(0), "0"}},
		"Double": {
			{tables.Double(3), "3.0"}, {tables.Double(0.5), "0.5"}, {tables.Double(1e300), "1e300"}, {tables.Double(1.5e-7), "1.5E-7"}, {tables.Double(-2.25), "-2.25"}, {tables.Double(1e21), "1e+21"},
			{tables.Double(math.MaxFloat64), "1.7976931348623157e308"}, {tables.Double(math.SmallestNonzeroFloat64), "5e-324"},
		},
		"Good": {{tables.Boolean(true), "true"}, {tables.Boolean(false), "false"}},
	}
}

func TestHostileFiltersFindExactlyTheirRows(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	bags := table.Entities()
	var all []*tables.Entity
	literals := hostileLiterals(t)
	for name, values := range literals {
		for i, v := range values {
			all = append(all, harness.Row("p", fmt.Sprintf("%s %d", name, i), property(name, v.value)))
		}
	}
	fill(t, table, all)
	for name, values := range literals {
		for i, v := range values {
			want := []string{fmt.Sprintf("%s %d", name, i)}
			for what, q := range map[string]tables.Query[tables.Entity]{
				"Where":  bags.Query().Partition("p").Where(tables.Eq(name, v.value)),
				"Filter": bags.Query().Partition("p").Filter(name + " eq " + v.literal),
				"both":   bags.Query().Where(tables.Eq("PartitionKey", "p"), tables.Eq(name, v.value)).Filter("(" + name + " eq " + v.literal + ")"),
				"range":  bags.Query().Partition("p").Where(tables.Eq("RowKey", want[0]), tables.Eq(name, v.value)),
			} {
				plan := assert.Must[tables.Plan](t)(q.Plan())
				assert.Slices(t, rows(t, q), want, "%s %s, sent as %q, found", what, name, plan.Filter)
			}
		}
	}
}

func TestQuotesInKeyFilters(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	bags := table.Entities()
	keys := []string{"'", "''", "O'Brien", "x' or PartitionKey ne 'x", "%27", "+", " ", "&", "a,b"}
	for _, key := range keys {
		roundTrip(t, table, harness.Row(key, key))
	}
	for _, key := range keys {
		for what, q := range map[string]tables.Query[tables.Entity]{
			"Partition": bags.Query().Partition(key),
			"Where":     bags.Query().Where(tables.Eq("PartitionKey", key)),
			"Row":       bags.Query().Row(key).AllowTableScan(),
			"Rows":      bags.Query().Partition(key).Where(tables.Ge("RowKey", key), tables.Le("RowKey", key)),
			"Filter":    bags.Query().Filter("PartitionKey eq '" + strings.ReplaceAll(key, "'", "''") + "'"),
		} {
			assert.Slices(t, rows(t, q), []string{key}, "%s of %q found", what, key)
		}
	}
}

func TestHostileQueriesAreRefused(t *testing.T) {
	a, requests := harness.Counted(t)
	bags := harness.NewTable(t, a).Entities()
	q := bags.Query().Partition("p")
	conditions := func(n int) []tables.Condition {
		c := make([]tables.Condition, n)
		for i := range c {
			c[i] = tables.Eq("A", i)
		}
		return c
	}
	type keyed struct{ Fn func() }
	invalid := tables.ErrInvalid
	for _, c := range []struct {
		what  string
		kind  error
		query tables.Query[tables.Entity]
	}{
		{"16 comparisons", tables.ErrTooLarge, q.Where(conditions(15)...)},
		{"16 comparisons in an or", tables.ErrTooLarge, q.Where(tables.Or(conditions(15)...))},
		{"16 comparisons in a filter", tables.ErrTooLarge, q.Filter(strings.TrimSuffix(strings.Repeat("A eq 1 and ", 15), " and "))},
		{"a page of 1,001", invalid, q.PageSize(1001)}, {"a page of -1", invalid, q.PageSize(-1)}, {"a top of -1", invalid, q.Top(-1)},
		{"a table scan", tables.ErrTableScan, bags.Query()}, {"a table scan by Ge", tables.ErrTableScan, bags.Query().Row("r")},
		{"NaN", invalid, q.Where(tables.Eq("A", math.NaN()))}, {"infinity", invalid, q.Where(tables.Gt("A", math.Inf(1)))},
		{"nil", invalid, q.Where(tables.Eq("A", nil))}, {"null", invalid, q.Where(tables.Eq("A", tables.Value{}))}, {"a nil pointer", invalid, q.Where(tables.Eq("A", (*string)(nil)))},
		{"a function", invalid, q.Where(tables.Eq("A", func() {}))}, {"a struct", invalid, q.Where(tables.Eq("A", keyed{}))}, {"a channel", invalid, q.Where(tables.Eq("A", make(chan int)))},
		{"a large uint64", invalid, q.Where(tables.Eq("A", uint64(math.MaxInt64)+1))}, {"invalid UTF-8", invalid, q.Where(tables.Eq("A", "\xff"))},
		{"a nanosecond", invalid, q.Where(tables.Eq("A", time.Unix(0, 1)))}, {"the zero time", invalid, q.Where(tables.Eq("A", time.Time{}))},
		{"a key that is no text", invalid, q.Where(tables.Eq("RowKey", 5))}, {"a Timestamp that is no time", invalid, q.Where(tables.Eq("Timestamp", "x"))},
		{"a property that is no name", invalid, q.Where(tables.Eq("a b", 5))}, {"a filter in a name", invalid, q.Where(tables.Eq("A eq 1 or B", 5))}, {"no name", invalid, q.Where(tables.Eq("", 5))},
		{"an empty And", invalid, q.Where(tables.And())}, {"an empty Or", invalid, q.Where(tables.Or())}, {"a condition of nothing", invalid, q.Where(nil)},
		{"half a filter", invalid, q.Filter("A eq")}, {"an open quote", invalid, q.Filter("A eq 'x")}, {"an open parenthesis", invalid, q.Filter("((A eq 1)")}, {"nonsense", invalid, q.Filter("; drop table")},
		{"invalid UTF-8 in a filter", invalid, q.Filter("A eq '\xff'")}, {"a deep filter", invalid, q.Filter(strings.Repeat("(", 1<<20) + "A eq 1")},
		{"selecting two names as one", invalid, q.Select("A,B")}, {"selecting nothing", invalid, q.Select("")}, {"selecting a query", invalid, q.Select("A&$filter=x")},
	} {
		harness.RefusedUnsent(t, requests, c.kind, c.what, func() error { _, err := c.query.Page(context.Background(), ""); return err })
		harness.RefusedUnsent(t, requests, c.kind, c.what+" by All", func() error {
			for _, err := range c.query.All(context.Background()) {
				return err
			}
			return nil
		})
	}
	for _, token := range []string{"x", "%", strings.Repeat("A", 1000), "eyJ2IjoxfQ", "bnVsbA", "eyJ2Ijo5fQ"} {
		harness.RefusedUnsent(t, requests, invalid, "token "+token[:1], func() error { _, err := q.Page(context.Background(), token); return err })
	}
}

func TestTopAndPageSizes(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	all := make([]*tables.Entity, 1003)
	for i := range all {
		all[i] = harness.Row("p", fmt.Sprintf("%04d", i))
	}
	fill(t, table, all)
	q := table.Entities().Query().Partition("p")
	for _, c := range []struct {
		query tables.Query[tables.Entity]
		want  int
	}{
		{q, 1003}, {q.Top(0), 1003}, {q.Top(1), 1}, {q.Top(999), 999}, {q.Top(1000), 1000}, {q.Top(1001), 1001}, {q.Top(5000), 1003},
		{q.PageSize(1000), 1003}, {q.PageSize(0), 1003}, {q.PageSize(1).Top(3), 3}, {q.PageSize(400).Top(1001), 1001},
		{q.Where(slices.Repeat([]tables.Condition{tables.Ge("RowKey", "1000")}, 14)...), 3},
	} {
		if got := rows(t, c.query); len(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%d rows, want %d", len(got), c.want)
		}
	}
}
