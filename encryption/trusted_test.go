package encryption_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// planted is the row of a key that is somebody else's, right in all that the public half of the wrapping key is enough for.
func planted(t testing.TB, public encryption.KeyWrapper, table *tables.Table, key []byte, row string) tables.Properties {
	t.Helper()
	wrapped := assert.Must[encryption.WrappedKey](t)(public.Wrap(t.Context(), key))
	id := hmac.New(sha256.New, key)
	id.Write([]byte("tablepatterns/encryption/1/id"))
	created := time.UnixMilli(1_790_000_000_000).UTC()
	mac := hmac.New(sha256.New, key)
	for _, field := range []string{"tablepatterns/encryption/1/registry", "rsa", table.Account().Identity(), strings.ToLower(table.Name()), row, hex.EncodeToString(id.Sum(nil)[:16]), "active"} {
		mac.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(field))), field...))
	}
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(created.UnixMilli())))
	return tables.Properties{{Name: "Wrapped", Value: tables.Binary(wrapped.Bytes)}, {Name: "Check", Value: tables.Binary(mac.Sum(nil))}, text("State", "active"),
		{Name: "Created", Value: assert.Must[tables.Value](t)(tables.DateTime(created))}, text("WrappedBy", wrapped.KeyID), text("Algorithm", wrapped.Algorithm)}
}

// TestTrusted: who can write the registry's table, and knows the public half of its wrapping key, makes no program write or read
// under a key of theirs that says which ones it trusts. Without that they do.
func TestTrusted(t *testing.T) {
	w, ctx := worldOn(t, storagetest.Simulator(t, nil)), t.Context()
	w.wrapper = assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("rsa", assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))))
	in := func(trusted ...encryption.DataKeyID) *encryption.Registry {
		return w.open(t, w.wrapper, &encryption.RegistryOptions{Name: "rsa", Trusted: trusted, TrustTable: true})
	}
	ours := assert.Must[encryption.DataKeyID](t)(in().CreateDataKey(ctx))
	assert.Check(t, assert.Err(fetchBeacon(ctx, in(), "number", 0)))
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, in(), "number", 0)).KeyID()
	w.registry = in(ours, beacon)
	strict := w.employees(t, "Employees", nil)
	assert.Check(t, strict.Insert(ctx, june("Sales", 1)), w.registry.Check(ctx), assert.Err(fetchBeacon(ctx, w.registry, "number", 0)))

	// A data key of theirs, which the table says is current.
	theirs := assert.Must[encryption.DataKeyID](t)(in().CreateDataKey(ctx))
	w.registry = in()
	naive := w.employees(t, "Employees", nil)
	assert.Check(t, naive.Insert(ctx, june("Sales", 2)), strict.Insert(ctx, june("Sales", 3)))
	uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, strict.Table()))
	if uses[theirs] != 9 || uses[ours] != 18 {
		t.Errorf("%v", uses)
	}
	counted, counter := harness.CountedService(w.s)
	account := open(t, counted)
	again := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), w.wrapper, &encryption.RegistryOptions{Name: "rsa", Trusted: []encryption.DataKeyID{ours}}))
	reader := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table("Employees"), again, nil))
	_, err := reader.Get(ctx, employeeKey("Sales", 2))
	refusedBy(t, err, "a row under a key that is not trusted")
	assert.Equal(t, counter.Count(), 1, "requests for a row under a key that is not trusted")
	assert.Check(t, assert.Err(reader.Get(ctx, employeeKey("Sales", 3))))
	for info, err := range w.registry.DataKeys(ctx) {
		assert.Check(t, err)
		if info.Current != (info.ID == theirs) {
			t.Errorf("%+v", info)
		}
	}

	// Keys of theirs in the rows of ours.
	key := bytes.Repeat([]byte{7}, 32)
	for _, row := range []string{"key_" + ours.String(), "beacon_number"} {
		put(t, w.keys, &tables.Entity{Key: tables.Key{Partition: "rsa", Row: row}, Properties: planted(t, w.wrapper, w.keys, key, row)})
	}
	assert.Check(t, assert.Err(fetchBeacon(ctx, in(), "number", 0)), in().Check(ctx)) // they are right in all else
	w.registry = in(ours, beacon)
	strict = w.employees(t, "Employees", nil)
	_, err = strict.Get(ctx, employeeKey("Sales", 1))
	refusedBy(t, err, "a key of theirs in the row of ours")
	for what, err := range map[string]error{"a write": strict.Insert(ctx, june("Sales", 4)), "a beacon": assert.Err(fetchBeacon(ctx, w.registry, "number", 0)), "Rewrap": assert.Err(w.registry.Rewrap(ctx))} {
		assert.ErrorIs(t, err, tables.ErrWiring, what)
	}
	if err := w.registry.Check(ctx); strings.Count(err.Error(), "not among") != 3 || strings.Count(err.Error(), "has no data key") != 2 {
		t.Errorf("Check: %v", err)
	}
}

// TestTrustedRotation: each program trusts the new data key before the first one writes with it.
func TestTrustedRotation(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	var old encryption.DataKeyID
	for info, err := range w.registry.DataKeys(ctx) {
		assert.Check(t, err)
		old = info.ID
	}
	next := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	table := w.account.Table(w.s.TableName(t))
	assert.Check(t, table.Create(ctx))
	program := func(trusted ...encryption.DataKeyID) *patterns.Repository[employee] {
		return assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, w.open(t, w.wrapper, &encryption.RegistryOptions{Trusted: trusted}), nil))
	}
	generations := []*patterns.Repository[employee]{program(old), program(old, next), program(next, old), program(next)}
	for i, writer := range generations[:3] {
		assert.Check(t, writer.Insert(ctx, june("Sales", i)))
		for _, reader := range generations[max(0, i-1) : i+2] {
			if i == 2 && reader == generations[3] {
				_, err := reader.Get(ctx, employeeKey("Sales", 0))
				refusedBy(t, err, "a row that was not encrypted again")
			}
			assert.Check(t, assert.Err(reader.Get(ctx, employeeKey("Sales", i))))
		}
	}
	p, err := encryption.Reencrypt(ctx, generations[2], nil)
	if err != nil || p.Written != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	for i := range 3 {
		assert.Check(t, assert.Err(generations[3].Get(ctx, employeeKey("Sales", i))))
	}
	trusting := w.open(t, w.wrapper, &encryption.RegistryOptions{Trusted: []encryption.DataKeyID{next, old}})
	assert.ErrorIs(t, trusting.RemoveUnusedDataKey(ctx, old, table), tables.ErrConflict, "a trusted key is removed")
}
