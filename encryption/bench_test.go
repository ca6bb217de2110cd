package encryption_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// customer has 12 properties, 3 of them encrypted.
type customer struct {
	tables.Meta
	PartitionKey, RowKey string
	First, Last, Email   string
	City, Street         string
	Age                  int32
	Orders               int64
	Rating               float64
	Since                time.Time
	Number               string    `encrypt:"true"`
	Salary               int64     `encrypt:"true"`
	Badge                uuid.UUID `encrypt:"true"`
}

// BenchmarkEntity encrypts and decrypts an entity of 12 properties, 3 of them encrypted, and beside it does the same with the
// same bytes by AES-GCM alone, under one key that is ready, and with the codec alone.
func BenchmarkEntity(b *testing.B) {
	w := worldOn(b, storagetest.Simulator(b, nil))
	r := assert.Must[*patterns.Repository[customer]](b)(patterns.NewRepository(w.account.Table("Customers"), patterns.Schema[customer]{
		Key: func(c *customer) tables.Key { return tables.Key{Partition: c.PartitionKey, Row: c.RowKey} }}, encryption.New[customer]("encryption", w.registry, nil)))
	e := transformOf(r)
	codec := assert.Must[*tables.Codec[customer]](b)(tables.NewCodec[customer]())
	c := &customer{PartitionKey: "Sales", RowKey: "empid_000223", First: "June", Last: "Jones", Email: "jonesj@contoso.com", City: "Seattle", Street: "1 Main Street", Age: 40,
		Orders: 12, Rating: 4.5, Since: time.Unix(1_700_000_000, 0), Number: "078-05-1120", Salary: 71_000, Badge: uuid.UUID{1}}
	plain := assert.Must[tables.Properties](b)(codec.Encode(c))
	change := &driver.Change{Key: aKey}
	stored := assert.Must[tables.Properties](b)(e.Store(b.Context(), change, plain))
	block := assert.Must[cipher.Block](b)(aes.NewCipher(make([]byte, 32)))
	gcm := assert.Must[cipher.AEAD](b)(cipher.NewGCM(block))
	sizes := []int{12 + 1, 8 + 2, 16 + 2}
	nonce := make([]byte, 12)
	var sealed [3][]byte
	for i, n := range sizes {
		sealed[i] = gcm.Seal(nil, nonce, make([]byte, n), nil)
	}
	// The three take turns, and of each the fastest turn counts: a neighbour on the machine only ever makes one slower.
	compare := func(b *testing.B, ours, bare, codec func()) {
		for b.Loop() {
			ours()
		}
		sides, best := []func(){ours, bare, codec}, [3]time.Duration{time.Hour, time.Hour, time.Hour}
		for range 100 {
			for i, side := range sides {
				began := time.Now()
				for range 200 {
					side()
				}
				best[i] = min(best[i], time.Since(began))
			}
		}
		b.ReportMetric(float64(best[0])/float64(best[1]), "x-AES-GCM")
		b.ReportMetric(float64(best[0])/float64(best[2]), "x-codec")
		b.ReportMetric(float64(best[0].Nanoseconds())/200, "ns-best")
	}
	b.Run("Encrypt", func(b *testing.B) {
		compare(b, func() { assert.Check(b, assert.Err(e.Store(b.Context(), change, plain))) }, func() {
			for _, n := range sizes {
				rand.Read(nonce)
				gcm.Seal(nil, nonce, make([]byte, n), nil)
			}
		}, func() { assert.Check(b, assert.Err(codec.Encode(c))) })
	})
	clear(nonce)
	b.Run("Decrypt", func(b *testing.B) {
		compare(b, func() { assert.Check(b, assert.Err(e.Load(b.Context(), driver.Reading{Key: aKey}, stored))) }, func() {
			for _, s := range sealed {
				_, err := gcm.Open(nil, make([]byte, 12), s, nil)
				assert.Check(b, err)
			}
		}, func() { assert.Check(b, codec.Decode(plain, &customer{})) })
	})
}

// BenchmarkChecks holds what the seal adds, in one run: a row of 3 encrypted values and 9 others is the measure if the others are not signed;
// beside it if they are, if there are 4 copies too, and if there is a context. The sides take turns, and of each the fastest turn counts.
func BenchmarkChecks(b *testing.B) {
	w := worldOn(b, storagetest.Simulator(b, nil))
	plain := tables.Properties{text("A", "078-05-1120"), {Name: "B", Value: tables.Int64(71_000)}, {Name: "C", Value: tables.GUID(uuid.UUID{1})}}
	var others []string
	for i := range 9 {
		others = append(others, fmt.Sprintf("S%d", i))
		plain = append(plain, text(others[i], "a value of some length"))
	}
	required := func(context.Context, tables.Key) (map[string]string, error) {
		return map[string]string{"tenant": "contoso"}, nil
	}
	var indexes []patterns.Pattern[anything]
	for i := range 4 {
		indexes = append(indexes, intrapartition.NewUnique(fmt.Sprintf("index%d", i), func(*anything) string { return "June Jones" }, nil))
	}
	cases := []struct {
		name string
		attached
		entity *anything
	}{{"unsigned", loaderIn(b, w, "Employees", &encryption.Options{Unsigned: others}), nil}, {"signed", loaderIn(b, w, "Employees", nil), nil},
		{"copies", loaderIn(b, w, "Employees", nil, indexes...), &anything{}}, {"context", loaderIn(b, w, "Employees", &encryption.Options{Context: required}), nil}}
	turns := func(b *testing.B, sides []func()) {
		for b.Loop() {
			sides[0]()
		}
		best := make([]time.Duration, len(sides))
		for i := range best {
			best[i] = time.Hour
		}
		for range 100 {
			for i, side := range sides {
				began := time.Now()
				for range 100 {
					side()
				}
				best[i] = min(best[i], time.Since(began))
			}
		}
		for i, c := range cases[1:] {
			b.ReportMetric(float64(best[i+1])/float64(best[0]), c.name+"-x-unsigned")
		}
	}
	var write, read []func()
	for _, c := range cases {
		change := &driver.Change{Key: aKey, Entity: c.entity}
		stored := assert.Must[tables.Properties](b)(c.Store(b.Context(), change, plain))
		write = append(write, func() { assert.Check(b, assert.Err(c.Store(b.Context(), change, plain))) })
		read = append(read, func() { assert.Check(b, assert.Err(c.Load(b.Context(), allOf(aKey), stored))) })
	}
	b.Run("Encrypt", func(b *testing.B) { turns(b, write) })
	b.Run("Decrypt", func(b *testing.B) { turns(b, read) })
}

// BenchmarkCopies reads 1,000 entities through an index, each of which is checked, and beside it the entities themselves.
func BenchmarkCopies(b *testing.B) {
	w := worldOn(b, storagetest.Simulator(b, nil))
	index := byName()
	r := w.employees(b, "Employees", nil, index)
	assert.Check(b, assert.Err(r.BulkNonAtomic(b.Context(), func(yield func(*employee, error) bool) {
		for i := range 1000 {
			if !yield(june("Sales", i), nil) {
				return
			}
		}
	}, nil)))
	drain := func(seq func(func(*employee, error) bool)) {
		n := 0
		for _, err := range seq {
			assert.Check(b, err)
			n++
		}
		if n != 1000 {
			b.Errorf("%d entities", n)
		}
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, read := range []func(){func() { drain(index.In("Sales").Range(b.Context())) }, func() { drain(r.Query().Partition("Sales").All(b.Context())) }} {
			began := time.Now()
			read()
			best[i] = min(best[i], time.Since(began))
		}
	}
	b.ReportMetric(float64(best[0])/float64(best[1]), "x-entities")
}

// BenchmarkStream seals and opens 16 MiB.
func BenchmarkStream(b *testing.B) {
	w := worldOn(b, storagetest.Simulator(b, nil))
	s := streamOf(b, w.registry, "")
	plain := content(16 << 20)
	c := sealed(b, s, plain)
	b.Run("Seal", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			sealed(b, s, plain)
		}
	})
	b.Run("Open", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			assert.Check(b, assert.Err(opened(s, binding, c)))
		}
	})
}
