package tables_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// echo is a service that keeps one row as it was sent, and gives it back as an entity or as a page.
func echo() harness.Transport {
	var stored string
	return func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodGet {
			body, err := io.ReadAll(req.Body)
			stored = string(body)
			return harness.Reply(req, http.StatusNoContent, "", "ETag", garbledETag), err
		}
		row := `{"odata.metadata":"x","odata.etag":"W/\"datetime'2024-05-06T07%3A08%3A09.1234567Z'\"",` + stored[1:]
		if strings.HasSuffix(req.URL.Path, "()") {
			row = `{"value":[` + row + "," + row + `]}`
		}
		return harness.Reply(req, http.StatusOK, row, "Content-Type", "application/json"), nil
	}
}

// drawTime draws what can be stored.
func drawTime(t *rapid.T, label string) time.Time {
	seconds := rapid.Int64Range(time.Date(1601, 1, 2, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, label)
	zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, label+" zone"))
	return time.Unix(seconds, 100*rapid.Int64Range(0, 9_999_999).Draw(t, label+" ticks")).In(zone)
}

func drawGUID(t *rapid.T, label string) uuid.UUID {
	return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
}

// drawFloat draws any bits: rapid's own floats leave out NaN, of which there are many.
func drawFloat(t *rapid.T, label string) float64 {
	if rapid.Bool().Draw(t, label+" is ordinary") {
		return rapid.Float64().Draw(t, label)
	}
	return math.Float64frombits(rapid.Uint64().Draw(t, label))
}

func drawValue(t *rapid.T, label string) tables.Value {
	switch rapid.IntRange(0, 7).Draw(t, label+" type") {
	case 0:
		return tables.String(rapid.String().Draw(t, label))
	case 1:
		return tables.Binary(rapid.SliceOf(rapid.Byte()).Draw(t, label))
	case 2:
		return tables.Boolean(rapid.Bool().Draw(t, label))
	case 3:
		return tables.Int32(rapid.Int32().Draw(t, label))
	case 4:
		return tables.Int64(rapid.Int64().Draw(t, label))
	case 5:
		return tables.Double(drawFloat(t, label))
	case 6:
		v := assert.Must[tables.Value](t)(tables.DateTime(drawTime(t, label)))
		return v
	}
	return tables.GUID(drawGUID(t, label))
}

func drawKey(t *rapid.T, label string) string {
	key := rapid.StringN(0, 100, 400).Draw(t, label)
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7F && r <= 0x9F || strings.ContainsRune(`/\#?`, r) {
			return '_'
		}
		return r
	}, key)
}

func TestBagsRoundTripProperty(t *testing.T) {
	ctx := context.Background()
	bags := harness.InProcess(t, echo()).Table("Employees").Entities()
	rapid.Check(t, func(t *rapid.T) {
		e := harness.Row(drawKey(t, "partition"), drawKey(t, "row"))
		for i := range rapid.IntRange(0, 20).Draw(t, "properties") {
			name := rapid.StringMatching(`[A-Za-z_äß日][A-Za-z0-9_é]{0,20}`).Draw(t, "name")
			e.Set(fmt.Sprintf("%s%d", name, i), drawValue(t, name))
		}
		assert.Check(t, bags.Upsert(ctx, e))
		got := assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key))
		page, err := bags.Query().Partition(e.Key.Partition).Page(ctx, "")
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%d items, %v", len(page.Items), err)
		}
		for _, got := range append(page.Items, got) {
			if got.Key != e.Key || len(got.Properties) != len(e.Properties) {
				t.Fatalf("%+v was read back as %+v", e, got)
			}
			for i, p := range e.Properties {
				if got.Properties[i] != p {
					t.Fatalf("%s: %#v was read back as %#v", p.Name, p.Value, got.Properties[i].Value)
				}
			}
		}
	})
}

// everything has a field of every type that a Codec takes.
type everything struct {
	tables.Meta
	Keys
	Text     string
	Label    label
	Bytes    []byte
	Octets   octets `table:"Raw,omitempty"`
	Flag     bool
	Tiny     tiny
	I16      int16
	I32      int32
	I64      int64
	Int      int
	U8       uint8
	Short    short
	U32      uint32
	U64      uint64
	F32      float32
	F64      float64
	At       time.Time
	ID       uuid.UUID
	Addr     netip.Addr
	Level    level
	Value    tables.Value
	PText    *string
	PInt     *int64 `table:",omitempty"`
	PAt      *time.Time
	PBytes   *[]byte
	Packed   payload                 `table:"P,json"`
	Optional int                     `table:",omitempty"`
	Rest     map[string]tables.Value `table:",rest"`
}

func drawEverything(t *rapid.T) *everything {
	v := &everything{
		Keys: Keys{drawKey(t, "partition"), drawKey(t, "row")}, Text: rapid.String().Draw(t, "Text"), Label: label(rapid.String().Draw(t, "Label")),
		Flag: rapid.Bool().Draw(t, "Flag"), Tiny: tiny(rapid.Int8().Draw(t, "Tiny")), I16: rapid.Int16().Draw(t, "I16"), I32: rapid.Int32().Draw(t, "I32"),
		I64: rapid.Int64().Draw(t, "I64"), Int: rapid.Int().Draw(t, "Int"), U8: rapid.Uint8().Draw(t, "U8"), Short: short(rapid.Uint16().Draw(t, "Short")),
		U32: rapid.Uint32().Draw(t, "U32"), U64: rapid.Uint64Range(0, math.MaxInt64).Draw(t, "U64"), F32: rapid.Float32().Draw(t, "F32"), F64: drawFloat(t, "F64"),
		At: drawTime(t, "At"), ID: drawGUID(t, "ID"), Addr: netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "Addr"))),
		Level: level(rapid.IntRange(0, 9).Draw(t, "Level")), Value: drawValue(t, "Value"), Optional: rapid.Int().Draw(t, "Optional"),
	}
	if rapid.Bool().Draw(t, "with pointers") {
		v.Bytes = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "Bytes")...)
		v.Octets = octets{rapid.Byte().Draw(t, "Octets")}
		v.PText, v.PInt, v.PAt, v.PBytes = new(v.Text), new(v.I64), new(v.At), new(v.Bytes)
		v.Packed = payload{Lines: []string{v.Text}, Sum: map[string]int{v.Text: v.Int}}
		v.Rest = map[string]tables.Value{"Unknown": drawValue(t, "Unknown"), "Another": drawValue(t, "Another")}
	}
	return v
}

func TestStructsRoundTripProperty(t *testing.T) {
	ctx := context.Background()
	view := assert.Must[*tables.Rows[everything]](t)(tables.RowsOf[everything](harness.InProcess(t, echo()).Table("Employees")))
	rapid.Check(t, func(t *rapid.T) {
		v := drawEverything(t)
		assert.Check(t, view.Upsert(ctx, v))
		got := assert.Must[*everything](t)(view.Get(ctx, tables.Key{Partition: v.PartitionKey, Row: v.RowKey}))
		if v.ETag == "" || got.ETag != v.ETag {
			t.Fatalf("ETag %q, written %q", got.ETag, v.ETag)
		}
		assert.NoDiff(assert.Fatal(t), equal(v, got))
	})
}
