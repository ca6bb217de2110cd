package patterns_test

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/patterns"
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

func compareValues(a, b patterns.Value) bool { return a == b }

// equal compares like ==, with times as instants and NaN equal to itself.
func equal(a, b any) string {
	return cmp.Diff(a, b, cmp.Comparer(compareValues), cmp.Comparer(func(a, b patterns.Meta) bool { return a.ETag == b.ETag }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b }),
		cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b }),
		cmp.Exporter(func(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[label]().PkgPath() }))
}

// stores fails unless v, as a field, is stored as want and read back equal; null is the absence of the property.
func stores[V any](t *testing.T, v V, want patterns.Value) {
	t.Helper()
	codec := must[*patterns.Codec[one[V]]](t)(patterns.NewCodec[one[V]]())
	in := one[V]{v}
	got := must[patterns.Properties](t)(codec.Encode(&in))
	if got.Get("V") != want || got.Has("V") == want.IsNull() {
		t.Errorf("%T %v is stored as %#v, want %#v", v, v, got.Get("V"), want)
		return
	}
	var out one[V]
	if err := codec.Decode(got, &out); err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	if d := equal(in, out); d != "" {
		t.Errorf("%T was read back as another:\n%s", v, d)
	}
}

func TestCodecTypes(t *testing.T) {
	stores(t, "text", patterns.String("text"))
	stores(t, "", patterns.String(""))
	stores(t, label("text"), patterns.String("text"))
	stores(t, []byte{0, 255}, patterns.Binary([]byte{0, 255}))
	stores(t, []byte{}, patterns.Binary(nil))
	stores(t, []byte(nil), patterns.Value{})
	stores(t, octets{1}, patterns.Binary([]byte{1}))
	stores(t, octets(nil), patterns.Value{})
	stores(t, true, patterns.Boolean(true))
	stores(t, toggle(false), patterns.Boolean(false))
	stores(t, int32(math.MinInt32), patterns.Int32(math.MinInt32))
	stores(t, int16(math.MaxInt16), patterns.Int32(math.MaxInt16))
	stores(t, tiny(math.MinInt8), patterns.Int32(math.MinInt8))
	stores(t, uint8(255), patterns.Int32(255))
	stores(t, short(65535), patterns.Int32(65535))
	stores(t, math.MinInt64, patterns.Int64(math.MinInt64))
	stores(t, long(math.MaxInt64), patterns.Int64(math.MaxInt64))
	stores(t, uint32(math.MaxUint32), patterns.Int64(math.MaxUint32))
	stores(t, uint(math.MaxInt64), patterns.Int64(math.MaxInt64))
	stores(t, huge(math.MaxInt64), patterns.Int64(math.MaxInt64))
	stores(t, 1.0, patterns.Double(1))
	stores(t, math.NaN(), patterns.Double(math.NaN()))
	stores(t, math.Inf(-1), patterns.Double(math.Inf(-1)))
	stores(t, math.Copysign(0, -1), patterns.Double(math.Copysign(0, -1)))
	stores(t, float32(0.1), patterns.Double(float64(float32(0.1))))
	stores(t, ratio(math.MaxFloat32), patterns.Double(math.MaxFloat32))
	stores(t, float32(math.Inf(1)), patterns.Double(math.Inf(1)))
	at := time.Date(2024, 5, 6, 12, 0, 0, 123456700, time.FixedZone("", 7200))
	stores(t, at, must[patterns.Value](t)(patterns.DateTime(at.UTC())))
	id := uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")
	stores(t, id, patterns.Guid(id))
	stores(t, uuid.UUID{}, patterns.Guid(uuid.UUID{}))
	stores(t, netip.MustParseAddr("2001:db8::1"), patterns.String("2001:db8::1"))
	stores(t, netip.Addr{}, patterns.String(""))
	stores(t, level(3), patterns.String("***"))
	stores(t, patterns.Int32(7), patterns.Int32(7))
	stores(t, patterns.Value{}, patterns.Value{})
}

func TestCodecPointers(t *testing.T) {
	at, id := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), uuid.New()
	stores(t, new("x"), patterns.String("x"))
	stores(t, (*string)(nil), patterns.Value{})
	stores(t, new(label("")), patterns.String(""))
	stores(t, new([]byte{1}), patterns.Binary([]byte{1}))
	stores(t, (*[]byte)(nil), patterns.Value{})
	stores(t, new(false), patterns.Boolean(false))
	stores(t, new(tiny(1)), patterns.Int32(1))
	stores(t, new(5), patterns.Int64(5))
	stores(t, (*int)(nil), patterns.Value{})
	stores(t, new(huge(5)), patterns.Int64(5))
	stores(t, new(2.5), patterns.Double(2.5))
	stores(t, &at, must[patterns.Value](t)(patterns.DateTime(at)))
	stores(t, (*time.Time)(nil), patterns.Value{})
	stores(t, &id, patterns.Guid(id))
	stores(t, new(netip.MustParseAddr("10.0.0.1")), patterns.String("10.0.0.1"))
	stores(t, (*netip.Addr)(nil), patterns.Value{})
	stores(t, new(level(2)), patterns.String("**"))
	stores(t, new(patterns.Boolean(true)), patterns.Boolean(true))
	stores(t, (*patterns.Value)(nil), patterns.Value{})
}

// encodeError is the error of a value that does not fit.
func encodeError[V any](t *testing.T, v V) string {
	t.Helper()
	codec := must[*patterns.Codec[one[V]]](t)(patterns.NewCodec[one[V]]())
	_, err := codec.Encode(&one[V]{v})
	wantKind(t, err, patterns.ErrInvalid)
	if !strings.Contains(err.Error(), "V") {
		t.Errorf("the error does not name the field: %v", err)
	}
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
	_, err := patterns.NewCodec[T]()
	if err == nil {
		t.Errorf("%s was accepted", reflect.TypeFor[T]())
		return
	}
	e := wantKind(t, err, patterns.ErrInvalid)
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
	codecError[one[error]](t, ".V", "error")
	codecError[one[**int]](t, ".V", "*int")
	codecError[one[map[string]patterns.Value]](t, ".V", "map")
	codecError[int](t, "int")
	codecError[string](t, "string")
	codecError[*patterns.Entity](t, "Entity")
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
		A map[string]patterns.Value `table:",rest"`
		B map[string]patterns.Value `table:",rest"`
	}](t, "B", "rest")
	codecError[struct {
		A string `table:"-,"`
		B chan int
	}](t, "B")
	codecError[struct{ *patterns.Meta }](t, "Meta")
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
	codec := must[*patterns.Codec[named]](t)(patterns.NewCodec[named]())
	in := named{Plain: "1", Tagged: "2", Options: "3", Both: "4", Left: "5", hidden: "6", Foreign: "7"}
	want := patterns.Properties{property("Plain", patterns.String("1")), property("Other", patterns.String("2")), property("Options", patterns.String("3")), property("Größe", patterns.String("4")), property("Foreign", patterns.String("7"))}
	got := must[patterns.Properties](t)(codec.Encode(&in))
	if d := equal(want, got); d != "" {
		t.Error(d)
	}
	names := []string{"Plain", "Other", "Options", "Größe", "Foreign"}
	if d := equal(names, codec.PropertyNames()); d != "" {
		t.Error(d)
	}
	out := named{Left: "kept", hidden: "kept"}
	if err := codec.Decode(append(got, property("Left", patterns.String("no")), property("hidden", patterns.String("no")), property("unknown", patterns.Int32(1))), &out); err != nil {
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
	codec := must[*patterns.Codec[omitting]](t)(patterns.NewCodec[omitting]())
	if got := must[patterns.Properties](t)(codec.Encode(&omitting{Bytes: []byte{}, List: []string{}})); len(got) != 0 {
		t.Errorf("the zero value is stored as %v", got)
	}
	in := omitting{"a", 1, []byte{1}, true, new(0), time.Unix(0, 0), new(time.Unix(1, 0)), uuid.Max, netip.IPv4Unspecified(), []string{"x"}, payload{Lines: []string{"y"}}}
	got := must[patterns.Properties](t)(codec.Encode(&in))
	if len(got) != reflect.TypeFor[omitting]().NumField() {
		t.Errorf("%d properties", len(got))
	}
	var out omitting
	if err := codec.Decode(got, &out); err != nil {
		t.Fatal(err)
	}
	if d := equal(in, out); d != "" {
		t.Error(d)
	}
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
	codec := must[*patterns.Codec[packed]](t)(patterns.NewCodec[packed]())
	in := packed{payload{[]string{"a\u2028", "</b>"}, map[string]int{"x": 1}}, []string{}, map[string]float64{"π": 3.14}, &payload{}, []any{"x", true, nil}, 2}
	for _, v := range []packed{in, {}} {
		got := must[patterns.Properties](t)(codec.Encode(&v))
		for _, p := range got {
			if p.Value.Type() != patterns.TypeString {
				t.Errorf("%s is stored as %s", p.Name, p.Value.Type())
			}
		}
		var out packed
		if err := codec.Decode(got, &out); err != nil {
			t.Fatal(err)
		}
		if d := equal(v, out); d != "" {
			t.Error(d)
		}
	}
	in.Any = make(chan int)
	_, err := codec.Encode(&in)
	if e := wantKind(t, err, patterns.ErrInvalid); !strings.Contains(e.Error(), "Any") {
		t.Error(e)
	}
}

// sample is one value of each type; what it holds must not be in an error.
func samples(t *testing.T) []patterns.Value {
	return []patterns.Value{patterns.String("s3cr3t"), patterns.Binary([]byte("s3cr3t")), patterns.Boolean(true), patterns.Int32(987654321), patterns.Int64(9876543219876),
		patterns.Double(98765.4321), must[patterns.Value](t)(patterns.DateTime(time.Date(9876, 5, 4, 3, 2, 1, 0, time.UTC))), patterns.Guid(uuid.MustParse("98765432-1987-4876-9432-1987654321ab"))}
}

// mismatches reads every type of property into a field, and expects an error from all but the accepted.
func mismatches[V any](t *testing.T, accepted ...patterns.Type) {
	t.Helper()
	codec := must[*patterns.Codec[one[V]]](t)(patterns.NewCodec[one[V]]())
	for _, v := range samples(t) {
		var out one[V]
		err := codec.Decode(patterns.Properties{property("V", v)}, &out)
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
		e := wantKind(t, err, patterns.ErrGarbled).Error()
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
	const str, bin, i32, i64, dbl = patterns.TypeString, patterns.TypeBinary, patterns.TypeInt32, patterns.TypeInt64, patterns.TypeDouble
	mismatches[string](t, str)
	mismatches[label](t, str)
	mismatches[*string](t, str)
	mismatches[[]byte](t, bin)
	mismatches[bool](t, patterns.TypeBoolean)
	mismatches[tiny](t)
	mismatches[uint16](t)
	mismatches[int32](t, i32)
	mismatches[uint32](t, i32)
	mismatches[int](t, i32, i64)
	mismatches[uint64](t, i32, i64)
	mismatches[*int64](t, i32, i64)
	mismatches[float64](t, i32, i64, dbl)
	mismatches[float32](t)
	mismatches[time.Time](t, patterns.TypeDateTime)
	mismatches[uuid.UUID](t, patterns.TypeGuid)
	mismatches[netip.Addr](t)
	mismatches[level](t)
	mismatches[patterns.Value](t, str, bin, patterns.TypeBoolean, i32, i64, dbl, patterns.TypeDateTime, patterns.TypeGuid)
	type packed struct {
		V payload `table:",json"`
	}
	codec := must[*patterns.Codec[packed]](t)(patterns.NewCodec[packed]())
	type texts struct {
		V []level `table:",json"`
	}
	inner := must[*patterns.Codec[texts]](t)(patterns.NewCodec[texts]())
	for _, text := range []string{"s3cr3t", `{"Lines":"s3cr3t"}`, `["s3cr3t"]`} {
		p := patterns.Properties{property("V", patterns.String(text))}
		for _, err := range []error{codec.Decode(p, &packed{}), inner.Decode(p, &texts{})} {
			if e := wantKind(t, err, patterns.ErrGarbled).Error(); strings.Contains(e, "s3cr3t") || !strings.Contains(e, "V") {
				t.Error(e)
			}
		}
	}
}

// TestCodecNarrowIntegers: an Int64 that another program wrote is read where it fits.
func TestCodecNarrowIntegers(t *testing.T) {
	codec := must[*patterns.Codec[one[int8]]](t)(patterns.NewCodec[one[int8]]())
	for n, fits := range map[int64]bool{127: true, 128: false, -128: true, -129: false, math.MaxInt64: false} {
		var out one[int8]
		if err := codec.Decode(patterns.Properties{property("V", patterns.Int64(n))}, &out); (err == nil) != fits {
			t.Errorf("%d: %v", n, err)
		}
	}
	unsigned := must[*patterns.Codec[one[uint64]]](t)(patterns.NewCodec[one[uint64]]())
	wantKind(t, unsigned.Decode(patterns.Properties{property("V", patterns.Int64(-1))}, new(one[uint64])), patterns.ErrGarbled)
	float := must[*patterns.Codec[one[float64]]](t)(patterns.NewCodec[one[float64]]())
	wantKind(t, float.Decode(patterns.Properties{property("V", patterns.Int64(1<<53+1))}, new(one[float64])), patterns.ErrGarbled)
}
