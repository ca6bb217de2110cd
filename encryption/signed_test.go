package encryption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// account has a property that is encrypted, and two that are signed.
type account struct {
	tables.Meta
	ID     string
	Email  string `encrypt:"sign"`
	Role   string `table:",omitempty" encrypt:"sign"`
	City   string
	Secret string `encrypt:"true"`
}

func (w *world) accounts(t testing.TB, o *encryption.Options, others ...patterns.Pattern[account]) *patterns.Repository[account] {
	t.Helper()
	r := harness.Must[*patterns.Repository[account]](t)(patterns.NewRepository(w.account.Table("Accounts"), patterns.Schema[account]{
		Key: func(a *account) tables.Key { return tables.Key{Partition: "p", Row: "acc_" + a.ID} }, Rows: compoundkey.Starting("acc"),
	}, append([]patterns.Pattern[account]{encryption.New[account]("encryption", w.registry, o)}, others...)...))
	harness.Check(t, r.Table().CreateIfMissing(t.Context()))
	return r
}

func accountKey(id string) tables.Key { return tables.Key{Partition: "p", Row: "acc_" + id} }

// TestSignedProperties: they are stored in plain and can be in conditions; one that was changed, removed, added or exchanged for that
// of another version is refused, in the row, in a copy and in a projection; what is not signed is not.
func TestSignedProperties(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	byCity := intrapartition.NewIndex("city", func(a *account) compoundkey.Part { return compoundkey.String(a.City) }, nil)
	r := w.accounts(t, nil, byCity)
	harness.Check(t, r.Insert(ctx, &account{ID: "1", Email: "june@contoso.com", Role: "reader", City: "Seattle", Secret: "x"}),
		r.Insert(ctx, &account{ID: "2", Email: "mallory@contoso.com", City: "Oslo", Secret: "y"}))
	rows := intrude(t, w.s, "Accounts")
	whole := rows.read(t, accountKey("1"))
	if whole["Email"] != "june@contoso.com" || whole["Role"] != "reader" {
		t.Errorf("signed properties are stored as %v, %v", whole["Email"], whole["Role"])
	}
	found := harness.Must[*account](t)(r.Query().Partition("p").Where(tables.Eq("Email", "june@contoso.com")).First(ctx))
	if found.ID != "1" || found.Role != "reader" {
		t.Errorf("a condition finds %+v", found)
	}
	reads := map[string]func() error{
		"the row":      func() error { return second(r.Get(ctx, accountKey("1"))) },
		"a projection": func() error { return second(r.Query().Partition("p").Row("acc_1").Select("Email", "Role").First(ctx)) },
		"the copy":     func() error { return second(byCity.In("p").Get(ctx, compoundkey.String("Seattle"))) },
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
	harness.Check(t, second(r.Update(ctx, accountKey("1"), func(a *account) error { a.Role = ""; return nil })))
	attempt("added", func(row map[string]any) { row["Role"] = "owner" })
	row := rows.read(t, accountKey("1"))
	row["City"] = "Berlin"
	rows.put(t, accountKey("1"), row)
	if a, err := r.Get(ctx, accountKey("1")); err != nil || a.City != "Berlin" {
		t.Errorf("what is not signed: %+v, %v", a, err)
	}
}

// TestSignedByTheResolver: Options.Sign chooses, and an encryption may sign only.
func TestSignedByTheResolver(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	table := w.account.Table("Rest")
	harness.Check(t, table.Create(t.Context()))
	r := anythings(t, table, w.registry, &encryption.Options{Sign: func(_, _, name string) bool { return name != "Free" }})
	harness.Check(t, r.Insert(t.Context(), &anything{PartitionKey: "p", RowKey: "1", Rest: map[string]tables.Value{"A": tables.Int64(1), "Free": tables.Int64(1)}}))
	rows, key := intrude(t, w.s, "Rest"), tables.Key{Partition: "p", Row: "1"}
	row := rows.read(t, key)
	row["Free"] = "2"
	rows.put(t, key, row)
	harness.Check(t, second(r.Get(t.Context(), key)))
	row["B"] = 2
	rows.put(t, key, row)
	refusedBy(t, second(r.Get(t.Context(), key)), "a property that was added")
	delete(row, "B")
	row["A"] = "2"
	rows.put(t, key, row)
	refusedBy(t, second(r.Get(t.Context(), key)), "a property that was changed")
}

// TestTypeAndVersionAreSealed: whoever changes EntityType does not choose the steps by which the rest is read.
func TestTypeAndVersionAreSealed(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	type older struct{ ID, Email, City, Secret string }
	kind := heterogeneous.NewType[account]("Account", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{heterogeneous.From(1, func(old *older) (*account, error) {
		return &account{ID: old.ID, Email: old.Email, City: "by the step", Secret: old.Secret}, nil
	})}})
	r := w.accounts(t, nil, kind)
	harness.Check(t, r.Insert(t.Context(), &account{ID: "1", City: "Seattle", Secret: "x"}))
	rows := intrude(t, w.s, "Accounts")
	row := rows.read(t, accountKey("1"))
	if row["EntityType"] != "Account@2" {
		t.Fatalf("EntityType is %v", row["EntityType"])
	}
	row["EntityType"] = "Account@1"
	rows.put(t, accountKey("1"), row)
	refusedBy(t, second(r.Get(t.Context(), accountKey("1"))), "another version")
	delete(row, "EntityType")
	rows.put(t, accountKey("1"), row)
	refusedBy(t, second(r.Get(t.Context(), accountKey("1"))), "no version")
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
	harness.Check(t, r.Insert(as("contoso"), &account{ID: "1", Secret: "x"}), second(r.Get(as("contoso"), accountKey("1"))))
	for _, text := range printed(intrude(t, w.s, "Accounts").read(t, accountKey("1"))) {
		if strings.Contains(text, "contoso") {
			t.Errorf("the context is stored: %s", text)
		}
	}
	for _, tenant := range []string{"fabrikam", "Contoso", "contoso "} {
		refusedBy(t, second(r.Get(as(tenant), accountKey("1"))), tenant)
		refusedBy(t, second(r.Query().Partition("p").Select("Secret").First(as(tenant))), tenant+", a projection")
	}
	for what, err := range map[string]error{"a read": second(r.Get(t.Context(), accountKey("1"))), "a write": r.Insert(t.Context(), &account{ID: "2"})} {
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

// TestVersion1Rows: rows of version 1 are read as they were; where something is declared that they do not protect, only with
// AcceptPlaintext; and Reencrypt writes them in version 2, once.
func TestVersion1Rows(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	ctx := t.Context()
	table := w.account.Table("Accounts")
	harness.Check(t, table.Create(ctx))
	id, key := w.dataKey(t)
	for i := range 3 {
		at := accountKey(fmt.Sprint(i))
		secret, seal, err := encryption.SealVersion1(key, id, "accounts", at, "Secret", tables.String("x"))
		harness.Check(t, err)
		put(t, table, &tables.Entity{Key: at, Properties: tables.Properties{text("ID", fmt.Sprint(i)), text("Email", "june@contoso.com"), text("City", ""),
			{Name: "Secret", Value: tables.Binary(secret)}, {Name: encryption.SealProperty, Value: tables.Binary(seal)}}})
	}
	type plain struct {
		tables.Meta
		ID, Email, City string
		Secret          string `encrypt:"true"`
	}
	of := func(o *encryption.Options, others ...patterns.Pattern[plain]) *patterns.Repository[plain] {
		return harness.Must[*patterns.Repository[plain]](t)(patterns.NewRepository(table, patterns.Schema[plain]{
			Key: func(p *plain) tables.Key { return accountKey(p.ID) }}, append([]patterns.Pattern[plain]{encryption.New[plain]("encryption", w.registry, o)}, others...)...))
	}
	nothing := func(context.Context, tables.Key) (map[string]string, error) { return nil, nil }
	signing := func(_, _, name string) bool { return name == "Email" }
	for what, c := range map[string]struct {
		o       encryption.Options
		refused bool
	}{
		"nothing more":                       {encryption.Options{}, false},
		"RefuseVersion1":                     {encryption.Options{RefuseVersion1: true}, true},
		"a context":                          {encryption.Options{Context: nothing}, true},
		"a signed one":                       {encryption.Options{Sign: signing}, true},
		"a signed one, in migration":         {encryption.Options{Sign: signing, AcceptPlaintext: true}, false},
		"a context, in migration":            {encryption.Options{Context: nothing, AcceptPlaintext: true}, false},
		"a signed one that it does not have": {encryption.Options{Sign: func(_, _, name string) bool { return name == "Other" }}, false},
	} {
		a, err := of(&c.o).Get(ctx, accountKey("1"))
		part, partErr := of(&c.o).Query().Partition("p").Row("acc_1").Select("Secret", "Email").First(ctx)
		if c.refused {
			refusedBy(t, err, what)
			refusedBy(t, partErr, what+", a projection")
		} else if err != nil || a.Secret != "x" || partErr != nil || part.Secret != "x" {
			t.Errorf("%s: %+v, %v; a projection %+v, %v", what, a, err, part, partErr)
		}
	}
	typed := of(nil, heterogeneous.NewType[plain]("Plain", 1, nil))
	harness.Check(t, second(typed.Get(ctx, accountKey("1"))))

	r := w.accounts(t, &encryption.Options{AcceptPlaintext: true})
	for _, want := range []int64{3, 0} {
		if p, err := encryption.Reencrypt(ctx, r, nil); err != nil || p.Written != want || p.Read != 3 {
			t.Errorf("Reencrypt: %+v, %v; want %d", p, err, want)
		}
	}
	strict := w.accounts(t, &encryption.Options{RefuseVersion1: true})
	harness.Check(t, second(strict.Get(ctx, accountKey("1"))), second(strict.Query().Partition("p").Select("Secret").First(ctx)))
	rows := intrude(t, w.s, "Accounts")
	row := rows.read(t, accountKey("1"))
	delete(row, encryption.SealProperty)
	delete(row, encryption.SealProperty+"@odata.type")
	rows.put(t, accountKey("1"), row)
	for what, r := range map[string]*patterns.Repository[account]{"strict": strict, "not strict": w.accounts(t, nil)} {
		refusedBy(t, second(r.Query().Partition("p").Row("acc_1").Select("Secret", "Email").First(ctx)), "a projection whose seal was removed, "+what)
	}
}

// dataKey is the world's one data key.
func (w *world) dataKey(t testing.TB) (encryption.DataKeyID, []byte) {
	t.Helper()
	for info, err := range w.registry.DataKeys(t.Context()) {
		harness.Check(t, err)
		if !info.Current {
			continue
		}
		wrapped, _ := bag(t, w.keys, tables.Key{Partition: "datakeys", Row: "key_" + info.ID.String()}).Get("Wrapped").Bytes()
		return info.ID, harness.Must[[]byte](t)(w.wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: info.WrappedBy, Algorithm: encryption.AlgorithmA256KW, Bytes: wrapped}))
	}
	t.Fatal("the registry has no current data key")
	return encryption.DataKeyID{}, nil
}
