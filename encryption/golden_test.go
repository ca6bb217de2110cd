package encryption_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

var makeGolden = flag.Bool("make-golden", false, "make the golden files that are missing; those that are there are never changed")

// golden is what was stored once, in an account of the name contoso.
type golden struct {
	Registry map[string]map[string]string // row key, property, text or hexadecimal
	Scope    string
	Table    string
	Key      tables.Key
	Padding  int
	Row      map[string]string // property, hexadecimal
	Signed   map[string]string // property, text
	Context  map[string]string
	Copies   []tables.Key
	Beacon   string // of "078-05-1120"
	Binding  string
	Stream   string // hexadecimal
	Plain    string
}

// goldenValues are the properties A to H of the golden row, one of each type.
func goldenValues(t testing.TB) tables.Properties {
	moment := assert.Must[tables.Value](t)(tables.DateTime(time.Date(1980, 2, 29, 12, 30, 0, 123_456_700, time.UTC)))
	return tables.Properties{text("A", "078-05-1120 é€😀"), {Name: "B", Value: tables.Binary([]byte{0, 0x80, 0xff})}, {Name: "C", Value: tables.Boolean(true)},
		{Name: "D", Value: tables.Int32(-2)}, {Name: "E", Value: tables.Int64(-1 << 60)}, {Name: "F", Value: tables.Double(-0.1)}, {Name: "G", Value: moment},
		{Name: "H", Value: tables.GUID(uuid.MustParse("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"))}}
}

const goldenPlain = "a photo of June, stored apart"

func goldenWorld(t testing.TB) *world {
	t.Helper()
	w := worldOn(t, storagetest.Simulator(t, &storagetest.SimulatorOptions{Account: "contoso"}))
	w.wrapper = localKey(t, "golden", 0x42)
	w.keys = w.account.Table("GoldenKeys")
	assert.Check(t, w.keys.Create(t.Context()))
	w.registry = w.open(t, w.wrapper, &encryption.RegistryOptions{Name: "golden"})
	return w
}

// options are those that the golden row was written with.
func (g *golden) options() *encryption.Options {
	o := &encryption.Options{Scope: g.Scope, Padding: g.Padding}
	if len(g.Context) > 0 {
		o.Context = func(context.Context, tables.Key) (map[string]string, error) { return g.Context, nil }
	}
	return o
}

const goldenFile = "testdata/golden.json"

// TestGolden: what was stored is read for ever: rows, streams, beacons, and the registry's rows; and what is written has the same form.
func TestGolden(t *testing.T) {
	if *makeGolden {
		writeGolden(t)
	}
	var g golden
	assert.Check(t, json.Unmarshal(assert.Must[[]byte](t)(os.ReadFile(filepath.FromSlash(goldenFile))), &g))
	w := goldenWorld(t)
	for row, properties := range g.Registry {
		var p tables.Properties
		for name, value := range properties {
			switch name {
			case "Wrapped", "Check":
				p.Set(name, tables.Binary(unhex(t, value)))
			case "Created", "Since":
				p.Set(name, assert.Must[tables.Value](t)(tables.DateTime(assert.Must[time.Time](t)(time.Parse(time.RFC3339Nano, value)))))
			default:
				p.Set(name, tables.String(value))
			}
		}
		put(t, w.keys, &tables.Entity{Key: tables.Key{Partition: "golden", Row: row}, Properties: p})
	}
	assert.Check(t, w.registry.Check(t.Context()))
	a := goldenLoader(t, w, &g)
	var p tables.Properties
	for name, value := range g.Row {
		p.Set(name, tables.Binary(unhex(t, value)))
	}
	want := goldenValues(t)
	for name, value := range g.Signed {
		p.Set(name, tables.String(value))
		want = append(want, text(name, value))
	}
	read := assert.Must[tables.Properties](t)(a.Load(t.Context(), allOf(g.Key), p))
	for _, at := range g.Copies {
		if proven, err := a.Authentication.ProvesCopy(t.Context(), allOf(g.Key), a.table, at, p); !proven || err != nil {
			t.Errorf("a copy in %v: %v, %v", at, proven, err)
		}
	}
	for _, property := range want {
		if read.Get(property.Name) != property.Value || len(read) != len(want) {
			t.Errorf("%s is read as %#v, was %#v", property.Name, read.Get(property.Name), property.Value)
		}
	}
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(t.Context(), w.registry, "number", 0))
	assert.Equal(t, assert.Must[string](t)(compoundkey.Encode("", beacon.Part(tables.String("078-05-1120")))), g.Beacon, "the beacon")
	plain, err := opened(streamOf(t, w.registry, g.Scope), []byte(g.Binding), unhex(t, g.Stream))
	if err != nil || string(plain) != g.Plain {
		t.Errorf("the stream is %q, %v", plain, err)
	}
	for _, property := range assert.Must[tables.Properties](t)(a.Store(t.Context(), &driver.Change{Key: aKey, Entity: &anything{}}, want)) {
		if b, binary := property.Value.Bytes(); binary {
			if before := unhex(t, g.Row[property.Name]); len(b) != len(before) || !bytes.Equal(b[:24], before[:24]) {
				t.Errorf("%s is written in %d bytes that begin with %x, was written in %d that begin with %x", property.Name, len(b), b[:24], len(before), before[:24])
			}
		}
	}
}

// goldenLoader is the encryption that the golden row was written with.
func goldenLoader(t testing.TB, w *world, g *golden) attached {
	byName := intrapartition.NewUnique("name", func(*anything) string { return "June Jones" }, nil)
	return loaderIn(t, w, g.Table, g.options(), byName)
}

// writeGolden makes the file, if there is none.
func writeGolden(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(goldenFile); err == nil {
		return
	}
	w := goldenWorld(t)
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(t.Context()))
	assert.Check(t, assert.Err(fetchBeacon(t.Context(), w.registry, "number", 0)))
	g := golden{Registry: map[string]map[string]string{}, Scope: "contoso", Table: "employees", Key: aKey, Padding: 16, Row: map[string]string{}, Binding: "photos/1", Plain: goldenPlain,
		Signed: map[string]string{"EntityType": "Employee@3", "Name": "June Jones"}, Context: map[string]string{"tenant": "contoso", "region": "west"},
		Copies: []tables.Key{{Partition: aKey.Partition, Row: assert.Must[string](t)(compoundkey.Encode("name", compoundkey.String("June Jones")))}}}
	for row, err := range w.keys.Entities().Query().Partition("golden").All(t.Context()) {
		assert.Check(t, err)
		texts := map[string]string{}
		for _, p := range row.Properties {
			switch v := p.Value.Any().(type) {
			case string:
				texts[p.Name] = v
			case []byte:
				texts[p.Name] = hex.EncodeToString(v)
			case time.Time:
				texts[p.Name] = v.Format(time.RFC3339Nano)
			}
		}
		g.Registry[row.Key.Row] = texts
	}
	a := goldenLoader(t, w, &g)
	plain := goldenValues(t)
	for name, value := range g.Signed {
		plain = append(plain, text(name, value))
	}
	for _, p := range assert.Must[tables.Properties](t)(a.Store(t.Context(), &driver.Change{Key: aKey, Entity: &anything{}}, plain)) {
		if b, binary := p.Value.Bytes(); binary {
			g.Row[p.Name] = hex.EncodeToString(b)
		}
	}
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(t.Context(), w.registry, "number", 0))
	g.Beacon = assert.Must[string](t)(compoundkey.Encode("", beacon.Part(tables.String("078-05-1120"))))
	s := streamOf(t, w.registry, g.Scope)
	var b bytes.Buffer
	_, err := b.ReadFrom(assert.Must[io.Reader](t)(s.Seal(t.Context(), []byte(g.Binding), bytes.NewReader([]byte(goldenPlain)))))
	assert.Check(t, err, os.MkdirAll(filepath.Dir(goldenFile), 0o755))
	g.Stream = hex.EncodeToString(b.Bytes())
	assert.Check(t, os.WriteFile(goldenFile, append(assert.Must[[]byte](t)(json.MarshalIndent(g, "", "  ")), '\n'), 0o644))
}
