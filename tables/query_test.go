package tables_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// queried has a field of every type that conditions compare with.
type queried struct {
	tables.Meta
	PartitionKey string
	RowKey       string
	LastName     string
	Age          int32
	Salary       int64
	Rating       float64
	Hired        time.Time
	Badge        uuid.UUID
	Photo        []byte
	Active       bool
	Level        int
}

func queriedTable(t testing.TB, table *tables.Table) *tables.Rows[queried] {
	t.Helper()
	return assert.Must[*tables.Rows[queried]](t)(tables.RowsOf[queried](table))
}

// TestQueryClasses: the design guide's own examples, as raw filters and as built ones, have the guide's classes.
func TestQueryClasses(t *testing.T) {
	table := harness.InProcess(t, nil).Table("Contoso").Entities()
	q := table.Query
	for filter, want := range map[string]struct {
		class tables.QueryClass
		built tables.Query[tables.Entity]
	}{
		"(PartitionKey eq 'Sales') and (RowKey eq '2')":                                           {tables.PointQuery, q().Partition("Sales").Row("2")},
		"PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'":                             {tables.RangeQuery, q().Partition("Sales").Rows(compoundkey.Prefix("S").Span)},
		"PartitionKey eq 'Sales' and LastName eq 'Smith'":                                         {tables.PartitionScan, q().Partition("Sales").Where(tables.Eq("LastName", "Smith"))},
		"LastName eq 'Jones'":                                                                     {tables.TableScan, q().Where(tables.Eq("LastName", "Jones"))},
		"PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')":                        {tables.PartitionScan, q().Partition("Sales").Where(tables.Or(tables.Eq("RowKey", "121"), tables.Eq("RowKey", "322")))},
		"(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')":                                {tables.PointQuery, q().Where(tables.Eq("PartitionKey", "Sales"), tables.Eq("RowKey", "empid_000223"))},
		"(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')":           {tables.RangeQuery, q().Partition("Sales").Rows(compoundkey.Range("email_a", "email_b"))},
		"(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')": {tables.RangeQuery, q().Partition("Sales").Rows(compoundkey.Range("empid_000123", "empid_000124"))},
		"RowKey eq '2'":                              {tables.TableScan, q().Row("2")},
		"PartitionKey gt 'Sales'":                    {tables.TableScan, q().Where(tables.Gt("PartitionKey", "Sales"))},
		"PartitionKey eq 'a' or PartitionKey eq 'b'": {tables.TableScan, q().Where(tables.Or(tables.Eq("PartitionKey", "a"), tables.Eq("PartitionKey", "b")))},
		"not (PartitionKey eq 'a')":                  {tables.TableScan, q().Where(tables.Not(tables.Eq("PartitionKey", "a")))},
		"PartitionKey eq 'Sales'":                    {tables.PartitionScan, q().Partition("Sales")},
		"":                                           {tables.TableScan, q()},
	} {
		raw := assert.Must[tables.Plan](t)(tables.ClassifyFilter(filter))
		built := assert.Must[tables.Plan](t)(want.built.Plan())
		again := assert.Must[tables.Plan](t)(q().Filter(filter).Plan())
		if raw.Class != want.class || built.Class != want.class || again.Class != want.class || raw.Reason == "" {
			t.Errorf("%s: %v as a text (%s), %v built, %v in a query; want %v", filter, raw.Class, raw.Reason, built.Class, again.Class, want.class)
		}
		if raw.Filter != built.Filter || raw.Filter != again.Filter {
			t.Errorf("%s: sent as %q, %q and %q", filter, raw.Filter, built.Filter, again.Filter)
		}
		if strings.Contains(filter, "'121'") && !slices.Equal(raw.Keys, []tables.Key{{Partition: "Sales", Row: "121"}, {Partition: "Sales", Row: "322"}}) {
			t.Errorf("%s: keys %v", filter, raw.Keys)
		}
	}
}

func TestClassifyFilterRefuses(t *testing.T) {
	for filter, kind := range map[string]error{
		"PartitionKey eq":        tables.ErrInvalid,
		"PartitionKey == 'a'":    tables.ErrInvalid,
		"(A eq 1":                tables.ErrInvalid,
		"A eq 'x' and":           tables.ErrInvalid,
		"substringof('x', Name)": tables.ErrInvalid,
		strings.Repeat("A eq 1 or ", 15) + "A eq 2": tables.ErrTooLarge,
	} {
		harness.WantKind(t, assert.Err(tables.ClassifyFilter(filter)), kind)
	}
	assert.NoError(t, assert.Err(tables.ClassifyFilter(strings.Repeat("A eq 1 or ", 14)+"A eq 2")), "15 comparisons")
}

// TestQueryRefusesScan: nothing that sends a query reads a whole table unasked.
func TestQueryRefusesScan(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	fill(t, table, []*tables.Entity{harness.Bag("p", "a", "x"), harness.Bag("p", "b", "y")})
	bags := table.Entities()
	requests.Store(0)
	for _, q := range []tables.Query[tables.Entity]{bags.Query(), bags.Query().Row("a"), bags.Query().Where(tables.Eq("Text", "x")), bags.Query().Filter("PartitionKey gt 'o'")} {
		harness.WantKind(t, assert.Err(q.Page(ctx, "")), tables.ErrTableScan)
		_, err := q.First(ctx)
		harness.WantKind(t, err, tables.ErrTableScan)
		n := 0
		for _, err = range q.All(ctx) {
			n++
		}
		harness.WantKind(t, err, tables.ErrTableScan)
		if plan, err := q.Plan(); err != nil || plan.Class != tables.TableScan || n != 1 {
			t.Errorf("plan %v, %v, after %d turns", plan, err, n)
		}
	}
	assert.Equal(t, requests.Load(), 0, "requests")
	assert.Slices(t, rows(t, bags.Query().AllowTableScan()), []string{"a", "b"}, "allowed")
	assert.Slices(t, rows(t, bags.Query().Where(tables.Eq("Text", "y")).AllowTableScan()), []string{"b"}, "allowed")
}

// TestQueryTypedConditions: literals take the type of T's field, so that an int compares with what is stored.
func TestQueryTypedConditions(t *testing.T) {
	ctx := context.Background()
	table := queriedTable(t, harness.NewTable(t, harness.Account(t)))
	when := time.Date(2014, 8, 22, 0, 50, 32, 123456700, time.FixedZone("", 7200))
	badge := uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")
	w := &queried{PartitionKey: "Sales", RowKey: "1", LastName: "O'Brien", Age: 40, Salary: 1 << 40, Rating: 4, Hired: when, Badge: badge, Photo: []byte{0, 255}, Active: true, Level: 3}
	assert.Check(t, table.Insert(ctx, w))
	q := table.Query().Partition("Sales")
	for want, c := range map[string]tables.Condition{
		"Age eq 40":                              tables.Eq("Age", 40),
		"Age gt 39":                              tables.Gt("Age", int64(39)),
		"Salary ge 40L":                          tables.Ge("Salary", int32(40)),
		"Salary eq 1099511627776L":               tables.Eq("Salary", 1<<40),
		"Level eq 3L":                            tables.Eq("Level", uint8(3)),
		"Rating eq 4.0":                          tables.Eq("Rating", 4),
		"Rating lt 4.5":                          tables.Lt("Rating", 4.5),
		"LastName eq 'O''Brien'":                 tables.Eq("LastName", "O'Brien"),
		"Active eq true":                         tables.Eq("Active", true),
		"Photo eq X'00ff'":                       tables.Eq("Photo", []byte{0, 255}),
		"Badge eq guid'" + badge.String():        tables.Eq("Badge", badge),
		"datetime'2014-08-21T22:50:32.1234567Z'": tables.Eq("Hired", when),
		"Age ne 41":                              tables.And(tables.Ne("Age", 41), tables.Le("Age", 40)),
		"(Age eq 1 or Age eq 40)":                tables.Or(tables.Eq("Age", 1), tables.Eq("Age", 40)),
		"not":                                    tables.Not(tables.Eq("Age", 41)),
		"RowKey le '1'":                          tables.Le("RowKey", "1"),
		"Timestamp gt datetime'2001-01-01T00:00:00": tables.Gt("Timestamp", time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)),
	} {
		plan := assert.Must[tables.Plan](t)(q.Where(c).Plan())
		if !strings.Contains(plan.Filter, want) {
			t.Errorf("filter %s does not hold %s", plan.Filter, want)
		}
		n := 0
		for v, err := range q.Where(c).All(ctx) {
			assert.NoError(assert.Fatal(t), err, plan.Filter)
			if n++; v.LastName != "O'Brien" || v.ETag != w.ETag || v.RowKey != "1" || !v.Hired.Equal(when) {
				t.Errorf("%s: %+v", plan.Filter, v)
			}
		}
		assert.Equal(t, n, 1, "%s: found", plan.Filter)
	}
}

func TestQueryRefusesConditions(t *testing.T) {
	table := queriedTable(t, harness.InProcess(t, nil).Table("Contoso"))
	q := table.Query().Partition("Sales")
	for name, q := range map[string]tables.Query[queried]{
		"text for a number":     q.Where(tables.Eq("Age", "40")),
		"fraction for an int":   q.Where(tables.Eq("Age", 1.5)),
		"overflow":              q.Where(tables.Eq("Age", 1<<40)),
		"inexact double":        q.Where(tables.Eq("Rating", 1<<53+1)),
		"number for text":       q.Where(tables.Eq("LastName", 1)),
		"nil":                   q.Where(tables.Eq("Age", nil)),
		"nil pointer":           q.Where(tables.Eq("Age", (*int)(nil))),
		"struct":                q.Where(tables.Eq("Age", struct{}{})),
		"number for a key":      q.Where(tables.Eq("RowKey", 1)),
		"text for the time":     q.Where(tables.Eq("Timestamp", "now")),
		"no name":               q.Where(tables.Eq("", 1)),
		"a name with a space":   q.Where(tables.Eq("a b", 1)),
		"injection by name":     q.Where(tables.Eq("A eq 1 or B", 1)),
		"empty and":             q.Where(tables.And()),
		"empty or":              q.Where(tables.Or()),
		"filter":                q.Filter("A eq"),
		"selected by injection": q.Select("A,B"),
		"selected nothing":      q.Select(""),
		"selected no property":  q.Select("LastName", "Nmae"),
		"no property":           q.Where(tables.Or(tables.Eq("Age", 40), tables.Not(tables.Eq("Nmae", 1)))),
		"filter of no property": q.Filter("LastName eq 'x' or Nmae eq 1"),
		"page size":             q.PageSize(1001),
		"negative page size":    q.PageSize(-1),
		"negative top":          q.Top(-1),
		"partition key":         q.Partition("a/b"),
		"row key":               q.Row("a#b"),
		"span":                  q.Rows(compoundkey.Range("a/b", "c")),
	} {
		plan, err := q.Plan()
		if err == nil {
			t.Errorf("%s is accepted: %s", name, plan.Filter)
			continue
		}
		e := harness.WantKind(t, err, tables.ErrInvalid)
		assert.Equal(t, e.Table, "Contoso", "%s: %v", name, e)
		_, err = q.Page(context.Background(), "") // no transport: a request would panic
		harness.WantKind(t, err, tables.ErrInvalid)
	}
}

// TestQueryIsAValue: a query that was varied is not changed by it.
func TestQueryIsAValue(t *testing.T) {
	table := harness.InProcess(t, nil).Table("Contoso").Entities()
	base := table.Query().Partition("p").Where(tables.Eq("A", 1)).Filter("B eq 2").Select("A")
	before := assert.Must[tables.Plan](t)(base.Plan())
	one := base.Where(tables.Eq("C", 1)).Filter("D eq 1").Select("C")
	two := base.Where(tables.Eq("E", 1)).Filter("F eq 1").Select("E")
	if got := assert.Must[tables.Plan](t)(base.Plan()); got.Filter != before.Filter || !slices.Equal(got.Select, before.Select) {
		t.Errorf("%v became %v", before, got)
	}
	first, second := assert.Must[tables.Plan](t)(one.Plan()), assert.Must[tables.Plan](t)(two.Plan())
	if strings.Contains(first.Filter, "E eq") || strings.Contains(second.Filter, "C eq") || slices.Contains(first.Select, "E") {
		t.Errorf("%v and %v share", first, second)
	}
}

func TestQuerySelect(t *testing.T) {
	ctx := context.Background()
	base := harness.NewTable(t, harness.Account(t))
	w := &queried{PartitionKey: "Sales", RowKey: "1", LastName: "Jones", Age: 40, Hired: time.Unix(0, 0)}
	assert.Check(t, queriedTable(t, base).Insert(ctx, w))
	v := assert.Must[*queried](t)(queriedTable(t, base).Query().Partition("Sales").Row("1").Select("LastName").First(ctx))
	if v.LastName != "Jones" || v.Age != 0 || v.RowKey != "1" || v.ETag != w.ETag || v.Timestamp.IsZero() {
		t.Errorf("%+v", v)
	}
	type name struct {
		RowKey   string
		LastName string
		Missing  *string
	}
	names := assert.Must[*tables.Rows[name]](t)(tables.RowsOf[name](base))
	q := names.Query().Partition("Sales").Select("LastName", "Missing")
	assert.Slices(t, assert.Must[tables.Plan](t)(q.Plan()).Select, []string{"PartitionKey", "RowKey", "Timestamp", "LastName", "Missing"}, "Select")
	if n := assert.Must[*name](t)(q.First(ctx)); n.LastName != "Jones" || n.RowKey != "1" || n.Missing != nil {
		t.Errorf("%+v", n)
	}
	e := assert.Must[*tables.Entity](t)(base.Entities().Query().Partition("Sales").Select("Age").First(ctx))
	if !e.Properties.Has("Age") || e.Properties.Has("LastName") || e.ETag != w.ETag {
		t.Errorf("%+v", e)
	}
}

// TestQueryProjectionIsNotReplaced: what was not read would be removed.
func TestQueryProjectionIsNotReplaced(t *testing.T) {
	ctx := context.Background()
	base := harness.NewTable(t, harness.Account(t))
	table := queriedTable(t, base)
	assert.Check(t, table.Insert(ctx, &queried{PartitionKey: "Sales", RowKey: "1", LastName: "Jones", Age: 40, Hired: time.Unix(0, 0)}))
	v := assert.Must[*queried](t)(table.Query().Partition("Sales").Select("LastName", "Hired").First(ctx))
	harness.WantKind(t, table.Replace(ctx, v), tables.ErrInvalid)
	e := assert.Must[*tables.Entity](t)(base.Entities().Query().Partition("Sales").Select("LastName").First(ctx))
	harness.WantKind(t, assert.Err(table.Entity(v)), tables.ErrInvalid)
	for _, e := range []*tables.Entity{e, e.Clone()} {
		harness.WantKind(t, base.Entities().Replace(ctx, e), tables.ErrInvalid)
		x := base.NewTransaction()
		x.Replace(e)
		harness.WantKind(t, assert.Err(x.Commit(ctx)), tables.ErrInvalid)
	}
	e.Set("LastName", tables.String("Smith"))
	assert.Check(t, base.Entities().Merge(ctx, e))
	whole := assert.Must[*queried](t)(table.Get(ctx, tables.Key{Partition: "Sales", Row: "1"}))
	if whole.LastName != "Smith" || whole.Age != 40 {
		t.Errorf("%+v", whole)
	}
	assert.Check(t, table.Replace(ctx, whole))
}

func TestQueryFirst(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	fill(t, table, []*tables.Entity{harness.Bag("p", "a", "x"), harness.Bag("p", "b", "y")})
	bags := table.Entities()
	requests.Store(0)
	assert.Equal(t, assert.Must[*tables.Entity](t)(bags.Query().Partition("p").First(ctx)).Key.Row, "a", "first")
	for _, q := range []tables.Query[tables.Entity]{bags.Query().Partition("none"), bags.Query().Partition("p").Row("none"), bags.Query().Partition("p").Where(tables.Eq("Text", "z"))} {
		v, err := q.First(ctx)
		if e := harness.WantKind(t, err, tables.ErrNotFound); v != nil || e.Op != "First" || e.Table != table.Name() {
			t.Errorf("%v, %v", v, e)
		}
	}
	assert.Equal(t, requests.Load(), 4, "requests")
	// What cannot match is not asked for; a row outside of the span that was asked for cannot.
	harness.WantKind(t, assert.Err(bags.Query().Partition("p").Where(tables.Eq("PartitionKey", "q")).First(ctx)), tables.ErrNotFound)
	harness.WantKind(t, assert.Err(bags.Query().Partition("p").Row("b").Rows(compoundkey.Prefix("a").Span).First(ctx)), tables.ErrNotFound)
	if e, err := bags.Query().Partition("p").Row("b").Rows(compoundkey.Prefix("b").Span).First(ctx); err != nil || e.Key.Row != "b" {
		t.Error(err)
	}
	assert.Equal(t, requests.Load(), 5, "requests")
	var none *tables.Error
	if _, err := bags.Query().Partition("p").Row("none").Page(ctx, ""); errors.As(err, &none) {
		t.Errorf("an empty page is an error: %v", err)
	}
}
