package compoundkey

import (
	"bytes"
	"cmp"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// column is one part of a mixed schema: it draws values near each other, makes
// parts of them, and reads them back.
type column struct {
	draw    func(*rapid.T) (a, b, c any)
	part    func(any) Part
	compare func(a, b any) int
	target  func(*any) Target
}

func columnOf[V any](draw func(*rapid.T) (a, b, c V), part func(V) Part, compare func(a, b V) int, target func(*V) Target) column {
	return column{
		draw: func(t *rapid.T) (any, any, any) {
			a, b, c := draw(t)
			return a, b, c
		},
		part:    func(v any) Part { return part(v.(V)) },
		compare: func(a, b any) int { return sign(compare(a.(V), b.(V))) },
		target: func(into *any) Target {
			var v V
			t := target(&v)
			scan := t.scan
			t.scan = func(text string, store bool) string {
				rule := scan(text, store)
				if store {
					*into = v
				}
				return rule
			}
			return t
		},
	}
}

func columns() []column {
	blobs := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7F, 0xFF}), 0, 2)
	small := near(-999, 999, 0)
	text := columnOf(threeStrings, String, utf16Compare, ToString)
	return []column{
		text, text, text, // more often: it is what can go wrong
		columnOf(func(t *rapid.T) (a, b, c []byte) { return three(t, blobs) }, Bytes, bytes.Compare, ToBytes),
		columnOf(func(t *rapid.T) (a, b, c int64) { return three(t, small) },
			func(v int64) Part { return Int(v, 3) }, cmp.Compare[int64], func(v *int64) Target { return ToInt(v, 3) }),
		columnOf(func(t *rapid.T) (a, b, c uint64) { return three(t, anyUint()) },
			func(v uint64) Part { return Uint(v, 20) }, cmp.Compare[uint64], func(v *uint64) Target { return ToUint(v, 20) }),
		columnOf(threeTimes, Time, time.Time.Compare, ToTime),
		columnOf(threeTimes, TimeDesc, func(a, b time.Time) int { return b.Compare(a) }, ToTimeDesc),
		columnOf(func(t *rapid.T) (a, b, c uuid.UUID) { return three(t, anyUUID()) }, UUID,
			func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }, ToUUID),
	}
}

// row is the values of one key.
type row []any

func (r row) parts(schema []column) []Part {
	parts := make([]Part, len(r))
	for i, c := range schema {
		parts[i] = c.part(r[i])
	}
	return parts
}

// compareRows compares part by part, as far as n.
func compareRows(schema []column, a, b row, n int) int {
	for i, c := range schema[:n] {
		if order := c.compare(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

// drawRows draws a schema and three rows that often agree in leading parts.
func drawRows(t *rapid.T) (schema []column, a, b, c row) {
	all := columns()
	for range rapid.IntRange(1, 4).Draw(t, "columns") {
		column := rapid.SampledFrom(all).Draw(t, "column")
		schema = append(schema, column)
		x, y, z := column.draw(t)
		if rapid.Bool().Draw(t, "equal") {
			y, z = x, x
		}
		a, b, c = append(a, x), append(b, y), append(c, z)
	}
	return schema, a, b, c
}

// TestTupleLaws: whole keys sort as their rows do, part by part, whether or not
// some parts are made into one; they read back; spans follow the rows.
func TestTupleLaws(t *testing.T) {
	checkCases(t, cases, func(rt *rapid.T) {
		schema, a, b, c := drawRows(rt)
		n := len(schema)
		pa, pb, pc := a.parts(schema), b.parts(schema), c.parts(schema)
		x, y := Join("t", pa...), Join("t", pb...)
		if got, want := sign(utf16Compare(x, y)), compareRows(schema, a, b, n); got != want || Compare(x, y) != want || (x == y) != (want == 0) {
			rt.Fatalf("%v %v: %q %q are %d, want %d", a, b, x, y, got, want)
		}
		k := rapid.IntRange(1, n).Draw(rt, "tuple")
		if key := Join("t", append([]Part{Tuple(pa[:k]...)}, pa[k:]...)...); key != x {
			rt.Fatalf("with a tuple %q, without %q", key, x)
		}
		got := make(row, n)
		into := make([]Target, n)
		for i := range schema {
			into[i] = schema[i].target(&got[i])
		}
		if err := Parse(x, "t", into...); err != nil || compareRows(schema, got, a, n) != 0 {
			rt.Fatalf("%q reads as %v, %v; want %v", x, got, err, a)
		}
		checkTupleSpans(rt, schema, k, pa, pb, Join("t", pc...), [3]row{a, b, c})
	})
}

func checkTupleSpans(t *rapid.T, schema []column, k int, pa, pb []Part, key string, rows [3]row) {
	low, high := compareRows(schema, rows[0], rows[2], k), compareRows(schema, rows[2], rows[1], k)
	ta, tb := Tuple(pa[:k]...), Tuple(pb[:k]...)
	last := k - 1
	sameLead := compareRows(schema, rows[0], rows[2], last) == 0
	for _, s := range []struct {
		name string
		span Span
		want bool
	}{
		{"Starting", Starting("t", pa[:k]...), low == 0},
		{"Exactly", Exactly(ta).Under("t"), low == 0},
		{"Between", Between(ta, tb).Under("t"), low <= 0 && high < 0},
		{"Through", Through(ta, tb).Under("t"), low <= 0 && high <= 0},
		{"AtLeast", AtLeast(pa[last]).Under("t", pa[:last]...), sameLead && low <= 0},
		{"All", All().Under("t", pa[:last]...), sameLead},
		{"nested", Exactly(pa[last]).Under("", pa[:last]...).Under("t"), low == 0},
	} {
		checkBounds(t, s.span)
		if got := s.span.Contains(key); got != s.want {
			t.Fatalf("%s of %d parts %v: [%q, %q) contains %q: %v", s.name, k, rows, s.span.From(), s.span.To(), key, got)
		}
		if s.span.Empty() && s.want {
			t.Fatalf("%s [%q, %q) says it is empty", s.name, s.span.From(), s.span.To())
		}
	}
}

// TestSplitPieces: Split gives back the text of text parts.
func TestSplitPieces(t *testing.T) {
	checkCases(t, cases/10, func(rt *rapid.T) {
		a, b, c := threeStrings(rt)
		got, err := Split(Join("p", String(a), Int(12, 3), String(b), String(c)))
		if want := []string{"p", a, "012", b, c}; err != nil || !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %q, %v; want %q", got, err, want)
		}
	})
}
