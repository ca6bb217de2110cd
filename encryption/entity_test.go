package encryption_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRoundTrip: every type comes back, and nothing of it is in the stored row.
func TestRoundTrip(t *testing.T) {
	w := newWorld(t)
	r := w.employees(t, w.s.TableName(t), nil)
	wrote := june("Sales", 223)
	assert.Check(t, r.Insert(t.Context(), wrote))
	read := assert.Must[*employee](t)(r.Get(t.Context(), employeeKey("Sales", 223)))
	assert.Check(t, sameEmployee(read, wrote))

	stored := bag(t, r.Table(), employeeKey("Sales", 223))
	for _, name := range []string{"Number", "Salary", "Grade", "Rating", "Born", "Photo", "Abroad", "Badge", encryption.SealProperty} {
		b, binary := stored.Get(name).Bytes()
		if !binary || bytes.Contains(b, []byte("078-05")) || len(b) < 88+28 {
			t.Errorf("%s is stored as %#v", name, stored.Get(name))
		}
	}
	if name, _ := stored.Get("Name").Text(); name != "June Jones" || stored.Properties.Has("Phone") {
		t.Error("a plain property is not stored as it is, or a nil one is stored")
	}
	phone := "+1"
	read.Phone, read.Number = &phone, ""
	assert.Check(t, r.Replace(t.Context(), read))
	again := assert.Must[*employee](t)(r.Get(t.Context(), employeeKey("Sales", 223)))
	assert.Check(t, sameEmployee(again, &employee{Department: "Sales", ID: 223, Name: read.Name, Salary: read.Salary, Grade: read.Grade, Rating: read.Rating,
		Born: read.Born, Photo: read.Photo, Abroad: read.Abroad, Badge: read.Badge, Phone: again.Phone}))
	if again.Phone == nil || *again.Phone != phone {
		t.Error("a property that came with the second write is not there")
	}
}

// anything takes any property; a resolver chooses.
type anything struct {
	tables.Meta
	PartitionKey, RowKey string
	Rest                 map[string]tables.Value `table:",rest"`
}

func anythings(t testing.TB, table *tables.Table, registry *encryption.Registry, o *encryption.Options) *patterns.Repository[anything] {
	t.Helper()
	return assert.Must[*patterns.Repository[anything]](t)(patterns.NewRepository(table, patterns.Schema[anything]{
		Key: func(a *anything) tables.Key { return tables.Key{Partition: a.PartitionKey, Row: a.RowKey} },
	}, encryption.New[anything]("encryption", registry, o)))
}

// TestResolver: what it chooses is encrypted, by key and property, and readers need no list.
func TestResolver(t *testing.T) {
	w := newWorld(t)
	table := w.account.Table(w.s.TableName(t))
	assert.Check(t, table.Create(t.Context()))
	r := anythings(t, table, w.registry, &encryption.Options{Plain: []string{"City"}, Resolver: func(partition, row, property string) bool {
		return partition == "Secret" && (row == "all" || strings.HasPrefix(property, "S"))
	}})
	for _, key := range []tables.Key{{Partition: "Secret", Row: "all"}, {Partition: "Secret", Row: "some"}, {Partition: "Open", Row: "all"}} {
		wrote := &anything{PartitionKey: key.Partition, RowKey: key.Row, Rest: map[string]tables.Value{
			"S1": tables.String("x"), "S2": tables.Int32(-7), "P": tables.Double(math.Inf(-1)), "City": tables.String("Seattle")}}
		assert.Check(t, r.Insert(t.Context(), wrote))
		stored := bag(t, table, key)
		for name, value := range wrote.Rest {
			want := key.Partition == "Secret" && name != "City" && (key.Row == "all" || name != "P")
			assert.Equal(t, stored.Get(name) != value, want, "%v %s: encrypted", key, name)
		}
		// One that would choose nothing reads it all the same.
		reader := anythings(t, table, w.registry, &encryption.Options{Resolver: func(string, string, string) bool { return false }})
		for _, by := range []*patterns.Repository[anything]{r, reader} {
			read := assert.Must[*anything](t)(by.Get(t.Context(), key))
			for name, value := range wrote.Rest {
				if read.Rest[name] != value || len(read.Rest) != len(wrote.Rest) {
					t.Errorf("%v: read %d properties, %s is %#v", key, len(read.Rest), name, read.Rest[name])
				}
			}
		}
	}
	for name, allowed := range map[string]bool{"City": true, "P": false, "S1": false, encryption.SealProperty: false} {
		_, err := r.Query().Partition("Open").Where(tables.Eq(name, "x")).First(t.Context())
		if wants := map[bool]error{true: tables.ErrNotFound, false: tables.ErrInvalid}[allowed]; !errors.Is(err, wants) {
			t.Errorf("a condition on %s: %v", name, err)
		}
	}
}

// TestEveryValue: whatever value of whatever type comes back equal.
func TestEveryValue(t *testing.T) {
	e := loader(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		moment, err := tables.DateTime(time.Unix(rapid.Int64Range(-11_000_000_000, 250_000_000_000).Draw(t, "s"), 100*rapid.Int64Range(0, 9_999_999).Draw(t, "100ns")))
		assert.Check(t, err)
		values := []tables.Value{
			tables.String(rapid.String().Draw(t, "string")), tables.Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "binary")),
			tables.Boolean(rapid.Bool().Draw(t, "bool")), tables.Int32(rapid.Int32().Draw(t, "int32")), tables.Int64(rapid.Int64().Draw(t, "int64")),
			tables.Double(rapid.Float64().Draw(t, "double")), moment, tables.GUID(uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid"))),
		}
		var p tables.Properties
		for i, v := range values {
			p.Set(string(rune('A'+i)), v)
		}
		key := tables.Key{Partition: rapid.String().Draw(t, "partition"), Row: rapid.String().Draw(t, "row")}
		stored := assert.Must[tables.Properties](t)(e.Store(background(), &driver.Change{Key: key}, p))
		read, err := e.Load(background(), allOf(key), stored)
		if err != nil || len(read) != len(p) {
			t.Fatalf("%v, %d properties", err, len(read))
		}
		for i := range p {
			assert.Equal(assert.Fatal(t), read[i], p[i], "read back")
		}
	})
}

// TestPadding: lengths within a step are not told, and programs with other paddings read each other.
func TestPadding(t *testing.T) {
	padded := loader(t, &encryption.Options{Padding: 64})
	sizes := map[int]bool{}
	for n := range 63 {
		stored := assert.Must[tables.Properties](t)(padded.Store(t.Context(), &driver.Change{Key: aKey}, tables.Properties{{Name: "A", Value: tables.String(strings.Repeat("x", n))}}))
		b, _ := stored.Get("A").Bytes()
		sizes[len(b)] = true
		read := assert.Must[tables.Properties](t)(padded.Load(t.Context(), allOf(aKey), stored))
		if s, _ := read.Get("A").Text(); len(s) != n {
			t.Errorf("%d characters came back as %d", n, len(s))
		}
	}
	if len(sizes) != 1 {
		t.Errorf("lengths 0 to 62 have %d sizes", len(sizes))
	}
	if _, err := employeesOf(padded.table, padded.registry, &encryption.Options{Padding: 1 << 20}); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a padding of 1 MiB: %v", err)
	}
}

// TestRefusals: what would be read wrong, or stored in plain, is refused before any request.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	e := june("Sales", 1)
	assert.Check(t, r.Insert(ctx, e))
	counted, counter := harness.CountedService(w.s)
	r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(open(t, counted).Table(r.Table().Name()), w.registry, nil))
	if err := r.Merge(ctx, e, "Name"); !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), "Replace") {
		t.Errorf("a merge: %v", err)
	}
	for _, property := range []string{"Number", "Photo", encryption.SealProperty} {
		if _, err := r.Query().Partition("Sales").Where(tables.Eq(property, "078-05-1120")).First(ctx); !errors.Is(err, tables.ErrInvalid) || strings.Contains(err.Error(), "078-05") {
			t.Errorf("a condition on %s: %v", property, err)
		}
	}
	big := june("Sales", 2)
	big.Number = strings.Repeat("é", 32_768)
	assert.ErrorIs(t, r.Insert(ctx, big), tables.ErrTooLarge, "a value that does not fit with its header")
	assert.Equal(t, counter.Count(), 0, "requests")
	rest := anythings(t, r.Table(), w.registry, &encryption.Options{Resolver: func(_, _, p string) bool { return p == "S" }})
	for name, v := range map[string]tables.Value{"P": tables.Binary([]byte("TPE\x01 and more")), encryption.SealProperty: tables.Int32(1), "_ClientEncryptionMetadata1": tables.String("{}")} {
		if err := rest.Insert(ctx, &anything{PartitionKey: "p", RowKey: "x", Rest: map[string]tables.Value{name: v}}); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("a plain %s %#v: %v", name, v, err)
		}
	}
	for i, c := range []struct { // an encrypted value is binary and has 118 bytes more; so a text can be longer than a plain one
		value tables.Value
		fits  bool
	}{
		{tables.Binary(make([]byte, 65_418)), true}, {tables.Binary(make([]byte, 65_419)), false},
		{tables.String(strings.Repeat("€", 21_806)), true}, {tables.String(strings.Repeat("€", 21_806) + "x"), false},
		{tables.String(strings.Repeat("x", 65_418)), true}, {tables.String(strings.Repeat("x", 65_419)), false},
	} {
		err := rest.Insert(ctx, &anything{PartitionKey: "p", RowKey: fmt.Sprint("size", i), Rest: map[string]tables.Value{"S": c.value}})
		if c.fits != (err == nil) || err != nil && !errors.Is(err, tables.ErrTooLarge) {
			t.Errorf("value %d: %v", i, err)
		}
		if c.fits {
			if got := assert.Must[*anything](t)(rest.Get(ctx, tables.Key{Partition: "p", Row: fmt.Sprint("size", i)})); got.Rest["S"] != c.value {
				t.Errorf("value %d is read as another", i)
			}
		}
	}
	empty := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, w.wrapper, &encryption.RegistryOptions{Name: "empty"}))
	r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), empty, nil))
	if err := r.Insert(ctx, june("Sales", 3)); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "EnsureDataKey") {
		t.Errorf("an insert without any data key: %v", err)
	}
}

// TestDryRun: Explain makes no request, needs no data key, and has the right sizes.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	counted, counter := harness.CountedService(w.s)
	account := open(t, counted)
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table("Nowhere"), w.wrapper, nil))
	r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table("Nowhere"), registry, nil))
	x := assert.Must[*patterns.Explanation](t)(r.Explain(t.Context(), driver.ChangeInsert, june("Sales", 1)))
	if counter.Count() != 0 || len(x.Rows) != 1 {
		t.Errorf("%d requests, %d rows", counter.Count(), len(x.Rows))
	}
}
