package widentities

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

func anyValue(t *rapid.T) tables.Value {
	switch rapid.IntRange(0, 8).Draw(t, "type") {
	case 0:
		return tables.Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case 1:
		return tables.Boolean(rapid.Bool().Draw(t, "bool"))
	case 2:
		return tables.Int32(rapid.Int32().Draw(t, "int32"))
	case 3:
		return tables.Int64(rapid.Int64().Draw(t, "int64"))
	case 4:
		return tables.Double(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), 3, 1e300})).Draw(t, "double"))
	case 5:
		ticks := time.Duration(rapid.Int64Range(0, math.MaxInt64/100).Draw(t, "ticks")) * 100
		v := assert.Must[tables.Value](t)(tables.DateTime(time.Unix(0, 0).Add(ticks)))
		return v
	case 6:
		return tables.GUID(uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid")))
	case 7:
		return tables.String(strings.Repeat(rapid.SampledFrom([]string{"x", "é", "🙂", "\\\"", "\n", ":s3:"}).Draw(t, "char"), rapid.IntRange(0, 200_000).Draw(t, "length")))
	}
	return tables.String(rapid.String().Draw(t, "text"))
}

func sorted(p tables.Properties) tables.Properties {
	p = slices.Clone(p)
	slices.SortFunc(p, func(a, b tables.Property) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// TestSplitAndJoin: what is split and joined is what it was, rows are within the limits, and any choice of properties is in the
// rows that hold them.
func TestSplitAndJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLayout(&Options{FirstRow: []string{"P3", "P7"}})
		var p tables.Properties
		for i := range rapid.IntRange(0, 1_000).Draw(t, "few") {
			p = append(p, tables.Property{Name: fmt.Sprintf("P%d", i), Value: tables.Int32(int32(i))})
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "any") {
			p.Set(fmt.Sprintf("P%d", i), anyValue(t))
		}
		laid, err := l.split(p)
		if err != nil {
			if tables.ErrTooLarge == kindOf(err) {
				return // P3 or P7 is larger than a property of a row
			}
			t.Fatal(err)
		}
		again, err := l.split(slices.Clone(p))
		if err != nil || again.Directory != laid.Directory {
			t.Fatalf("laid out in another way: %v", err)
		}
		further := map[int]tables.Properties{}
		for i, row := range laid.Further {
			size := edm.KeySize(strings.Repeat("p", 512), strings.Repeat("r", 512)) + 32*1024
			for _, piece := range row.Properties {
				if overlong(piece.Value) {
					t.Fatalf("%s of row %d is overlong", piece.Name, i)
				}
				size += edm.PropertySize(piece.Name, edm.Value(piece.Value))
			}
			if size > edm.MaxEntitySize {
				t.Fatalf("row %d is of %d bytes", i, size)
			}
			further[i] = row.Properties
		}
		if laid.Directory == "" {
			return
		}
		joined, err := l.join(laid.Directory, slices.Clone(laid.First), further)
		if err != nil || !slices.Equal(sorted(joined), sorted(p)) {
			t.Fatalf("%d properties became %d: %v", len(p), len(joined), err)
		}
		checkChoice(t, l, laid, p, further)
	})
}

// checkChoice joins only the rows of some properties.
func checkChoice(t *rapid.T, l *layout, laid *driver.LaidOut, p tables.Properties, further map[int]tables.Properties) {
	var names []string
	for range 3 {
		names = append(names, p[rapid.IntRange(0, len(p)-1).Draw(t, "chosen")].Name)
	}
	rows := assert.Must[[]int](t)(l.rows(laid.Directory, names))
	chosen := map[int]tables.Properties{}
	for _, i := range rows {
		chosen[i] = further[i]
	}
	part := assert.Must[tables.Properties](t)(l.join(laid.Directory, slices.Clone(laid.First), chosen))
	for _, name := range names {
		assert.Equal(assert.Fatal(t), part.Get(name), p.Get(name), "%s is not in rows %v", name, rows)
	}
}

func kindOf(err error) error {
	if e, ok := err.(*tables.Error); ok {
		return e.Kind
	}
	return nil
}

// TestMixedVersionsAreSeen: a row that is not of the directory's version, is cut or is missing is never joined.
func TestMixedVersionsAreSeen(t *testing.T) {
	l := newLayout(nil)
	old, next := numbers(1_000), numbers(1_000)
	next[400].Value = tables.Int32(-1)
	was, is := must(l.split(old)), must(l.split(next))
	different := 0
	for i := range is.Further {
		if is.Further[i].Version == was.Further[i].Version {
			continue
		}
		different++
		rows := map[int]tables.Properties{}
		for j := range is.Further {
			rows[j] = is.Further[j].Properties
		}
		rows[i] = was.Further[i].Properties
		for name, row := range map[string]tables.Properties{"old": was.Further[i].Properties, "none": nil, "cut": rows[i][:0]} {
			rows[i] = row
			assert.Error(t, assert.Err(l.join(is.Directory, nil, rows)), "a row that is %s was joined", name)
		}
	}
	assert.Equal(t, different, 1, "changed rows of %d", len(is.Further))
}

func numbers(n int) tables.Properties {
	p := make(tables.Properties, n)
	for i := range p {
		p[i] = tables.Property{Name: fmt.Sprintf("Number%05d", i), Value: tables.Int32(int32(i))}
	}
	return p
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestChangesStayLocal counts the rows that change with one property, for a value of another size and for one more property.
func TestChangesStayLocal(t *testing.T) {
	l := newLayout(nil)
	base := numbers(20_000)
	rows := versions(must(l.split(base)))
	changed, trials := 0, 0
	for i := 7; i < len(base); i += 997 {
		for _, v := range []tables.Value{tables.Int32(-7), tables.String(strings.Repeat("x", 500))} {
			next := slices.Clone(base)
			next[i].Value = v
			changed += fresh(rows, versions(must(l.split(next))))
			trials++
		}
		more := append(slices.Clone(base), tables.Property{Name: fmt.Sprintf("Number%05dB", i), Value: tables.Int32(1)})
		changed += fresh(rows, versions(must(l.split(more))))
		trials++
	}
	if changed < trials || changed > trials*3/2 {
		t.Errorf("%d changes of one property changed %d rows of %d", trials, changed, len(rows))
	}
}

func versions(laid *driver.LaidOut) map[string]bool {
	all := map[string]bool{}
	for _, row := range laid.Further {
		all[row.Version] = true
	}
	return all
}

func fresh(before, after map[string]bool) (n int) {
	for version := range after {
		if !before[version] {
			n++
		}
	}
	return n
}

func FuzzRecord(f *testing.F) {
	for _, seed := range []string{"LastName:s5:Jones", "Age:i2:34", "N:d3:NaN", "N:l19:9223372036854775807", "B:b4:AAA=", "T:t4:true", "M:m20:2014-08-22T00:50:32Z", ":s:", "A:s99:x", "A:s-1:x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, rest, err := readRecord(text)
		if err != nil || !utf8.ValidString(text) || edm.CheckName(p.Name) != nil {
			return
		}
		written, err := appendRecord(nil, &p)
		assert.NoError(assert.Fatal(t), err, "%q was read and cannot be written", text)
		again, none, err := readRecord(string(written))
		if err != nil || none != "" || again != p {
			t.Fatalf("%q became %q, %v (%q)", text, written, err, rest)
		}
	})
}

func FuzzDirectory(f *testing.F) {
	f.Add(must(newLayout(nil).split(numbers(1_000))).Directory)
	f.Add("1 aaaaaaaa " + strings.Repeat("a", versionLength) + goesOn)
	f.Add("2 x")
	f.Fuzz(func(t *testing.T, directory string) {
		l := newLayout(nil)
		all, err := l.rows(directory, nil)
		if err != nil {
			return
		}
		some, err := l.rows(directory, []string{"A", "Number00007"})
		if err != nil || len(some) > len(all) {
			t.Fatalf("%d rows of %d: %v", len(some), len(all), err)
		}
	})
}

// TestGolden pins the stored form: entities are read by later versions of this package.
func TestGolden(t *testing.T) {
	p := numbers(300)
	p.Set("Name", tables.String("Jones: é🙂"))
	p.Set("Photo", tables.Binary([]byte{0, 255}))
	p.Set("Share", tables.Double(0.5))
	p.Set("Whole", tables.Double(3))
	p.Set("Odd", tables.Double(math.Inf(-1)))
	p.Set("Big", tables.Int64(1<<62))
	p.Set("Guest", tables.Boolean(true))
	p.Set("ID", tables.GUID(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")))
	p.Set("Since", must(tables.DateTime(time.Date(2014, 8, 22, 0, 50, 32, 100, time.UTC))))
	p.Set("Long", tables.String(strings.Repeat("y", 500_000)))
	laid := must(newLayout(&Options{FirstRow: []string{"Name"}}).split(p))
	var b strings.Builder
	fmt.Fprintln(&b, laid.Directory)
	for _, row := range laid.Further {
		for _, piece := range row.Properties {
			text, _ := piece.Value.Text()
			fmt.Fprintf(&b, "%s %s\n", piece.Name, strings.ReplaceAll(text, strings.Repeat("y", 1_000), "<1000 y>"))
		}
	}
	golden := filepath.Join("testdata", "golden_v1.txt")
	want := assert.Must[[]byte](t)(os.ReadFile(golden))
	assert.Equal(t, b.String(), string(want), "the stored form has changed")
	assert.Check(t, assert.Err(newLayout(nil).join(laid.Directory, nil, map[int]tables.Properties{0: laid.Further[0].Properties})))
}
