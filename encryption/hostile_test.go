package encryption_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// badWrapper wraps to what cannot be unwrapped any more, or unwraps to another key.
type badWrapper struct {
	encryption.KeyWrapper
	wrapped, unwrapped func([]byte) []byte
}

func (b badWrapper) Wrap(ctx context.Context, key []byte) (encryption.WrappedKey, error) {
	w, err := b.KeyWrapper.Wrap(ctx, key)
	if b.wrapped != nil {
		w.Bytes = b.wrapped(w.Bytes)
	}
	return w, err
}

func (b badWrapper) Unwrap(ctx context.Context, w encryption.WrappedKey) ([]byte, error) {
	key, err := b.KeyWrapper.Unwrap(ctx, w)
	if err == nil && b.unwrapped != nil {
		key = b.unwrapped(key)
	}
	return key, err
}

func flipped(b []byte) []byte {
	b = append([]byte(nil), b...)
	b[0] ^= 1
	return b
}

// TestRewrapLosesNoKey: a new wrapping key that wraps, and does not give back what it has wrapped, replaces no wrapped key.
func TestRewrapLosesNoKey(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	r := w.employees(t, "Employees", nil)
	assert.Check(t, r.Insert(t.Context(), june("Sales", 1)))
	next := localKey(t, "next", 2)
	down := &counting{KeyWrapper: next}
	down.fail.Store(true)
	for what, first := range map[string]encryption.KeyWrapper{
		"what it wraps is garbled": badWrapper{KeyWrapper: next, wrapped: flipped}, "it unwraps to another key": badWrapper{KeyWrapper: next, unwrapped: flipped},
		"it may wrap and not unwrap": down, "it gives back half": badWrapper{KeyWrapper: next, unwrapped: func(b []byte) []byte { return b[:16] }},
	} {
		n, err := w.open(t, encryption.NewChain(first, w.wrapper), nil).Rewrap(t.Context())
		if n != 0 || err == nil {
			t.Errorf("%s: %d keys were replaced, %v", what, n, err)
		}
		assert.Check(t, w.open(t, w.wrapper, nil).Check(t.Context()))
	}
}

// meddling runs a concurrent writer before it wraps.
type meddling struct {
	encryption.KeyWrapper
	before func()
}

func (m meddling) Wrap(ctx context.Context, key []byte) (encryption.WrappedKey, error) {
	m.before()
	return m.KeyWrapper.Wrap(ctx, key)
}

// TestConcurrentRewraps: whoever comes second leaves what the other has written.
func TestConcurrentRewraps(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	next := localKey(t, "next", 2)
	concurrent := w.open(t, encryption.NewChain(next, w.wrapper), nil)
	slow := w.open(t, encryption.NewChain(meddling{next, func() { assert.Check(t, assert.Err(concurrent.Rewrap(t.Context()))) }}, w.wrapper), nil)
	if n, err := slow.Rewrap(t.Context()); n != 0 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	assert.Check(t, w.open(t, next, nil).Check(t.Context()))
}

// TestVaultThatAnswersWrong: a wrong key is no mark of anything but a wrong key, whatever its length.
func TestVaultThatAnswersWrong(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	r := w.employees(t, "Employees", nil)
	assert.Check(t, r.Insert(t.Context(), june("Sales", 1)))
	for what, change := range map[string]func([]byte) []byte{"another key": flipped, "none": func([]byte) []byte { return nil }, "half": func(b []byte) []byte { return b[:16] },
		"more": func(b []byte) []byte { return append(b, 0) }} {
		wrong := w.open(t, badWrapper{KeyWrapper: w.wrapper, unwrapped: change}, nil)
		reader := assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), wrong, nil))
		_, err := reader.Get(t.Context(), employeeKey("Sales", 1))
		refusedBy(t, err, what)
		assert.ErrorIs(t, reader.Insert(t.Context(), june("Sales", 2)), tables.ErrWiring, "%s: a write", what)
		assert.ErrorIs(t, wrong.Check(t.Context()), tables.ErrGarbled, "%s: Check", what)
	}
}

// TestReencryptOfWhatIsDeclaredSince: a property that got its tag after its row was sealed is encrypted too, though the row has
// the current key, and only those rows are written.
func TestReencryptOfWhatIsDeclaredSince(t *testing.T) {
	for _, byTags := range []bool{false, true} {
		w := worldOn(t, storagetest.Simulator(t, nil))
		table := w.account.Table("Rest")
		assert.Check(t, table.Create(t.Context()))
		choose := func(names string) *encryption.Options {
			return &encryption.Options{Resolver: func(_, _, property string) bool { return strings.Contains(names, property) }}
		}
		before := anythings(t, table, w.registry, choose("A"))
		for row, rest := range map[string]string{"1": "AB", "2": "AP", "3": "A"} {
			properties := map[string]tables.Value{}
			for _, name := range rest {
				properties[string(name)] = tables.String("x")
			}
			assert.Check(t, before.Insert(t.Context(), &anything{PartitionKey: "Sales", RowKey: row, Rest: properties}))
		}
		o := choose("AB")
		o.AcceptPlaintext = true
		migrating := anythings(t, table, w.registry, o)
		read, closeUp := migrating.Get, anythings(t, table, w.registry, choose("AB")).Get
		if byTags {
			type tagged struct {
				tables.Meta
				PartitionKey, RowKey string
				A                    string                  `encrypt:"true" table:"A,omitempty"`
				B                    string                  `encrypt:"true" table:"B,omitempty"`
				Rest                 map[string]tables.Value `table:",rest"`
			}
			of := assert.Must[*patterns.Repository[tagged]](t)(patterns.NewRepository(table, patterns.Schema[tagged]{
				Key: func(a *tagged) tables.Key { return tables.Key{Partition: a.PartitionKey, Row: a.RowKey} },
			}, encryption.New[tagged]("encryption", w.registry, &encryption.Options{AcceptPlaintext: true})))
			p, err := encryption.Reencrypt(t.Context(), of, nil)
			if err != nil || p.Written != 1 || p.Read != 3 {
				t.Errorf("by tags: %+v, %v", p, err)
			}
		} else {
			p, err := encryption.Reencrypt(t.Context(), migrating, nil)
			if err != nil || p.Written != 1 || p.Read != 3 {
				t.Errorf("by a resolver: %+v, %v", p, err)
			}
		}
		for _, row := range []string{"1", "2", "3"} {
			assert.Check(t, assert.Err(read(t.Context(), tables.Key{Partition: "Sales", Row: row})), assert.Err(closeUp(t.Context(), tables.Key{Partition: "Sales", Row: row})))
		}
		if p := assert.Must[patterns.RewriteReport](t)(encryption.Reencrypt(t.Context(), migrating, nil)); p.Written != 0 {
			t.Errorf("again: %+v", p)
		}
	}
}

// TestRegistryThatWasDamaged: rows that were deleted or changed are told, and a new data key repairs the one that names it.
func TestRegistryThatWasDamaged(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	r := w.employees(t, "Employees", nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)))
	writer := func() *patterns.Repository[employee] {
		return assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), w.open(t, w.wrapper, nil), nil))
	}
	current := bag(t, w.keys, tables.Key{Partition: "datakeys", Row: "current"})
	for what, id := range map[string]string{"no id": "xyz", "half an id": "00112233", "a key that is not there": strings.Repeat("0", 32)} {
		put(t, w.keys, &tables.Entity{Key: current.Key, Properties: with(current.Properties, "DataKey", tables.String(id))})
		if err := writer().Insert(ctx, june("Sales", 2)); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Check") {
			t.Errorf("%s: a write: %v", what, err)
		}
		assert.Check(t, assert.Err(writer().Get(ctx, employeeKey("Sales", 1))))
		assert.Error(t, w.registry.Check(ctx), "%s: Check finds nothing", what)
		assert.Check(t, assert.Err(w.open(t, w.wrapper, nil).CreateDataKey(ctx)), w.registry.Check(ctx), assert.Err(writer().Get(ctx, employeeKey("Sales", 1))))
	}
	assert.Check(t, w.keys.Drop(ctx))
	if _, err := writer().Get(ctx, employeeKey("Sales", 1)); !errors.Is(err, tables.ErrMissingResource) || errors.Is(err, encryption.ErrNotAuthentic) {
		t.Errorf("without the registry's table: %v", err)
	}
}

// TestWrappersThatWereNotMade: their zero values, and chains of nothing, are errors and no panics.
func TestWrappersThatWereNotMade(t *testing.T) {
	key := make([]byte, 32)
	w := worldOn(t, storagetest.Simulator(t, nil))
	for what, wrapper := range map[string]encryption.KeyWrapper{"a local key": encryption.LocalKey{}, "a local RSA key": encryption.LocalRSAKey{}, "a key in a vault": encryption.VaultKey{},
		"a chain": encryption.Chain{}, "a chain of nothing": encryption.NewChain(nil), "a chain with nothing": encryption.NewChain(nil, localKey(t, "x", 1), nil)} {
		_, err := wrapper.Wrap(t.Context(), key)
		_, err2 := wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "y", Algorithm: encryption.AlgorithmA256KW})
		if !errors.Is(err, tables.ErrWiring) || !errors.Is(err2, tables.ErrWiring) || wrapper.Holds("y", encryption.AlgorithmA256KW) {
			t.Errorf("%s: %v, %v", what, err, err2)
		}
		assert.ErrorIs(t, assert.Err(w.open(t, wrapper, nil).CreateDataKey(t.Context())), tables.ErrWiring, "%s makes a data key", what)
	}
	for _, o := range []*encryption.RegistryOptions{{TTL: -1}, {MaxUses: -1}, {Name: "a/b"}} {
		assert.ErrorIs(t, assert.Err(encryption.NewRegistry(w.keys, w.wrapper, o)), tables.ErrWiring, "%+v", o)
	}
}

// TestSlowClocks: a data key is not removed because the clock of who removes it is some minutes ahead, nor because the TTL of who
// removes it is shorter than that of a program that still writes with the key.
func TestSlowClocks(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	assert.Check(t, w.account.Table("Employees").Create(t.Context()))
	var old encryption.DataKeyID
	for info, err := range w.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		old = info.ID
	}
	assert.Check(t, assert.Err(w.registry.CreateDataKey(t.Context())))
	ahead := w.open(t, w.wrapper, &encryption.RegistryOptions{TTL: time.Minute})
	ahead.SetNow(func() time.Time { return time.Now().Add(24*time.Hour + 10*time.Minute) })
	if err := ahead.RemoveUnusedDataKey(t.Context(), old, w.account.Table("Employees")); !errors.Is(err, tables.ErrConflict) {
		t.Errorf("10 minutes after the longest TTL: %v", err)
	}
	ahead.SetNow(func() time.Time { return time.Now().Add(25 * time.Hour) })
	assert.Check(t, ahead.RemoveUnusedDataKey(t.Context(), old, w.account.Table("Employees")))
}
