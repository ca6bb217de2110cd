package encryption_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
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

// TestRegistryReplay: a wrapped data key that was copied to the registry of another tenant, under the same wrapping key, is neither
// written with nor read with, whether "current" is copied with it or made up; in another table it is not either.
func TestRegistryReplay(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	other := w.account.Table("OtherKeys")
	assert.Check(t, other.Create(ctx))
	tenants := map[string]struct {
		table *tables.Table
		name  string
	}{"another name": {w.keys, "fabrikam"}, "another table": {other, "datakeys"}}
	for what, tenant := range tenants {
		registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(tenant.table, w.wrapper, &encryption.RegistryOptions{Name: tenant.name}))
		assert.Check(t, assert.Err(registry.CreateDataKey(ctx)), assert.Err(fetchBeacon(ctx, registry, "theirs", 0)))
		from := intrude(t, w.s, tenant.table.Name())
		to := intrude(t, w.s, w.keys.Name())
		theirs, _ := from.read(t, tables.Key{Partition: tenant.name, Row: "current"})["DataKey"].(string)
		ours := to.read(t, tables.Key{Partition: "datakeys", Row: "current"})
		for _, row := range []string{"key_" + theirs, "beacon_theirs", "current"} {
			to.put(t, tables.Key{Partition: "datakeys", Row: row}, from.read(t, tables.Key{Partition: tenant.name, Row: row}))
		}
		r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(w.account.Table("Employees"), w.open(t, w.wrapper, nil), nil))
		assert.Check(t, r.Table().CreateIfMissing(ctx))
		assert.ErrorIs(t, r.Insert(ctx, june("Sales", 1)), tables.ErrWiring, "%s: a write under their key", what)
		forged := map[string]any{"DataKey": theirs, "Since": ours["Since"], "Since@odata.type": "Edm.DateTime", "Check": ours["Check"], "Check@odata.type": "Edm.Binary"}
		to.put(t, tables.Key{Partition: "datakeys", Row: "current"}, forged)
		fresh := w.open(t, w.wrapper, nil)
		r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(w.account.Table("Employees"), fresh, nil))
		assert.ErrorIs(t, r.Insert(ctx, june("Sales", 1)), tables.ErrWiring, "%s: a write under their key, with our own row", what)
		assert.ErrorIs(t, assert.Err(fetchBeacon(ctx, fresh, "theirs", 0)), tables.ErrGarbled, "%s: their beacon", what)
		assert.ErrorContains(t, fresh.Check(ctx), theirs, "%s: Check", what)
		to.put(t, tables.Key{Partition: "datakeys", Row: "current"}, ours)
	}
}

// TestRetiredDataKeys: a data key that was replaced decrypts, and is not written with again: not when "current" is made to name it,
// not when both rows are put back as a backup has them while a program has used a later one, and not after it was deleted.
func TestRetiredDataKeys(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	rows := intrude(t, w.s, w.keys.Name())
	current := tables.Key{Partition: "datakeys", Row: "current"}
	r := w.employees(t, "Employees", nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)))
	id, _ := w.dataKey(t)
	old := tables.Key{Partition: "datakeys", Row: "key_" + id.String()}
	backup := map[tables.Key]map[string]any{current: rows.read(t, current), old: rows.read(t, old)}
	assert.Equal(t, backup[old]["State"], "active", "the state of the first key")
	next := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	assert.Check(t, r.Insert(ctx, june("Sales", 2)))
	assert.Equal(t, rows.read(t, old)["State"], "retired", "the state of a key that was replaced")
	refuses := func(what string, registry *encryption.Registry) {
		t.Helper()
		writer := assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), registry, nil))
		if err := writer.Insert(ctx, june("Sales", 3)); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Check") {
			t.Errorf("%s: a write: %v", what, err)
		}
		assert.ErrorIs(t, registry.Check(ctx), tables.ErrGarbled, "%s: Check", what)
		assert.Check(t, assert.Err(writer.Get(ctx, employeeKey("Sales", 1)))) // what it has encrypted is read
	}
	ours := rows.read(t, current)
	rows.put(t, current, backup[current])
	refuses("current is put back", w.open(t, w.wrapper, nil))
	forged := rows.read(t, old)
	forged["State"] = "active"
	rows.put(t, old, forged)
	fresh := w.open(t, w.wrapper, nil)
	writer := assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), fresh, nil))
	assert.ErrorIs(t, writer.Insert(ctx, june("Sales", 3)), tables.ErrWiring, "a state that was changed")
	refusedBy(t, assert.Err(writer.Get(ctx, employeeKey("Sales", 1))), "a state that was changed")

	now := time.Now()
	running := w.open(t, w.wrapper, &encryption.RegistryOptions{TTL: time.Minute})
	running.SetNow(func() time.Time { return now })
	rows.put(t, current, ours)
	writer = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), running, nil))
	assert.Check(t, writer.Insert(ctx, june("Sales", 4)))
	now = now.Add(2 * time.Minute)
	for key, row := range backup {
		rows.put(t, key, row)
	}
	refuses("both are put back while a program runs", running)
	trusting := w.open(t, w.wrapper, &encryption.RegistryOptions{Trusted: []encryption.DataKeyID{next, id}})
	writer = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), trusting, nil))
	assert.Check(t, writer.Insert(ctx, june("Works", 1)))
	if uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, r.Table())); uses[next] != 27 || uses[id] != 9 {
		t.Errorf("with Trusted the key of a backup is written with: %v", uses)
	}
	for info, err := range trusting.DataKeys(ctx) {
		assert.Check(t, err)
		if info.Current != (info.ID == next) {
			t.Errorf("%+v", info)
		}
	}
}

// TestClocksThatDiffer: a data key that a program makes whose clock is behind is taken for the newer one all the same.
func TestClocksThatDiffer(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	r := w.employees(t, "Employees", nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)))
	behind := w.open(t, w.wrapper, nil)
	behind.SetNow(func() time.Time { return time.Now().Add(-time.Hour) })
	assert.Check(t, assert.Err(behind.CreateDataKey(ctx)))
	now := time.Now().Add(time.Hour)
	w.registry.SetNow(func() time.Time { return now })
	assert.Check(t, r.Insert(ctx, june("Sales", 2)), w.registry.Check(ctx))
}

// TestPublicWrappingKeys: what is wrapped by RSA, or by an algorithm that nobody knows, is accepted only by its id or by TrustTable:
// for writes, reads, beacons and Rewrap. Each error says what to do.
func TestPublicWrappingKeys(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	public := assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("rsa", assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))))
	in := func(o encryption.RegistryOptions) *encryption.Registry {
		o.Name = "rsa"
		return w.open(t, encryption.NewChain(public, w.wrapper), &o)
	}
	id := assert.Must[encryption.DataKeyID](t)(in(encryption.RegistryOptions{}).CreateDataKey(ctx))
	assert.Check(t, assert.Err(fetchBeacon(ctx, in(encryption.RegistryOptions{TrustTable: true}), "number", 0)))
	table := w.account.Table("Employees")
	assert.Check(t, table.Create(ctx))
	employees := func(registry *encryption.Registry) *patterns.Repository[employee] {
		return assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, registry, nil))
	}
	assert.Check(t, employees(in(encryption.RegistryOptions{TrustTable: true})).Insert(ctx, june("Sales", 1)),
		employees(in(encryption.RegistryOptions{Trusted: []encryption.DataKeyID{id}})).Insert(ctx, june("Sales", 2)))

	strict := in(encryption.RegistryOptions{})
	refusedBy(t, assert.Err(employees(strict).Get(ctx, employeeKey("Sales", 1))), "a read")
	for what, err := range map[string]error{"a write": employees(strict).Insert(ctx, june("Sales", 3)), "a beacon": assert.Err(fetchBeacon(ctx, strict, "number", 0)),
		"Rewrap": assert.Err(strict.Rewrap(ctx)), "Check": strict.Check(ctx)} {
		if !errors.Is(err, tables.ErrWiring) || what != "a write" && !strings.Contains(err.Error(), "RegistryOptions.Trusted") {
			t.Errorf("%s: %v", what, err)
		}
	}
	unknown := w.open(t, renamed{w.wrapper}, &encryption.RegistryOptions{Name: "unknown"})
	assert.Check(t, assert.Err(unknown.CreateDataKey(ctx)))
	assert.ErrorIs(t, employees(unknown).Insert(ctx, june("Sales", 3)), tables.ErrWiring, "a wrapper of an unknown algorithm")
}

// renamed says that it wraps by an algorithm of its own.
type renamed struct{ encryption.KeyWrapper }

func (renamed) Holds(string, string) bool { return true }

func (r renamed) Wrap(ctx context.Context, key []byte) (encryption.WrappedKey, error) {
	wrapped, err := r.KeyWrapper.Wrap(ctx, key)
	wrapped.Algorithm = "ACME-1"
	return wrapped, err
}

// TestDamagedKeysAreNotUnwrappedAgain: 100 reads under a data key whose row is damaged unwrap it once, and 100 reads under one that is in
// no registry look for it once; what was repaired is read again when the refusal's time is over; and an outage is kept by nobody.
func TestDamagedKeysAreNotUnwrappedAgain(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	assert.Check(t, w.employees(t, "Employees", nil).Insert(ctx, june("Sales", 1)))
	id, _ := w.dataKey(t)
	key := tables.Key{Partition: "datakeys", Row: "key_" + id.String()}
	intact := bag(t, w.keys, key)
	assert.Check(t, assert.Err(w.registry.CreateDataKey(ctx)))
	counted, counter := harness.CountedService(w.s)
	account := open(t, counted)
	for what, damage := range map[string]func(){
		"damaged": func() {
			wrapped, _ := intact.Get("Wrapped").Bytes()
			put(t, w.keys, &tables.Entity{Key: key, Properties: with(intact.Properties, "Wrapped", tables.Binary(flipped(bytes.Clone(wrapped))))})
		},
		"missing": func() { assert.Check(t, w.keys.Entities().DeleteUnconditional(ctx, key)) },
	} {
		damage()
		now := time.Now()
		vault := &counting{KeyWrapper: w.wrapper}
		registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), vault, nil))
		registry.SetNow(func() time.Time { return now })
		r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table("Employees"), registry, nil))
		counter.Reset()
		for range 100 {
			refusedBy(t, assert.Err(r.Get(ctx, employeeKey("Sales", 1))), what)
		}
		if vault.unwrapped.Load() > 1 || counter.Count() != 101 {
			t.Errorf("%s: 100 reads made %d calls to unwrap and %d requests", what, vault.unwrapped.Load(), counter.Count())
		}
		put(t, w.keys, intact)
		refusedBy(t, assert.Err(r.Get(ctx, employeeKey("Sales", 1))), "right after it was repaired")
		now = now.Add(30 * time.Second)
		assert.Check(t, assert.Err(r.Get(ctx, employeeKey("Sales", 1))))
	}
	vault := &counting{KeyWrapper: w.wrapper}
	vault.fail.Store(true)
	r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(w.account.Table("Employees"), w.open(t, vault, nil), nil))
	assert.ErrorIs(t, assert.Err(r.Get(ctx, employeeKey("Sales", 1))), errDown, "while the vault is down")
	vault.fail.Store(false)
	assert.Check(t, assert.Err(r.Get(ctx, employeeKey("Sales", 1))))
}
