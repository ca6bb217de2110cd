package tables_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

type (
	label  string
	octets []byte
	toggle bool
	tiny   int8
	short  uint16
	long   int64
	huge   uint64
	ratio  float32
	level  int // marshals itself

	stamp    time.Time
	identity uuid.UUID

	payload struct {
		Lines []string
		Sum   map[string]int
	}
)

func (l level) MarshalText() ([]byte, error) {
	if l < 0 {
		return nil, fmt.Errorf("a level of %d", int(l))
	}
	return []byte(strings.Repeat("*", int(l))), nil
}

func (l *level) UnmarshalText(text []byte) error {
	if strings.Trim(string(text), "*") != "" {
		return fmt.Errorf("%q is no level", text)
	}
	*l = level(len(text))
	return nil
}

// one is a struct of one field of any type.
type one[V any] struct{ V V }

func compareValues(a, b tables.Value) bool { return a == b }

// equal compares like ==, with times as instants and NaN equal to itself.
func equal(a, b any) string {
	return cmp.Diff(a, b, cmp.Comparer(compareValues), cmp.Comparer(func(a, b tables.Meta) bool { return a.ETag == b.ETag }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b }),
		cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b }),
		cmp.Exporter(func(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[label]().PkgPath() }))
}

// stores fails unless v, as a field, is stored as want and read back equal; null is the absence of the property.
func stores[V any](t *testing.T, v V, want tables.Value) {
	t.Helper()
	codec := assert.Must[*tables.Codec[one[V]]](t)(tables.NewCodec[one[V]]())
	in := one[V]{v}
	got := assert.Must[tables.Properties](t)(codec.Encode(&in))
	if got.Get("V") != want || got.Has("V") == want.IsNull() {
		t.Errorf("%T %v is stored as %#v, want %#v", v, v, got.Get("V"), want)
		return
	}
	var out one[V]
	if err := codec.Decode(got, &out); err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	assert.NoDiff(t, equal(in, out), "%T was read back as another", v)
}

func TestCodecTypes(t *testing.T) {
	stores(t, "text", tables.String("text"))
	stores(t, "", tables.String(""))
	stores(t, label("text"), tables.String("text"))
	stores(t, []byte{0, 255}, tables.Binary([]byte{0, 255}))
	stores(t, []byte{}, tables.Binary(nil))
	stores(t, []byte(nil), tables.Value{})
	stores(t, octets{1}, tables.Binary([]byte{1}))
	stores(t, octets(nil), tables.Value{})
	stores(t, true, tables.Boolean(true))
	stores(t, toggle(false), tables.Boolean(false))
	stores(t, int32(math.MinInt32), tables.Int32(math.MinInt32))
	stores(t, int16(math.MaxInt16), tables.Int32(math.MaxInt16))
	stores(t, tiny(math.MinInt8), tables.Int32(math.MinInt8))
	stores(t, uint8(255), tables.Int32(255))
	stores(t, short(65535), tables.Int32(65535))
	stores(t, math.MinInt64, tables.Int64(math.MinInt64))
	stores(t, long(math.MaxInt64), tables.Int64(math.MaxInt64))
	stores(t, uint32(math.MaxUint32), tables.Int64(math.MaxUint32))
	stores(t, uint(math.MaxInt64), tables.Int64(math.MaxInt64))
	stores(t, huge(math.MaxInt64), tables.Int64(math.MaxInt64))
	stores(t, 1.0, tables.Double(1))
	stores(t, math.NaN(), tables.Double(math.NaN()))
	stores(t, math.Inf(-1), tables.Double(math.Inf(-1)))
	stores(t, math.Copysign(0, -1), tables.Double(math.Copysign(0, -1)))
	stores(t, float32(0.1), tables.Double(float64(float32(0.1))))
	stores(t, ratio(math.MaxFloat32), tables.Double(math.MaxFloat32))
	stores(t, float32(math.Inf(1)), tables.Double(math.Inf(1)))
	at := time.Date(2024, 5, 6, 12, 0, 0, 123456700, time.FixedZone("", 7200))
	stores(t, at, assert.Must[tables.Value](t)(tables.DateTime(at.UTC())))
	id := uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")
	stores(t, id, tables.GUID(id))
	stores(t, uuid.UUID{}, tables.GUID(uuid.UUID{}))
	stores(t, netip.MustParseAddr("2001:db8::1"), tables.String("2001:db8::1"))
	stores(t, netip.Addr{}, tables.String(""))
	stores(t, level(3), tables.String("***"))
	stores(t, tables.Int32(7), tables.Int32(7))
	stores(t, tables.Value{}, tables.Value{})
}

func TestCodecPointers(t *testing.T) {
	at, id := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), uuid.New()
	stores(t, new("x"), tables.String("x"))
	stores(t, (*string)(nil), tables.Value{})
	stores(t, new(label("")), tables.String(""))
	stores(t, new([]byte{1}), tables.Binary([]byte{1}))
	stores(t, (*[]byte)(nil), tables.Value{})
	stores(t, new(false), tables.Boolean(false))
	stores(t, new(tiny(1)), tables.Int32(1))
	stores(t, new(5), tables.Int64(5))
	stores(t, (*int)(nil), tables.Value{})
	stores(t, new(huge(5)), tables.Int64(5))
	stores(t, new(2.5), tables.Double(2.5))
	stores(t, &at, assert.Must[tables.Value](t)(tables.DateTime(at)))
	stores(t, (*time.Time)(nil), tables.Value{})
	stores(t, &id, tables.GUID(id))
	stores(t, new(netip.MustParseAddr("10.0.0.1")), tables.String("10.0.0.1"))
	stores(t, (*netip.Addr)(nil), tables.Value{})
	stores(t, new(level(2)), tables.String("**"))
	stores(t, new(tables.Boolean(true)), tables.Boolean(true))
	stores(t, (*tables.Value)(nil), tables.Value{})
}

// encodeError is the error of a value that does not fit.
func encodeError[V any](t *testing.T, v V) string {
	t.Helper()
	codec := assert.Must[*tables.Codec[one[V]]](t)(tables.NewCodec[one[V]]())
	_, err := codec.Encode(&one[V]{v})
	harness.WantKind(t, err, tables.ErrInvalid)
	assert.Contains(t, err.Error(), "V", "the error does not name the field")
	return err.Error()
}

func TestCodecRefusesWhatDoesNotFit(t *testing.T) {
	for _, text := range []string{
		encodeError(t, uint64(math.MaxInt64)+1), encodeError(t, uint(math.MaxUint64)), encodeError(t, new(huge(math.MaxUint64))),
		encodeError(t, time.Time{}), encodeError(t, new(time.Time)), encodeError(t, time.Unix(0, 1)), encodeError(t, time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)),
		encodeError(t, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), encodeError(t, level(-1)),
	} {
		if strings.Contains(text, "18446744073709551615") {
			t.Errorf("the error holds the value: %s", text)
		}
	}
}

func codecError[T any](t *testing.T, mentions ...string) {
	t.Helper()
	_, err := tables.NewCodec[T]()
	if err == nil {
		t.Errorf("%s was accepted", reflect.TypeFor[T]())
		return
	}
	e := harness.WantKind(t, err, tables.ErrWiring)
	for _, text := range mentions {
		if !strings.Contains(e.Error(), text) {
			t.Errorf("error %q does not mention %q", e, text)
		}
	}
}

func TestCodecRefusesTypes(t *testing.T) {
	codecError[one[chan int]](t, ".V", "chan int")
	codecError[one[func()]](t, ".V", "func()")
	codecError[one[map[string]int]](t, ".V", "map[string]int", "json")
	codecError[one[payload]](t, ".V", "payload", "json")
	codecError[one[*payload]](t, ".V", "payload")
	codecError[one[[]string]](t, ".V", "[]string")
	codecError[one[[3]int]](t, ".V", "[3]int")
	codecError[one[[16]byte]](t, ".V", "[16]uint8")
	codecError[one[stamp]](t, ".V", "stamp")
	codecError[one[identity]](t, ".V", "identity")
	codecError[one[complex128]](t, ".V", "complex128")
	codecError[one[uintptr]](t, ".V", "uintptr")
	codecError[one[any]](t, ".V", "interface")
	codecError[one[sql.NullString]](t, ".V", "NullString", "json")
	codecError[one[sql.Null[int]]](t, ".V", "Null", "json")
	codecError[one[error]](t, ".V", "error")
	codecError[one[**int]](t, ".V", "*int")
	codecError[one[map[string]tables.Value]](t, ".V", "map")
	codecError[int](t, "int")
	codecError[string](t, "string")
	codecError[*tables.Entity](t, "Entity")
	codecError[map[string]any](t, "map")
	codecError[any](t, "interface")

	codecError[struct{ PartitionKey int }](t, "PartitionKey")
	codecError[struct{ RowKey []byte }](t, "RowKey")
	codecError[struct{ Timestamp string }](t, "Timestamp")
	codecError[struct {
		A string `table:"PartitionKey"`
		B string `table:"PartitionKey"`
	}](t, "B", "PartitionKey")
	codecError[struct {
		A string `table:"X"`
		B string `table:"X"`
	}](t, "B", "X")
	codecError[struct {
		A string
		B string `table:"A"`
	}](t, "B", "A")
	codecError[struct {
		A string `table:",omitemty"`
	}](t, "A", "omitemty")
	codecError[struct {
		A string `table:"a-b"`
	}](t, "a-b")
	codecError[struct {
		A string `table:"_tpWrite"`
	}](t, "_tp")
	codecError[struct {
		A map[string]string `table:",rest"`
	}](t, "A", "rest")
	codecError[struct {
		A map[string]tables.Value `table:",rest"`
		B map[string]tables.Value `table:",rest"`
	}](t, "B", "rest")
	codecError[struct {
		A string `table:"-,"`
		B chan int
	}](t, "B")
	codecError[struct{ *tables.Meta }](t, "Meta")
}

// TestMetaHasNoJSON: the JSON of an entity has only its own fields, in both directions.
func TestMetaHasNoJSON(t *testing.T) {
	type row struct {
		tables.Meta
		Name string
	}
	v := row{Meta: tables.Meta{ETag: `W/"1"`, Timestamp: time.Unix(1, 0), Lossy: true}, Name: "x"}
	assert.Equal(t, string(assert.Must[[]byte](t)(json.Marshal(&v))), `{"Name":"x"}`, "JSON")
	assert.Check(t, json.Unmarshal([]byte(`{"ETag":"W/\"2\"","Timestamp":"2026-01-01T00:00:00Z","Lossy":false,"Meta":{"ETag":"3"},"Name":"y"}`), &v))
	if v.ETag != `W/"1"` || !v.Lossy || v.Timestamp.Unix() != 1 || v.Name != "y" {
		t.Errorf("%+v", v)
	}
}

func TestCodecNames(t *testing.T) {
	type named struct {
		Plain   string
		Tagged  string   `table:"Other"`
		Options string   `table:",omitempty"`
		Both    string   `table:"Größe,omitempty"`
		Left    string   `table:"-"`
		Chan    chan int `table:"-"`
		hidden  string
		Foreign string `json:"foreign"`
	}
	codec := assert.Must[*tables.Codec[named]](t)(tables.NewCodec[named]())
	in := named{Plain: "1", Tagged: "2", Options: "3", Both: "4", Left: "5", hidden: "6", Foreign: "7"}
	want := tables.Properties{property("Plain", tables.String("1")), property("Other", tables.String("2")), property("Options", tables.String("3")), property("Größe", tables.String("4")), property("Foreign", tables.String("7"))}
	got := assert.Must[tables.Properties](t)(codec.Encode(&in))
	assert.NoDiff(t, equal(want, got))
	names := []string{"Plain", "Other", "Options", "Größe", "Foreign"}
	assert.NoDiff(t, equal(names, codec.PropertyNames()))
	out := named{Left: "kept", hidden: "kept"}
	if err := codec.Decode(append(got, property("Left", tables.String("no")), property("hidden", tables.String("no")), property("unknown", tables.Int32(1))), &out); err != nil {
		t.Fatal(err)
	}
	if out.Left != "kept" || out.hidden != "kept" || out.Foreign != "7" {
		t.Errorf("%+v", out)
	}
}

func TestCodecOmits(t *testing.T) {
	type omitting struct {
		Text   string     `table:",omitempty"`
		Number int        `table:",omitempty"`
		Bytes  []byte     `table:",omitempty"`
		Flag   bool       `table:",omitempty"`
		Ptr    *int       `table:",omitempty"`
		At     time.Time  `table:",omitzero"`
		AtPtr  *time.Time `table:",omitzero"`
		ID     uuid.UUID  `table:",omitzero"`
		Addr   netip.Addr `table:",omitzero"`
		List   []string   `table:",json,omitempty"`
		Map    payload    `table:",json,omitzero"`
	}
	codec := assert.Must[*tables.Codec[omitting]](t)(tables.NewCodec[omitting]())
	assert.Len(t, assert.Must[tables.Properties](t)(codec.Encode(&omitting{Bytes: []byte{}, List: []string{}})), 0, "the zero value, stored")
	in := omitting{"a", 1, []byte{1}, true, new(0), time.Unix(0, 0), new(time.Unix(1, 0)), uuid.Max, netip.IPv4Unspecified(), []string{"x"}, payload{Lines: []string{"y"}}}
	got := assert.Must[tables.Properties](t)(codec.Encode(&in))
	assert.Equal(t, len(got), reflect.TypeFor[omitting]().NumField(), "properties")
	var out omitting
	assert.Check(t, codec.Decode(got, &out))
	assert.NoDiff(t, equal(in, out))
}

func TestCodecJSON(t *testing.T) {
	type packed struct {
		Address payload            `table:"Address,json"`
		Tags    []string           `table:",json"`
		Sums    map[string]float64 `table:",json"`
		Next    *payload           `table:",json"`
		Any     any                `table:",json"`
		Level   level              `table:",json"`
	}
	codec := assert.Must[*tables.Codec[packed]](t)(tables.NewCodec[packed]())
	in := packed{payload{[]string{"a\u2028", "</b>"}, map[string]int{"x": 1}}, []string{}, map[string]float64{"π": 3.14}, &payload{}, []any{"x", true, nil}, 2}
	for _, v := range []packed{in, {}} {
		got := assert.Must[tables.Properties](t)(codec.Encode(&v))
		for _, p := range got {
			assert.Equal(t, p.Value.Type(), tables.TypeString, "the stored type of %s", p.Name)
		}
		var out packed
		assert.Check(t, codec.Decode(got, &out))
		assert.NoDiff(t, equal(v, out))
	}
	in.Any = make(chan int)
	_, err := codec.Encode(&in)
	assert.Contains(t, harness.WantKind(t, err, tables.ErrInvalid).Error(), "Any")
}

// sample is one value of each type; what it holds must not be in an error.
func samples(t *testing.T) []tables.Value {
	return []tables.Value{tables.String("s3cr3t"), tables.Binary([]byte("s3cr3t")), tables.Boolean(true), tables.Int32(987654321), tables.Int64(9876543219876),
		tables.Double(98765.4321), assert.Must[tables.Value](t)(tables.DateTime(time.Date(9876, 5, 4, 3, 2, 1, 0, time.UTC))), tables.GUID(uuid.MustParse("98765432-1987-4876-9432-1987654321ab"))}
}

// mismatches reads every type of property into a field, and expects an error from all but the accepted.
func mismatches[V any](t *testing.T, accepted ...tables.Type) {
	t.Helper()
	codec := assert.Must[*tables.Codec[one[V]]](t)(tables.NewCodec[one[V]]())
	for _, v := range samples(t) {
		var out one[V]
		err := codec.Decode(tables.Properties{property("V", v)}, &out)
		fits := false
		for _, typ := range accepted {
			fits = fits || typ == v.Type()
		}
		if fits != (err == nil) {
			t.Errorf("%s into %T: %v", v.Type(), out.V, err)
		}
		if err == nil {
			continue
		}
		e := harness.WantKind(t, err, tables.ErrGarbled).Error()
		if !strings.Contains(e, "V") || !strings.Contains(e, v.Type().String()) || !strings.Contains(e, strings.TrimPrefix(reflect.TypeFor[V]().String(), "*")) {
			t.Errorf("the error does not name property and types: %s", e)
		}
		for _, secret := range []string{"s3cr3t", "98765", "9876", "czNjcjN0"} {
			if strings.Contains(e, secret) {
				t.Errorf("the error holds the value: %s", e)
			}
		}
	}
}

func TestCodecMismatches(t *testing.T) {
	const str, bin, i32, i64, dbl = tables.TypeString, tables.TypeBinary, tables.TypeInt32, tables.TypeInt64, tables.TypeDouble
	mismatches[string](t, str)
	mismatches[label](t, str)
	mismatches[*string](t, str)
	mismatches[[]byte](t, bin)
	mismatches[bool](t, tables.TypeBoolean)
	mismatches[tiny](t)
	mismatches[uint16](t)
	mismatches[int32](t, i32)
	mismatches[uint32](t, i32)
	mismatches[int](t, i32, i64)
	mismatches[uint64](t, i32, i64)
	mismatches[*int64](t, i32, i64)
	mismatches[float64](t, i32, i64, dbl)
	mismatches[float32](t)
	mismatches[time.Time](t, tables.TypeDateTime)
	mismatches[uuid.UUID](t, tables.TypeGUID)
	mismatches[netip.Addr](t)
	mismatches[level](t)
	mismatches[tables.Value](t, str, bin, tables.TypeBoolean, i32, i64, dbl, tables.TypeDateTime, tables.TypeGUID)
	type packed struct {
		V payload `table:",json"`
	}
	codec := assert.Must[*tables.Codec[packed]](t)(tables.NewCodec[packed]())
	type texts struct {
		V []level `table:",json"`
	}
	inner := assert.Must[*tables.Codec[texts]](t)(tables.NewCodec[texts]())
	for _, text := range []string{"s3cr3t", `{"Lines":"s3cr3t"}`, `["s3cr3t"]`} {
		p := tables.Properties{property("V", tables.String(text))}
		for _, err := range []error{codec.Decode(p, &packed{}), inner.Decode(p, &texts{})} {
			if e := harness.WantKind(t, err, tables.ErrGarbled).Error(); strings.Contains(e, "s3cr3t") || !strings.Contains(e, "V") {
				t.Error(e)
			}
		}
	}
}

// TestCodecNarrowIntegers: an Int64 that another program wrote is read where it fits.
func TestCodecNarrowIntegers(t *testing.T) {
	codec := assert.Must[*tables.Codec[one[int8]]](t)(tables.NewCodec[one[int8]]())
	for n, fits := range map[int64]bool{127: true, 128: false, -128: true, -129: false, math.MaxInt64: false} {
		var out one[int8]
		if err := codec.Decode(tables.Properties{property("V", tables.Int64(n))}, &out); (err == nil) != fits {
			t.Errorf("%d: %v", n, err)
		}
	}
	unsigned := assert.Must[*tables.Codec[one[uint64]]](t)(tables.NewCodec[one[uint64]]())
	harness.WantKind(t, unsigned.Decode(tables.Properties{property("V", tables.Int64(-1))}, new(one[uint64])), tables.ErrGarbled)
	float := assert.Must[*tables.Codec[one[float64]]](t)(tables.NewCodec[one[float64]]())
	harness.WantKind(t, float.Decode(tables.Properties{property("V", tables.Int64(1<<53+1))}, new(one[float64])), tables.ErrGarbled)
}
