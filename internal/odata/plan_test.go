package odata

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

func from(key string) Bound  { return Bound{Key: key, Inclusive: true, Set: true} }
func after(key string) Bound { return Bound{Key: key, Set: true} }

// The filters of the guide, and the classes it gives them.
func TestClassifyGuide(t *testing.T) {
	for text, want := range map[string]Plan{
		"(PartitionKey eq 'Sales') and (RowKey eq '2')": {
			Class: PointQuery, PartitionKey: "Sales", RowKey: "2", Exact: true},
		"(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')": {
			Class: PointQuery, PartitionKey: "Sales", RowKey: "empid_000223", Exact: true},
		"(PartitionKey eq 'Sales') and (RowKey eq 'email_jonesj@contoso.com')": {
			Class: PointQuery, PartitionKey: "Sales", RowKey: "email_jonesj@contoso.com", Exact: true},
		"(PartitionKey eq 'email_Sales') and (RowKey eq 'jonesj@contoso.com')": {
			Class: PointQuery, PartitionKey: "email_Sales", RowKey: "jonesj@contoso.com", Exact: true},
		"PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'": {
			Class: RangeQuery, PartitionKey: "Sales", RowFrom: from("S"), RowTo: after("T"), Exact: true},
		"(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')": {
			Class: RangeQuery, PartitionKey: "Sales", RowFrom: from("empid_000100"), RowTo: from("empid_000199"), Exact: true},
		"(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')": {
			Class: RangeQuery, PartitionKey: "Sales", RowFrom: from("email_a"), RowTo: after("email_b"), Exact: true},
		"(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')": {
			Class: RangeQuery, PartitionKey: "Sales", RowFrom: from("empid_000123"), RowTo: after("empid_000124"), Exact: true},
		"PartitionKey eq 'Sales' and LastName eq 'Smith'": {
			Class: PartitionScan, PartitionKey: "Sales"},
		"PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')": {
			Class: PartitionScan, PartitionKey: "Sales", Keys: []string{"121", "322"}},
		"LastName eq 'Jones'": {Class: TableScan},
	} {
		checkPlan(t, text, want)
	}
}

func TestClassifyInPartition(t *testing.T) {
	for text, want := range map[string]Plan{
		// A point with more conditions is still a point.
		"PartitionKey eq 'a' and Age gt 5 and RowKey eq 'b'": {Class: PointQuery, PartitionKey: "a", RowKey: "b"},
		"'a' eq PartitionKey and 'b' eq RowKey":              {Class: PointQuery, PartitionKey: "a", RowKey: "b", Exact: true},
		"PartitionKey eq '' and RowKey eq ''":                {Class: PointQuery, Exact: true},
		"PartitionKey eq 'a' and RowKey eq 'b' and RowKey ge 'a'": {
			Class: PointQuery, PartitionKey: "a", RowKey: "b", Exact: true},

		// Ranges: one side is enough; the tighter bound wins.
		"PartitionKey eq 'a' and RowKey ge 'x'": {Class: RangeQuery, PartitionKey: "a", RowFrom: from("x"), Exact: true},
		"PartitionKey eq 'a' and RowKey lt 'x'": {Class: RangeQuery, PartitionKey: "a", RowTo: after("x"), Exact: true},
		"PartitionKey eq 'a' and 'x' lt RowKey": {Class: RangeQuery, PartitionKey: "a", RowFrom: after("x"), Exact: true},
		"PartitionKey eq 'a' and RowKey ge 'x' and RowKey gt 'x' and RowKey ge 'w'": {
			Class: RangeQuery, PartitionKey: "a", RowFrom: after("x"), Exact: true},
		"PartitionKey eq 'a' and RowKey le 'x' and RowKey lt 'x' and RowKey le 'y'": {
			Class: RangeQuery, PartitionKey: "a", RowTo: after("x"), Exact: true},
		"PartitionKey eq 'a' and RowKey ge 'b' and (RowKey eq 'c' or Age eq 1)": {
			Class: RangeQuery, PartitionKey: "a", RowFrom: from("b")},
		"PartitionKey eq 'a' and RowKey ge 'b' and RowKey le 'b'": {
			Class: RangeQuery, PartitionKey: "a", RowFrom: from("b"), RowTo: from("b"), Exact: true},
	} {
		checkPlan(t, text, want)
	}
}

func TestClassifyPartitionScan(t *testing.T) {
	for text, want := range map[string]Plan{
		"PartitionKey eq 'a'":                                 {Class: PartitionScan, PartitionKey: "a", Exact: true},
		"PartitionKey eq 'a' and RowKey ne 'b'":               {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and not (RowKey eq 'b')":         {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and RowKey eq 5":                 {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and rowkey eq 'b'":               {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and (RowKey lt 'b' or Age eq 1)": {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c' or RowKey eq 'b')": {
			Class: PartitionScan, PartitionKey: "a", Keys: []string{"b", "c"}},
		"(PartitionKey eq 'a' and RowKey eq 'b') or (RowKey eq 'c' and PartitionKey eq 'a')": {
			Class: PartitionScan, PartitionKey: "a", Keys: []string{"b", "c"}},
		"PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c') and (RowKey eq 'c' or RowKey eq 'd')": {
			Class: PartitionScan, PartitionKey: "a", Keys: []string{"c"}},
		"PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c') and Age eq 1": {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and (RowKey eq 'b' or RowKey gt 'c')":              {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' and (RowKey eq 'b' or Age eq 1)":                   {Class: PartitionScan, PartitionKey: "a"},
		"PartitionKey eq 'a' or PartitionKey eq 'a' and RowKey eq 'b'":          {Class: PartitionScan, PartitionKey: "a"},
	} {
		checkPlan(t, text, want)
	}
}

func TestClassifyTableScan(t *testing.T) {
	for text, want := range map[string]Plan{
		"":                          {Class: TableScan, Exact: true},
		"RowKey eq 'a'":             {Class: TableScan},
		"PartitionKey ne 'a'":       {Class: TableScan},
		"PartitionKey eq 5":         {Class: TableScan},
		"not (PartitionKey eq 'a')": {Class: TableScan},
		"not (PartitionKey ne 'a')": {Class: TableScan},
		"PartitionKey eq 'a' or PartitionKey eq 'b'":                           {Class: TableScan},
		"PartitionKey eq 'a' or RowKey eq 'b'":                                 {Class: TableScan},
		"PartitionKey gt 'a'":                                                  {Class: TableScan, PartitionFrom: after("a"), Exact: true},
		"PartitionKey ge 'a' and PartitionKey lt 'b'":                          {Class: TableScan, PartitionFrom: from("a"), PartitionTo: after("b"), Exact: true},
		"PartitionKey ge 'a' and RowKey eq 'b'":                                {Class: TableScan, PartitionFrom: from("a")},
		"(PartitionKey eq 'a' or PartitionKey eq 'b') and PartitionKey eq 'a'": {Class: PartitionScan, PartitionKey: "a"},
		"true": {Class: TableScan, Exact: true},
	} {
		checkPlan(t, text, want)
	}
}

func TestClassifyContradictions(t *testing.T) {
	for text, want := range map[string]Plan{
		"false": {Class: TableScan, Empty: true},
		"PartitionKey eq 'a' and PartitionKey eq 'b'":             {Class: PartitionScan, PartitionKey: "a", Empty: true},
		"PartitionKey eq 'a' and RowKey eq 'b' and RowKey eq 'c'": {Class: PointQuery, PartitionKey: "a", RowKey: "b", Empty: true},
		"PartitionKey eq 'a' and RowKey eq 'b' and RowKey gt 'b'": {Class: PointQuery, PartitionKey: "a", RowKey: "b", Empty: true},
		"PartitionKey eq 'a' and PartitionKey lt 'a'":             {Class: PartitionScan, PartitionKey: "a", Empty: true},
		"PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'b'": {Class: RangeQuery, PartitionKey: "a", RowFrom: from("b"), RowTo: after("b"), Empty: true},
		"PartitionKey eq 'a' and RowKey lt ''":                    {Class: RangeQuery, PartitionKey: "a", RowTo: after(""), Empty: true},
		"PartitionKey eq 'a' and (false or RowKey lt '')":         {Class: PartitionScan, PartitionKey: "a", Empty: true},
		// UTF-16 order: the emoji's surrogates sort before U+E000.
		"PartitionKey eq 'a' and RowKey ge '\U0001F600' and RowKey lt '\uE000'": {
			Class: RangeQuery, PartitionKey: "a", RowFrom: from("\U0001F600"), RowTo: after("\uE000"), Exact: true},
	} {
		checkPlan(t, text, want)
	}
}

func checkPlan(t *testing.T, text string, want Plan) {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	got := Classify(e)
	if got.Reason == "" {
		t.Errorf("%q: no reason", text)
	}
	if got.Bounded() != (want.PartitionFrom.Set || want.PartitionTo.Set) {
		t.Errorf("%q: bounded %v", text, got.Bounded())
	}
	want.Reason = got.Reason
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q:\n got %+v\nwant %+v", text, got, want)
	}
}

func TestClassNames(t *testing.T) {
	for class, want := range map[Class]string{
		PointQuery: "point query", RangeQuery: "range query", PartitionScan: "partition scan", TableScan: "table scan",
	} {
		assert.Equal(t, class.String(), want, class)
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"", "Age eq 1", "PartitionKey gt 'secret'", "PartitionKey eq 'secret' or Age eq 1", "PartitionKey eq 'secret'",
		"PartitionKey eq 'secret' and RowKey gt 'secret'", "PartitionKey eq 'secret' and RowKey eq 'secret'",
		"PartitionKey eq 'secret' and (RowKey eq 'secret' or RowKey eq 'b')",
	} {
		e := assert.Must[Expr](t)(Parse(text))
		reason := Classify(e).Reason
		if other, twice := seen[reason]; twice {
			t.Errorf("%q and %q have one reason: %s", text, other, reason)
		}
		seen[reason] = text
	}
}

var planKeys = []string{"", "a", "b", "\U0001F600", "\uE000"}

// drawKeyLeaf draws mostly comparisons of keys, over so few values that trees often match.
func drawKeyLeaf(t *rapid.T) Expr {
	switch rapid.IntRange(0, 9).Draw(t, "leaf") {
	case 0:
		return Constant(rapid.Bool().Draw(t, "constant"))
	case 1:
		return Comparison{"Age", drawOp(t), edm.Int32(rapid.Int32Range(0, 1).Draw(t, "age"))}
	case 2:
		return Comparison{rapid.SampledFrom([]string{partitionKey, rowKey}).Draw(t, "key"), drawOp(t), edm.Int32(0)}
	case 3, 4, 5:
		return Comparison{partitionKey, drawKeyOp(t), edm.String(rapid.SampledFrom(planKeys).Draw(t, "partition"))}
	}
	return Comparison{rowKey, drawKeyOp(t), edm.String(rapid.SampledFrom(planKeys).Draw(t, "row"))}
}

// drawRows draws RowKeys joined mostly by or.
func drawRows(t *rapid.T) Expr {
	rows := drawTree(t, 2, func(t *rapid.T) Expr {
		return Comparison{rowKey, Eq, edm.String(rapid.SampledFrom(planKeys).Draw(t, "row"))}
	})
	return Or{eqText(rowKey, rapid.SampledFrom(planKeys).Draw(t, "first")), rows}
}

func drawKeyOp(t *rapid.T) Op {
	return rapid.SampledFrom([]Op{Eq, Eq, Eq, Eq, Ne, Gt, Ge, Lt, Le}).Draw(t, "op")
}

// For random filters and every entity of a small world: what matches lies where the plan says, and where the
// plan claims to say all, what lies there matches.
func TestClassifyIsSound(t *testing.T) {
	classes := map[string]int{}
	check := func(t *rapid.T) {
		e := drawTree(t, 3, drawKeyLeaf)
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0, 1:
			e = And{eqText(partitionKey, "a"), e}
		case 2:
			e = And{drawRows(t), eqText(partitionKey, "a")}
		case 3:
			e = Or{And{eqText(partitionKey, "a"), drawRows(t)}, And{drawRows(t), eqText(partitionKey, "a")}}
		}
		p := Classify(e)
		classes[fmt.Sprintf("%v exact=%v empty=%v keys=%v", p.Class, p.Exact, p.Empty, p.Keys != nil)]++
		for _, pk := range planKeys {
			for _, rk := range planKeys {
				for age := range int32(3) {
					checkSound(t, e, p, pk, rk, age)
				}
			}
		}
	}
	for range 60 { // rapid's hundred trees each; the classes below are rare among them
		rapid.Check(t, check)
	}
	for class := TableScan; class <= PointQuery; class++ {
		if name := fmt.Sprintf("%v exact=true empty=false keys=false", class); classes[name] == 0 {
			t.Errorf("no filter was a %s", name)
		}
	}
	if classes["partition scan exact=false empty=false keys=true"] == 0 {
		t.Error("no filter had keys")
	}
}

func checkSound(t *rapid.T, e Expr, p Plan, pk, rk string, age int32) {
	properties := map[string]edm.Value{partitionKey: edm.String(pk), rowKey: edm.String(rk)}
	if age < 2 {
		properties["Age"] = edm.Int32(age)
	}
	matches := Match(e, func(name string) edm.Value { return properties[name] })
	inside := planAdmits(p, pk, rk)
	switch {
	case matches && (!inside || p.Empty):
		t.Fatalf("%#v matches (%q, %q, %d) outside of %+v", e, pk, rk, age, p)
	case p.Exact && inside && !matches:
		t.Fatalf("%#v does not match (%q, %q, %d) inside of exact %+v", e, pk, rk, age, p)
	}
	if p.Keys != nil && matches != (pk == p.PartitionKey && contains(p.Keys, rk)) {
		t.Fatalf("%#v, (%q, %q): matches %v, but keys are %q", e, pk, rk, matches, p.Keys)
	}
}

// planAdmits reads a plan by its documentation, and compares keys by the service's own measure.
func planAdmits(p Plan, pk, rk string) bool {
	within := func(key string, lo, hi Bound) bool {
		value := edm.String(key)
		lower, upper := Comparison{"", Gt, edm.String(lo.Key)}, Comparison{"", Lt, edm.String(hi.Key)}
		if lo.Inclusive {
			lower.Op = Ge
		}
		if hi.Inclusive {
			upper.Op = Le
		}
		return (!lo.Set || lower.holds(value)) && (!hi.Set || upper.holds(value))
	}
	switch p.Class {
	case PointQuery:
		return pk == p.PartitionKey && rk == p.RowKey
	case RangeQuery:
		return pk == p.PartitionKey && within(rk, p.RowFrom, p.RowTo)
	case PartitionScan:
		return pk == p.PartitionKey
	}
	return within(pk, p.PartitionFrom, p.PartitionTo)
}

func contains(keys []string, key string) bool {
	for _, k := range keys {
		if k == key {
			return true
		}
	}
	return false
}
