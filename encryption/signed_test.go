package encryption_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// account has a property that is encrypted; the others are signed.
type account struct {
	tables.Meta
	ID     string
	Email  string
	Role   string `table:",omitempty"`
	City   string
	Secret string `encrypt:"true"`
}

func (w *world) accounts(t testing.TB, o *encryption.Options, others ...patterns.Pattern[account]) *patterns.Repository[account] {
	t.Helper()
	r := assert.Must[*patterns.Repository[account]](t)(patterns.NewRepository(w.account.Table("Accounts"), patterns.Schema[account]{
		Key: func(a *account) tables.Key { return tables.Key{Partition: "p", Row: "acc_" + a.ID} }, Prefix: "acc",
	}, append([]patterns.Pattern[account]{encryption.New[account]("encryption", w.registry, o)}, others...)...))
	assert.Check(t, r.Table().CreateIfMissing(t.Context()))
	return r
}

func accountKey(id string) tables.Key { return tables.Key{Partition: "p", Row: "acc_" + id} }

// TestSignedProperties: they are stored in plain and can be in conditions; one that was changed, removed, added or exchanged for that
// of another version is refused, in the row, in a copy and in a projection. Nobody has to ask for that; only what Options.Unsigned lists is free.
func TestSignedProperties(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	byCity := intrapartition.NewUnique("city", func(a *account) string { return a.City }, nil)
	r := w.accounts(t, &encryption.Options{Unsigned: []string{"City"}}, byCity)
	assert.Check(t, r.Insert(ctx, &account{ID: "1", Email: "june@contoso.com", Role: "reader", City: "Seattle", Secret: "x"}),
		r.Insert(ctx, &account{ID: "2", Email: "mallory@contoso.com", City: "Oslo", Secret: "y"}))
	rows := intrude(t, w.s, "Accounts")
	whole := rows.read(t, accountKey("1"))
	if whole["Email"] != "june@contoso.com" || whole["Role"] != "reader" {
		t.Errorf("signed properties are stored as %v, %v", whole["Email"], whole["Role"])
	}
	found := assert.Must[*account](t)(r.Query().Partition("p").Where(tables.Eq("Email", "june@contoso.com")).First(ctx))
	if found.ID != "1" || found.Role != "reader" {
		t.Errorf("a condition finds %+v", found)
	}
	reads := map[string]func() error{
		"the row": func() error { return assert.Err(r.Get(ctx, accountKey("1"))) },
		"a projection": func() error {
			return assert.Err(r.Query().Partition("p").Row("acc_1").Select("Email", "Role").First(ctx))
		},
		"the copy": func() error { return assert.Err(byCity.In("p").Get(ctx, "Seattle")) },
	}
	attempt := func(what string, change func(row map[string]any)) {
		t.Helper()
		for _, key := range []tables.Key{accountKey("1"), {Partition: "p", Row: "city_Seattle"}} {
			row, intact := rows.read(t, key), rows.read(t, key)
			change(row)
			rows.put(t, key, row)
			defer rows.put(t, key, intact)
		}
		for where, read := range reads {
			if where == "a projection" && what == "removed" {
				continue // nobody can tell what a projection left out from what somebody removed
			}
			refusedBy(t, read(), what+", "+where)
		}
	}
	attempt("changed", func(row map[string]any) { row["Email"] = "mallory@contoso.com" })
	attempt("removed", func(row map[string]any) { delete(row, "Role") })
	attempt("of another type", func(row map[string]any) { row["Email"] = 5 })
	assert.Check(t, assert.Err(r.Update(ctx, accountKey("1"), func(a *account) error { a.Role = ""; return nil })))
	attempt("added", func(row map[string]any) { row["Role"] = "owner" })
	row := rows.read(t, accountKey("1"))
	row["City"] = "Berlin"
	rows.put(t, accountKey("1"), row)
	if a, err := r.Get(ctx, accountKey("1")); err != nil || a.City != "Berlin" {
		t.Errorf("what is not signed: %+v, %v", a, err)
	}
}

// TestUnsigned: what Options.Unsigned lists may be changed, added and removed by anybody, also in rows that were signed before it was
// listed; what is not listed may not, of whatever name; and a property that a pattern requires to be signed cannot be listed.
func TestUnsigned(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	table, key := w.account.Table("Rest"), tables.Key{Partition: "p", Row: "1"}
	assert.Check(t, table.Create(t.Context()))
	signed := anythings(t, table, w.registry, nil)
	free := anythings(t, table, w.registry, &encryption.Options{Unsigned: []string{"Free", "Other"}})
	for _, writer := range []*patterns.Repository[anything]{signed, free} {
		if err := table.Entities().DeleteUnconditional(t.Context(), key); !errors.Is(err, tables.ErrNotFound) {
			assert.Check(t, err)
		}
		assert.Check(t, writer.Insert(t.Context(), &anything{PartitionKey: "p", RowKey: "1", Rest: map[string]tables.Value{"A": tables.Int64(1), "Free": tables.Int64(1)}}))
		rows := intrude(t, w.s, "Rest")
		intact := rows.read(t, key)
		for what, change := range map[string]func(row map[string]any){
			"changed": func(row map[string]any) { row["Free"] = "2" },
			"removed": func(row map[string]any) { delete(row, "Free"); delete(row, "Free@odata.type") },
			"added":   func(row map[string]any) { row["Other"] = "x" },
		} {
			row := maps.Clone(intact)
			change(row)
			rows.put(t, key, row)
			assert.Check(t, assert.Err(free.Get(t.Context(), key)))
			if writer == signed {
				refusedBy(t, assert.Err(signed.Get(t.Context(), key)), what+", where nothing is listed")
			}
		}
		for what, change := range map[string]func(row map[string]any){
			"changed": func(row map[string]any) { row["A"] = "2" },
			"removed": func(row map[string]any) { delete(row, "A"); delete(row, "A@odata.type") },
			"added":   func(row map[string]any) { row["B"] = 2 },
		} {
			row := maps.Clone(intact)
			change(row)
			rows.put(t, key, row)
			refusedBy(t, assert.Err(free.Get(t.Context(), key)), "what is not listed, "+what)
		}
	}
	_, err := patterns.NewRepository(w.account.Table("Accounts"), patterns.Schema[account]{Key: func(a *account) tables.Key { return accountKey(a.ID) }},
		encryption.New[account]("encryption", w.registry, &encryption.Options{Unsigned: []string{"EntityType"}}), heterogeneous.NewType[account]("Account", 2, nil))
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "EntityType") {
		t.Errorf("the type is not signed: %v", err)
	}
}

// TestTypeAndVersionAreSealed: whoever changes EntityType does not choose the steps by which the rest is read, of the whole row or of a
// part, with the seal or after it was taken away with all that is encrypted.
func TestTypeAndVersionAreSealed(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	type older struct{ ID, Email, City, Secret string }
	kind := heterogeneous.NewType[account]("Account", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{heterogeneous.From(1, func(old *older) (*account, error) {
		return &account{ID: old.ID, Email: old.Email, City: "by the step", Secret: old.Secret}, nil
	})}})
	r := w.accounts(t, nil, kind)
	assert.Check(t, r.Insert(t.Context(), &account{ID: "1", City: "Seattle", Secret: "x"}))
	rows := intrude(t, w.s, "Accounts")
	intact := rows.read(t, accountKey("1"))
	assert.Equal(assert.Fatal(t), intact["EntityType"], "Account@2", "EntityType")
	refused := func(what string, partly bool, change func(row map[string]any)) {
		t.Helper()
		row := maps.Clone(intact)
		change(row)
		rows.put(t, accountKey("1"), row)
		refusedBy(t, assert.Err(r.Get(t.Context(), accountKey("1"))), what)
		if partly {
			refusedBy(t, assert.Err(r.Query().Partition("p").Select("City", "EntityType").First(t.Context())), what+", a projection")
		}
	}
	unseal := func(row map[string]any) {
		for _, name := range []string{encryption.SealProperty, "Secret"} {
			delete(row, name)
			delete(row, name+"@odata.type")
		}
	}
	refused("another version", true, func(row map[string]any) { row["EntityType"] = "Account@1" })
	refused("no version", false, func(row map[string]any) { delete(row, "EntityType") })
	refused("no seal", true, unseal)
	refused("another version and no seal", true, func(row map[string]any) { row["EntityType"] = "Account@1"; unseal(row) })
}

// TestRowsOfAnotherAccount: a row, a data key and a stream of one account are refused in another one, under the same key, table and row;
// after a restore they are read by programs that give the identity of the account from which they come.
func TestRowsOfAnotherAccount(t *testing.T) {
	ctx := t.Context()
	s := storagetest.Simulator(t, nil)
	w, key := worldOn(t, s), accountKey("1")
	assert.Check(t, w.accounts(t, nil).Insert(ctx, &account{ID: "1", Email: "june@contoso.com", Secret: "x"}), assert.Err(fetchBeacon(ctx, w.registry, "email", 0)))
	there := storagetest.Simulator(t, &storagetest.SimulatorOptions{Account: "fabrikam"})
	to := func(identity string) *world {
		account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(there.ConnectionString, &tables.AccountOptions{ClientOptions: there.ClientOptions, Identity: identity}))
		other := &world{s: there, account: account, keys: account.Table(w.keys.Name()), wrapper: w.wrapper}
		assert.Check(t, other.keys.CreateIfMissing(ctx))
		other.registry = other.open(t, w.wrapper, nil)
		return other
	}
	other := to("")
	r := other.accounts(t, nil)
	for _, name := range []string{"Accounts", w.keys.Name()} {
		for row, err := range w.account.Table(name).Entities().Query().AllowTableScan().All(ctx) {
			assert.Check(t, err)
			intrude(t, there, name).put(t, row.Key, intrude(t, s, name).read(t, row.Key))
		}
	}
	shared := *other // whose data keys are those of the first account, from its table
	shared.registry = w.registry
	refusedBy(t, assert.Err(r.Get(ctx, key)), "a registry of another account")
	refusedBy(t, assert.Err(shared.accounts(t, nil).Get(ctx, key)), "a row of another account")
	refusedBy(t, assert.Err(shared.accounts(t, nil).Query().Partition("p").Select("Email").First(ctx)), "a row of another account, a projection")
	assert.ErrorIs(t, r.Insert(ctx, &account{ID: "2"}), tables.ErrWiring, "a write under a data key of another account")
	assert.ErrorIs(t, assert.Err(fetchBeacon(ctx, other.registry, "email", 0)), tables.ErrGarbled, "a beacon of another account")
	assert.ErrorIs(t, other.registry.Check(ctx), tables.ErrGarbled, "Check")
	restored := to(w.account.Identity())
	if a, err := restored.accounts(t, nil).Get(ctx, key); err != nil || a.Secret != "x" {
		t.Errorf("after a restore: %+v, %v", a, err)
	}
	assert.Check(t, restored.registry.Check(ctx), restored.accounts(t, nil).Insert(ctx, &account{ID: "2"}))
}

type tenantKey struct{}

// TestRequiredContext: what is read under another context than it was written under is refused; the context is stored nowhere, and
// an error of the function is the operation's.
func TestRequiredContext(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	missing := errors.New("the request has no tenant")
	r := w.accounts(t, &encryption.Options{Context: func(ctx context.Context, _ tables.Key) (map[string]string, error) {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		if tenant == "" {
			return nil, missing
		}
		return map[string]string{"tenant": tenant}, nil
	}})
	as := func(tenant string) context.Context { return context.WithValue(t.Context(), tenantKey{}, tenant) }
	assert.Check(t, r.Insert(as("contoso"), &account{ID: "1", Secret: "x"}), assert.Err(r.Get(as("contoso"), accountKey("1"))))
	for _, text := range printed(intrude(t, w.s, "Accounts").read(t, accountKey("1"))) {
		if strings.Contains(text, "contoso") {
			t.Errorf("the context is stored: %s", text)
		}
	}
	for _, tenant := range []string{"fabrikam", "Contoso", "contoso "} {
		refusedBy(t, assert.Err(r.Get(as(tenant), accountKey("1"))), tenant)
		refusedBy(t, assert.Err(r.Query().Partition("p").Select("Secret").First(as(tenant))), tenant+", a projection")
	}
	for what, err := range map[string]error{"a read": assert.Err(r.Get(t.Context(), accountKey("1"))), "a write": r.Insert(t.Context(), &account{ID: "2"})} {
		if !errors.Is(err, missing) || !errors.Is(err, tables.ErrInvalid) || errors.Is(err, tables.ErrGarbled) {
			t.Errorf("%s without a tenant: %v", what, err)
		}
	}
	different := map[string]bool{}
	for _, pairs := range []map[string]string{nil, {"a": ""}, {"": "a"}, {"a": "b"}, {"ab": ""}, {"a": "", "b": ""}, {"a": "b", "b": "a"}} {
		different[encryption.EncodeContext(pairs)] = true
	}
	if len(different) != 7 {
		t.Errorf("7 contexts have %d forms", len(different))
	}
}

// dataKey is the world's one data key.
func (w *world) dataKey(t testing.TB) (encryption.DataKeyID, []byte) {
	t.Helper()
	for info, err := range w.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		if !info.Current {
			continue
		}
		wrapped, _ := bag(t, w.keys, tables.Key{Partition: "datakeys", Row: "key_" + info.ID.String()}).Get("Wrapped").Bytes()
		return info.ID, assert.Must[[]byte](t)(w.wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: info.WrappedBy, Algorithm: encryption.AlgorithmA256KW, Bytes: wrapped}))
	}
	t.Fatal("the registry has no current data key")
	return encryption.DataKeyID{}, nil
}
