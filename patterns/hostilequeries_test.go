package patterns_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// rows runs a query and lists the row keys it finds.
func rows(t testing.TB, q patterns.Query[patterns.Entity]) []string {
	t.Helper()
	found := []string{}
	for e, err := range q.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e.Key.Row)
	}
	return found
}

// fill inserts rows of one partition, in transactions.
func fill(t testing.TB, table *patterns.Table, entities []*patterns.Entity) {
	t.Helper()
	for chunk := range slices.Chunk(entities, patterns.MaxTransactionOperations) {
		x := table.NewTransaction()
		for _, e := range chunk {
			x.Insert(e)
		}
		if _, err := x.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// hostileLiterals are values of one property each, and the same in the service's filter language.
func hostileLiterals(t testing.TB) map[string][]struct {
	value   patterns.Value
	literal string
} {
	date := func(text string) patterns.Value {
		return must[patterns.Value](t)(patterns.DateTime(must[time.Time](t)(time.Parse(time.RFC3339Nano, text))))
	}
	type pair = struct {
		value   patterns.Value
		literal string
	}
	return map[string][]pair{
		"Text": {
			{patterns.String("O'Brien"), "'O''Brien'"}, {patterns.String("'"), "''''"}, {patterns.String("''"), "''''''"}, {patterns.String(""), "''"},
			{patterns.String("a' or 'a' eq 'a"), "'a'' or ''a'' eq ''a'"}, {patterns.String("x eq 5"), "'x eq 5'"}, {patterns.String("50% + & = # ? / \\"), `'50% + & = # ? / \'`},
			{patterns.String("ü😀日"), "'ü😀日'"}, {patterns.String("5"), "'5'"}, {patterns.String("(("), "'(('"}, {patterns.String(`"`), `'"'`},
		},
		"Id": {
			{patterns.Guid(uuid.UUID{}), "guid'00000000-0000-0000-0000-000000000000'"},
			{patterns.Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")), "guid'c9da6455-213d-42c9-9a79-3e9149a57833'"},
		},
		"At": {
			{date("2024-05-06T07:08:09.1234567Z"), "datetime'2024-05-06T07:08:09.1234567Z'"}, {date("2024-05-06T09:08:09+02:00"), "datetime'2024-05-06T07:08:09Z'"},
			{date("1601-01-01T00:00:00Z"), "datetime'1601-01-01T00:00:00Z'"}, {date("9999-12-31T23:59:59.9999999Z"), "datetime'9999-12-31T23:59:59.9999999Z'"},
		},
		"Photo": {{patterns.Binary([]byte{0, 1, 255}), "X'0001ff'"}, {patterns.Binary([]byte("'")), "X'27'"}},
		"Long": {
			{patterns.Int64(math.MaxInt64), "9223372036854775807L"}, {patterns.Int64(1<<53 + 1), "9007199254740993L"}, {patterns.Int64(-5), "-5L"}, {patterns.Int64(5), "5L"},
		},
		"Small": {{patterns.Int32(5), "5"}, {patterns.Int32(math.MinInt32), "-2147483648"}, {patterns.Int32(0), "0"}},
		"Double": {
			{patterns.Double(3), "3.0"}, {patterns.Double(0.5), "0.5"}, {patterns.Double(1e300), "1e300"}, {patterns.Double(1.5e-7), "1.5E-7"}, {patterns.Double(-2.25), "-2.25"}, {patterns.Double(1e21), "1e+21"},
			{patterns.Double(math.MaxFloat64), "1.7976931348623157e308"}, {patterns.Double(math.SmallestNonzeroFloat64), "5e-324"},
		},
		"Good": {{patterns.Boolean(true), "true"}, {patterns.Boolean(false), "false"}},
	}
}

func TestHostileFiltersFindExactlyTheirRows(t *testing.T) {
	table := newTable(t, account(t))
	bags := table.Entities()
	var all []*patterns.Entity
	literals := hostileLiterals(t)
	for name, values := range literals {
		for i, v := range values {
			all = append(all, entity("p", fmt.Sprintf("%s %d", name, i), property(name, v.value)))
		}
	}
	fill(t, table, all)
	for name, values := range literals {
		for i, v := range values {
			want := []string{fmt.Sprintf("%s %d", name, i)}
			for what, q := range map[string]patterns.Query[patterns.Entity]{
				"Where":  bags.Query().Partition("p").Where(patterns.Eq(name, v.value)),
				"Filter": bags.Query().Partition("p").Filter(name + " eq " + v.literal),
				"both":   bags.Query().Where(patterns.Eq("PartitionKey", "p"), patterns.Eq(name, v.value)).Filter("(" + name + " eq " + v.literal + ")"),
				"range":  bags.Query().Partition("p").Where(patterns.Eq("RowKey", want[0]), patterns.Eq(name, v.value)),
			} {
				plan := must[patterns.Plan](t)(q.Plan())
				if got := rows(t, q); !slices.Equal(got, want) {
					t.Errorf("%s %s, sent as %q, found %q, want %q", what, name, plan.Filter, got, want)
				}
			}
		}
	}
}

func TestQuotesInKeyFilters(t *testing.T) {
	table := newTable(t, account(t))
	bags := table.Entities()
	keys := []string{"'", "''", "O'Brien", "x' or PartitionKey ne 'x", "%27", "+", " ", "&", "a,b"}
	for _, key := range keys {
		roundTrip(t, table, entity(key, key))
	}
	for _, key := range keys {
		for what, q := range map[string]patterns.Query[patterns.Entity]{
			"Partition": bags.Query().Partition(key),
			"Where":     bags.Query().Where(patterns.Eq("PartitionKey", key)),
			"Row":       bags.Query().Row(key).AllowTableScan(),
			"Rows":      bags.Query().Partition(key).Where(patterns.Ge("RowKey", key), patterns.Le("RowKey", key)),
			"Filter":    bags.Query().Filter("PartitionKey eq '" + strings.ReplaceAll(key, "'", "''") + "'"),
		} {
			if got := rows(t, q); !slices.Equal(got, []string{key}) {
				t.Errorf("%s of %q found %q", what, key, got)
			}
		}
	}
}

func TestHostileQueriesAreRefused(t *testing.T) {
	a, requests := counted(t)
	bags := newTable(t, a).Entities()
	q := bags.Query().Partition("p")
	conditions := func(n int) []patterns.Condition {
		c := make([]patterns.Condition, n)
		for i := range c {
			c[i] = patterns.Eq("A", i)
		}
		return c
	}
	type keyed struct{ Fn func() }
	invalid := patterns.ErrInvalid
	for _, c := range []struct {
		what  string
		kind  error
		query patterns.Query[patterns.Entity]
	}{
		{"16 comparisons", patterns.ErrTooLarge, q.Where(conditions(15)...)},
		{"16 comparisons in an or", patterns.ErrTooLarge, q.Where(patterns.Or(conditions(15)...))},
		{"16 comparisons in a filter", patterns.ErrTooLarge, q.Filter(strings.TrimSuffix(strings.Repeat("A eq 1 and ", 15), " and "))},
		{"a page of 1,001", invalid, q.PageSize(1001)}, {"a page of -1", invalid, q.PageSize(-1)}, {"a top of -1", invalid, q.Top(-1)},
		{"a table scan", patterns.ErrTableScan, bags.Query()}, {"a table scan by Ge", patterns.ErrTableScan, bags.Query().Row("r")},
		{"NaN", invalid, q.Where(patterns.Eq("A", math.NaN()))}, {"infinity", invalid, q.Where(patterns.Gt("A", math.Inf(1)))},
		{"nil", invalid, q.Where(patterns.Eq("A", nil))}, {"null", invalid, q.Where(patterns.Eq("A", patterns.Value{}))}, {"a nil pointer", invalid, q.Where(patterns.Eq("A", (*string)(nil)))},
		{"a function", invalid, q.Where(patterns.Eq("A", func() {}))}, {"a struct", invalid, q.Where(patterns.Eq("A", keyed{}))}, {"a channel", invalid, q.Where(patterns.Eq("A", make(chan int)))},
		{"a large uint64", invalid, q.Where(patterns.Eq("A", uint64(math.MaxInt64)+1))}, {"invalid UTF-8", invalid, q.Where(patterns.Eq("A", "\xff"))},
		{"a nanosecond", invalid, q.Where(patterns.Eq("A", time.Unix(0, 1)))}, {"the zero time", invalid, q.Where(patterns.Eq("A", time.Time{}))},
		{"a key that is no text", invalid, q.Where(patterns.Eq("RowKey", 5))}, {"a Timestamp that is no time", invalid, q.Where(patterns.Eq("Timestamp", "x"))},
		{"a property that is no name", invalid, q.Where(patterns.Eq("a b", 5))}, {"a filter in a name", invalid, q.Where(patterns.Eq("A eq 1 or B", 5))}, {"no name", invalid, q.Where(patterns.Eq("", 5))},
		{"an empty And", invalid, q.Where(patterns.And())}, {"an empty Or", invalid, q.Where(patterns.Or())}, {"a condition of nothing", invalid, q.Where(patterns.Condition{})},
		{"half a filter", invalid, q.Filter("A eq")}, {"an open quote", invalid, q.Filter("A eq 'x")}, {"an open parenthesis", invalid, q.Filter("((A eq 1)")}, {"nonsense", invalid, q.Filter("; drop table")},
		{"invalid UTF-8 in a filter", invalid, q.Filter("A eq '\xff'")}, {"a deep filter", invalid, q.Filter(strings.Repeat("(", 1<<20) + "A eq 1")},
		{"selecting two names as one", invalid, q.Select("A,B")}, {"selecting nothing", invalid, q.Select("")}, {"selecting a query", invalid, q.Select("A&$filter=x")},
	} {
		refused(t, requests, c.kind, c.what, func() error { _, err := c.query.Page(context.Background(), ""); return err })
		refused(t, requests, c.kind, c.what+" by All", func() error {
			for _, err := range c.query.All(context.Background()) {
				return err
			}
			return nil
		})
	}
	for _, token := range []string{"x", "%", strings.Repeat("A", 1000), "eyJ2IjoxfQ", "bnVsbA", "eyJ2Ijo5fQ"} {
		refused(t, requests, invalid, "token "+token[:1], func() error { _, err := q.Page(context.Background(), token); return err })
	}
}

func TestTopAndPageSizes(t *testing.T) {
	table := newTable(t, account(t))
	all := make([]*patterns.Entity, 1003)
	for i := range all {
		all[i] = entity("p", fmt.Sprintf("%04d", i))
	}
	fill(t, table, all)
	q := table.Entities().Query().Partition("p")
	for _, c := range []struct {
		query patterns.Query[patterns.Entity]
		want  int
	}{
		{q, 1003}, {q.Top(0), 1003}, {q.Top(1), 1}, {q.Top(999), 999}, {q.Top(1000), 1000}, {q.Top(1001), 1001}, {q.Top(5000), 1003},
		{q.PageSize(1000), 1003}, {q.PageSize(0), 1003}, {q.PageSize(1).Top(3), 3}, {q.PageSize(400).Top(1001), 1001},
		{q.Where(slices.Repeat([]patterns.Condition{patterns.Ge("RowKey", "1000")}, 14)...), 3},
	} {
		if got := rows(t, c.query); len(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%d rows, want %d", len(got), c.want)
		}
	}
}
