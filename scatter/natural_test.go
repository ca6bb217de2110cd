package scatter_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func natural(department string, employee int) compoundkey.Part {
	return compoundkey.Tuple(compoundkey.String(department), compoundkey.Int(employee, 6))
}

func naturals(t testing.TB, s *storagetest.Service, options *scatter.Options) *scatter.Natural[access] {
	t.Helper()
	table := assert.Must[*tables.Account](t)(account(s)).Table(newTable(t, s))
	return assert.Must[*scatter.Natural[access]](t)(scatter.NewNatural(table, scatter.NaturalSchema[access]{
		Name: "access", Prefix: "access",
		Partition: func(a *access) compoundkey.Part { return natural(a.Department, a.Employee) },
		Row:       (*access).row,
	}, options))
}

// TestNatural: one employee's events are one query, those of many come merged.
func TestNatural(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	meter := assert.Must[*scatter.Meter](t)(scatter.NewMeter(&scatter.MeterOptions{Now: func() time.Time { return now }})) // all writes are of one second
	n := naturals(t, storagetest.Open(t), &scatter.Options{Meter: meter})
	start := time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)
	for i := range 30 {
		assert.Check(t, n.Insert(ctx, &access{Department: "Sales", Employee: i % 3, At: start.Add(time.Duration(i) * time.Minute), ID: i}))
	}
	read := func(span compoundkey.Span, o *scatter.ReadOptions, employees ...int) (ids []int) {
		t.Helper()
		var keys []compoundkey.Part
		for _, e := range employees {
			keys = append(keys, natural("Sales", e))
		}
		for a, err := range n.Range(ctx, keys, span, o) {
			assert.Check(t, err)
			ids = append(ids, a.ID)
		}
		return ids
	}
	assert.Slices(t, read(compoundkey.All(), nil, 1), []int{1, 4, 7, 10, 13, 16, 19, 22, 25, 28}, "of one employee")
	if got := read(compoundkey.AtLeast(compoundkey.Time(start.Add(5*time.Minute))).Span, &scatter.ReadOptions{Limit: 4}, 2, 0, 0); !slices.Equal(got, []int{5, 6, 8, 9}) {
		t.Errorf("of two employees: %v", got)
	}
	last := &access{Department: "Sales", Employee: 2, At: start.Add(29 * time.Minute), ID: 29}
	found := assert.Must[*access](t)(n.Update(ctx, natural("Sales", 2), last.row(), func(a *access) error { a.Resource = "printer"; return nil }))
	if again := assert.Must[*access](t)(n.Get(ctx, natural("Sales", 2), last.row())); again.Resource != "printer" || again.ETag != found.ETag {
		t.Errorf("read again: %+v", again)
	}
	assert.Check(t, n.Delete(ctx, found))
	assert.Equal(t, len(read(compoundkey.All(), nil, 0, 1, 2)), 29, "left")
	if loads := meter.Loads(); len(loads) != 3 || loads[0].Total != 12 || loads[0].Partition != "access_Sales!_000002" {
		t.Errorf("written: %+v", loads)
	}
}

func TestNaturalRefuses(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	n := naturals(t, s, nil)
	table := n.Repository().Table()
	row, part := (*access).row, func(*access) compoundkey.Part { return compoundkey.Bool(true) }
	for name, schema := range map[string]scatter.NaturalSchema[access]{
		"no name":      {Prefix: "a", Partition: part, Row: row},
		"no prefix":    {Name: "a", Partition: part, Row: row},
		"no partition": {Name: "a", Prefix: "a", Row: row},
		"no row":       {Name: "a", Prefix: "a", Partition: part},
		"a bad name":   {Name: "a_b", Prefix: "a", Partition: part, Row: row},
	} {
		assert.ErrorIs(t, assert.Err(scatter.NewNatural(table, schema, nil)), tables.ErrWiring, name)
	}
	other := assert.Must[*scatter.Natural[access]](t)(scatter.NewNatural(table, scatter.NaturalSchema[access]{Name: "a", Prefix: "other", Partition: part, Row: row}, nil))
	harness.WantKind(t, other.Insert(ctx, &access{}), tables.ErrInvalid)
	harness.WantKind(t, n.Insert(ctx, &access{Department: "Sales", Employee: 1_000_000, At: time.Now().Truncate(time.Second)}), tables.ErrInvalid)
	for _, c := range []struct {
		keys int
		span compoundkey.Span
		kind error
	}{{scatter.MaxPartitions + 1, compoundkey.All(), tables.ErrTooLarge}, {1, compoundkey.Exactly(compoundkey.Int(5, 0)).Span, tables.ErrInvalid}} {
		var last error
		for _, last = range n.Range(ctx, make([]compoundkey.Part, c.keys), c.span, nil) {
		}
		harness.WantKind(t, last, c.kind)
	}
	assert.Equal(t, fmt.Sprint(n.Key(natural("Sales", 1), "r")), "{access_Sales!_000001 r}", "key")
}
