package filter_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

var types = filter.Types{
	Declared: func(string) edm.Type { return edm.TypeNull },
	ValueOf: func(v any) (edm.Value, error) {
		if s, ok := v.(string); ok {
			return edm.String(s), nil
		}
		return edm.Int32(int32(v.(int))), nil
	},
}

// only returns a Filterable for rows with these properties.
func only(properties ...string) func(string) error {
	return func(name string) error {
		if !slices.Contains(properties, name) {
			return errors.New("the rows do not have it")
		}
		return nil
	}
}

// TestMarked: a mark makes up for conditions, but not for those on keys, which limit what the service reads.
func TestMarked(t *testing.T) {
	p := "p"
	compare := func(property string, op odata.Op, v any) filter.Term { return filter.Compare(op, property, v) }
	either := func(terms ...filter.Term) filter.Term { return filter.Join(terms, odata.AnyOf) }
	groups := filter.Join([]filter.Term{compare("PartitionKey", odata.Ge, "x"), compare("PartitionKey", odata.Lt, "x`"),
		either(compare("PartitionKey", odata.Eq, "x"), compare("PartitionKey", odata.Ge, "x_"))}, odata.AllOf)
	inGroups := "PartitionKey ge 'x' and PartitionKey lt 'x`' and (PartitionKey eq 'x' or PartitionKey ge 'x_')"
	old := compare("Age", odata.Gt, 40)
	for want, q := range map[string]filter.Query{
		"":                     {},
		"Age gt 40 or M gt ''": {Terms: []filter.Term{old}},
		"PartitionKey eq 'p'":  {Partition: &p},
		"PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'":                            {Partition: &p, Spans: []compoundkey.Span{compoundkey.Prefix("a").Span}},
		"PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b' and (Age gt 40 or M gt '')": {Partition: &p, Spans: []compoundkey.Span{compoundkey.Prefix("a").Span}, Terms: []filter.Term{old}},
		"PartitionKey eq 'p' and (Age gt 40 and (Age gt 40 or Name eq 'x') or M gt '')":      {Partition: &p, Terms: []filter.Term{old, either(old, compare("Name", odata.Eq, "x"))}},
		"PartitionKey eq 'p' and (Age gt 40 or Name eq 'x' or M gt '')":                      {Partition: &p, Terms: []filter.Term{either(old, compare("Name", odata.Eq, "x"))}},
		"PartitionKey eq 'p' and (not (Age gt 40) or M gt '')":                               {Partition: &p, Terms: []filter.Term{filter.Not(old)}},
		inGroups:                                 {Terms: []filter.Term{groups}},
		inGroups + " and (Age gt 40 or M gt '')": {Terms: []filter.Term{groups, old}},
		"PartitionKey eq 'q' and (A eq 1 or M gt '')": {Filters: []string{"PartitionKey eq 'q' and A eq 1"}},
		"PartitionKey eq 'q' and not (RowKey eq '2') and (A eq 1 and B eq true and (Age gt 40 or RowKey lt 'c') or M gt '')": {
			Filters: []string{"A eq 1 and (PartitionKey eq 'q' and B)", "(Age gt 40 or RowKey lt 'c') and not (RowKey eq '2')"}},
		"PartitionKey eq 'q' and (PartitionKey eq 'q' and A eq 1 or PartitionKey eq 'q' and A eq 2 or M gt '')": {
			Filters: []string{"(PartitionKey eq 'q' and A eq 1) or (PartitionKey eq 'q' and A eq 2)"}},
		"PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')": {Partition: &p, Filters: []string{"RowKey eq 'a' or RowKey eq 'b'"}},
		"false": {Filters: []string{"false"}},
	} {
		q.Marked, q.Filterable = "M", only("Age", "Name", "A", "B")
		expr, err := q.Expr(types)
		text, failed := odata.Append(nil, expr)
		if err != nil || failed != nil {
			t.Errorf("%s: %v, %v", want, err, failed)
			continue
		}
		assert.Equal(t, string(text), want, text)
		if again, err := odata.Parse(string(text)); want != "" && (err != nil || again != expr) {
			t.Errorf("%s is read as another filter: %v", text, err)
		}
	}
	for _, name := range []string{"M", "C"} {
		if _, err := (filter.Query{Marked: "M", Filterable: only("Age"), Terms: []filter.Term{compare(name, odata.Eq, 1)}}).Expr(types); err == nil {
			t.Errorf("a condition on %s, which the rows do not hold", name)
		}
	}
}

// TestMarkedFinds: for any conditions, the filter finds a row without the mark if and only if it meets them, each row that would meet
// them with other properties if it is marked, and is of the same class.
func TestMarkedFinds(t *testing.T) {
	names := []string{"PartitionKey", "RowKey", "A", "B"}
	texts := rapid.SampledFrom([]string{"a", "b", "c"})
	var tree func(t *rapid.T, depth int) odata.Expr
	tree = func(t *rapid.T, depth int) odata.Expr {
		switch n := rapid.IntRange(0, 9).Draw(t, "node"); {
		case depth > 0 && n < 3:
			return odata.And{Left: tree(t, depth-1), Right: tree(t, depth-1)}
		case depth > 0 && n < 6:
			return odata.Or{Left: tree(t, depth-1), Right: tree(t, depth-1)}
		case depth > 0 && n == 6:
			return odata.Not{X: tree(t, depth-1)}
		}
		return odata.Comparison{Property: rapid.SampledFrom(names).Draw(t, "name"), Op: odata.Op(rapid.IntRange(0, 5).Draw(t, "op")), Value: edm.String(texts.Draw(t, "value"))}
	}
	rapid.Check(t, func(t *rapid.T) {
		var q filter.Query
		for range rapid.IntRange(0, 3).Draw(t, "filters") {
			text := assert.Must[[]byte](t)(odata.Append(nil, tree(t, 3)))
			q.Filters = append(q.Filters, string(text))
		}
		plain, _ := q.Expr(types)
		q.Marked = "M"
		marked, err := q.Expr(types)
		conditions, _ := q.Conditions(types)
		if err != nil || conditions != plain {
			t.Fatal(err, conditions, plain)
		}
		row := map[string]edm.Value{}
		for _, name := range names {
			row[name] = edm.String(texts.Draw(t, "of the row"))
		}
		get := func(name string) edm.Value { return row[name] }
		meets := odata.Match(plain, get)
		if odata.Match(marked, get) != meets {
			t.Fatalf("%v: a row without a mark: %v, want %v", row, !meets, meets)
		}
		row["M"] = edm.String("change")
		row["A"], row["B"] = edm.String(texts.Draw(t, "old")), edm.Value{}
		if meets && !odata.Match(marked, get) {
			t.Fatalf("%v: a marked row is not found", row)
		}
		// A filter that nothing matches may be sent for the sake of marked rows.
		p, m := odata.Classify(plain), odata.Classify(marked)
		p.Reason, m.Reason = "", ""
		if m.Class != p.Class || m.PartitionKey != p.PartitionKey || m.RowKey != p.RowKey || m.Exact != p.Exact || !slices.Equal(m.Keys, p.Keys) {
			t.Fatalf("%+v, want %+v", m, p)
		}
	})
}
