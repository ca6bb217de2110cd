package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// operations is everything that a table offers, done to one row.
func operations(key tables.Key) map[string]struct {
	needs access.Permission
	do    func(ctx context.Context, table *tables.Table) error
} {
	type op = struct {
		needs access.Permission
		do    func(ctx context.Context, table *tables.Table) error
	}
	stored := func() *tables.Entity {
		e := bag(key)
		e.ETag = `W/"datetime'2026-11-20T13%3A00%3A00.0000000Z'"`
		return e
	}
	transaction := func(fill func(x *tables.Transaction)) func(context.Context, *tables.Table) error {
		return func(ctx context.Context, table *tables.Table) error {
			x := table.NewTransaction()
			fill(x)
			_, err := x.Commit(ctx)
			return err
		}
	}
	query := func(q func(*tables.Table) tables.Query[tables.Entity]) func(context.Context, *tables.Table) error {
		return func(ctx context.Context, table *tables.Table) error {
			for _, err := range q(table).All(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	second := tables.Key{Partition: key.Partition, Row: key.Row + "!"}
	return map[string]op{
		"Get":     {access.Query, func(ctx context.Context, t *tables.Table) error { _, err := t.Entities().Get(ctx, key); return err }},
		"Insert":  {access.Add, func(ctx context.Context, t *tables.Table) error { return t.Entities().Insert(ctx, bag(key)) }},
		"Replace": {access.Update, func(ctx context.Context, t *tables.Table) error { return t.Entities().Replace(ctx, stored()) }},
		"Merge":   {access.Update, func(ctx context.Context, t *tables.Table) error { return t.Entities().Merge(ctx, stored()) }},
		"Upsert":  {access.Add | access.Update, func(ctx context.Context, t *tables.Table) error { return t.Entities().Upsert(ctx, bag(key)) }},
		"Delete":  {access.Delete, func(ctx context.Context, t *tables.Table) error { return t.Entities().Delete(ctx, stored()) }},
		"DeleteUnconditional": {access.Delete, func(ctx context.Context, t *tables.Table) error {
			return t.Entities().DeleteUnconditional(ctx, key)
		}},
		"transaction of inserts": {access.Add, transaction(func(x *tables.Transaction) { x.Insert(bag(second)); x.Insert(bag(key)) })},
		"transaction of deletes": {access.Delete, transaction(func(x *tables.Transaction) { x.DeleteUnconditional(second); x.DeleteUnconditional(key) })},
		"transaction of merges": {access.Update, transaction(func(x *tables.Transaction) {
			e := stored()
			e.Key = second
			x.Merge(e)
			x.Merge(stored())
		})},
		"query of the row": {access.Query, query(func(t *tables.Table) tables.Query[tables.Entity] {
			return t.Entities().Query().Partition(key.Partition).Where(tables.Eq("RowKey", key.Row))
		})},
		"query of rows": {access.Query, query(func(t *tables.Table) tables.Query[tables.Entity] {
			return t.Entities().Query().Partition(key.Partition).Where(tables.And(tables.Ge("RowKey", key.Row), tables.Le("RowKey", key.Row+"!")))
		})},
		"the SDK's own": {access.Query, func(ctx context.Context, t *tables.Table) error {
			_, err := t.Client().GetEntity(ctx, key.Partition, key.Row, nil)
			return err
		}},
		"the SDK's own transaction": {access.Update, func(ctx context.Context, t *tables.Table) error {
			_, err := t.Client().SubmitTransaction(ctx, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeUpdateMerge, IfMatch: &stored().ETag,
				Entity: []byte(`{"PartitionKey":"` + key.Partition + `","RowKey":"` + key.Row + `"}`)}}, nil)
			return err
		}},
	}
}

// TestClientsAskOnlyForWhatTheyMay: a key outside of the range and an operation without its permission are typed errors, and
// nothing is sent; what the token allows reaches the service.
func TestClientsAskOnlyForWhatTheyMay(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	rows := access.Rows("Sales", compoundkey.Range("b", "d"))
	refused, sent := 0, 0
	for _, key := range []tables.Key{at("Sales", "b"), at("Sales", "c"), at("Sales", "a"), at("Sales", "d"), at("Sale", "c"), at("Salesx", "c"), at("Sales", "O'B")} {
		for name, op := range operations(key) {
			if name == "the SDK's own transaction" && strings.Contains(key.Row, "'") {
				continue // the SDK does not double the quote, and the service cannot read the address either
			}
			for p := access.Query; p <= access.Everything; p++ {
				if race.Enabled && p&(p-1) != 0 && p != access.Everything {
					continue
				}
				client, counter := o.counted(access.Grant{Range: rows, Permissions: p})
				err := op.do(t.Context(), client.Table())
				var want error
				switch {
				case !p.Has(op.needs):
					want = access.ErrNotPermitted
				case !rows.Contains(key):
					want = access.ErrOutside
				}
				if want == nil {
					sent++
					if counter.Count() == 0 || errors.Is(err, tables.ErrDenied) {
						t.Errorf("%s %v with %v: %d requests, %v", name, key, p, counter.Count(), err)
					}
					continue
				}
				refused++
				var typed *tables.Error
				own := strings.HasPrefix(name, "the SDK's")
				if counter.Count() != 0 || !errors.Is(err, want) || !errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrUnknownOutcome) || !own && !errors.As(err, &typed) {
					t.Errorf("%s %v with %v: %d requests, %v", name, key, p, counter.Count(), err)
				}
			}
		}
	}
	t.Logf("%d operations refused, %d sent", refused, sent)
	if refused < 200 || sent < 50 || !race.Enabled && refused < 1000 {
		t.Errorf("%d operations refused, %d sent", refused, sent)
	}
}

// TestClientsStayInTheirTable: other tables, the table itself, its policies, other services.
func TestClientsStayInTheirTable(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	client, counter := o.counted(access.Grant{Range: access.WholeTable(), Permissions: access.Everything})
	ctx, other := t.Context(), client.Account().Table("Other")
	policies := assert.Must[*access.Policies](t)(access.NewPolicies(client.Table(), nil))
	_, get := other.Entities().Get(ctx, at("p", "r"))
	_, list := policies.List(ctx)
	_, properties := client.Account().TableService().GetProperties(ctx, nil)
	_, listed := client.Account().TableService().NewListTablesPager(nil).NextPage(ctx)
	for i, err := range []error{get, list, properties, listed, other.Create(ctx), client.Table().Create(ctx), client.Table().Drop(ctx), policies.Revoke(ctx, "a"),
		policies.Create(ctx, access.Policy{ID: "a", Permissions: access.Query}), other.Entities().Insert(ctx, bag(at("p", "r")))} {
		if !errors.Is(err, access.ErrNotPermitted) || !errors.Is(err, tables.ErrDenied) {
			t.Errorf("%d: %v", i, err)
		}
	}
	assert.Equal(t, counter.Count(), 0, "requests")
	if eventual.QueueService(client.Account()) != nil || blobstorage.Service(client.Account()) != nil || blobstorage.Container(client.Account(), "c") != nil {
		t.Error("a table's token opens another service")
	}
	assert.Check(t, client.Table().Entities().Insert(ctx, bag(at("p", "r")))) // and still works
	assert.Equal(t, counter.Count(), 1, "requests of one")
}

// TestQueriesThatMissTheRange: no request where nothing can be found, one where something can.
func TestQueriesThatMissTheRange(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	through := access.Through(at("B", "m"), at("D", "m"))
	for _, c := range []struct {
		filter string
		misses bool
	}{
		{"", false}, {"PartitionKey eq 'A'", true}, {"PartitionKey eq 'B'", false}, {"PartitionKey eq 'E'", true}, {"PartitionKey lt 'B'", true}, {"PartitionKey le 'B'", false},
		{"PartitionKey gt 'D'", true}, {"PartitionKey ge 'D'", false}, {"PartitionKey eq 'B' and RowKey lt 'm'", true}, {"PartitionKey eq 'B' and RowKey le 'm'", false},
		{"PartitionKey eq 'D' and RowKey gt 'm'", true}, {"PartitionKey eq 'D' and RowKey ge 'm'", false}, {"PartitionKey eq 'C' and RowKey lt 'a'", false},
		{"PartitionKey eq 'B' and RowKey eq 'a'", true}, {"PartitionKey eq 'B' and RowKey eq 'x'", false}, {"PartitionKey eq 'A' or PartitionKey eq 'B'", false},
		{"not (PartitionKey eq 'C')", false}, {"Age gt 5", false},
	} {
		client, counter := o.counted(access.Grant{Range: through, Permissions: access.Query})
		_, err := client.Table().Client().NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &c.filter}).NextPage(t.Context())
		if c.misses != errors.Is(err, access.ErrOutside) || !c.misses && err != nil || c.misses == (counter.Count() == 1) {
			t.Errorf("%s: %d requests, %v", c.filter, counter.Count(), err)
		}
	}
}

// TestRepositoriesOverATokenWork: what is built on a table works behind a token that reaches far enough, at the same price.
func TestRepositoriesOverATokenWork(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	client, counter := o.counted(access.Grant{Range: access.Rows("Sales", compoundkey.All().Under("empid")), Permissions: access.Everything})
	type employee struct {
		tables.Meta
		Department string
		ID         int
	}
	employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(client.Table(), patterns.Schema[employee]{Prefix: "empid",
		Key: func(e *employee) tables.Key {
			return at(e.Department, compoundkey.Join("empid", compoundkey.Int(e.ID, 6)))
		}}))
	e := &employee{Department: "Sales", ID: 1}
	assert.Check(t, employees.Insert(t.Context(), e), employees.Replace(t.Context(), e), employees.Delete(t.Context(), e))
	assert.Equal(t, counter.Reset(), 3, "requests for three calls")
	wantIs(t, employees.Insert(t.Context(), &employee{Department: "Tax", ID: 1}), access.ErrOutside, tables.ErrDenied)
	assert.Equal(t, counter.Count(), 0, "requests")
}

func TestParseRefuses(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	good := o.sign(access.Grant{Range: access.Partition("Sales"), Permissions: access.Query}).RevealAddress()
	https := strings.Replace(good, "http:", "https:", 1)
	for name, address := range map[string]string{
		"nothing": "", "no address": "\x00", "no host": "http:///a?b", "no table": "http://contoso.test/?sig=1", "no query": strings.Split(good, "?")[0],
		"with a user": strings.Replace(good, "http://", "http://u:p@", 1), "twice": good + "&sp=r", "of an account": good + "&ss=t&srt=sco", "another table": strings.Replace(good, "tn=", "tn=x", 1),
		"no signature": strings.Replace(good, "sig=", "sig=&x=", 1), "letters": strings.Replace(good, "sp=r", "sp=rwx", 1), "no time": strings.Replace(good, "se=", "se=x", 1),
		"no start": strings.Replace(good, "st=", "st=x", 1), "end before start": strings.Replace(good, "epk=Sales", "epk=A", 1), "no permission": strings.Replace(good, "sp=r", "sp=", 1),
		"HTTPS only": strings.Replace(good, "spr=https%2Chttp", "spr=https", 1), "illegible": good + "&%", "fragment": good + "#x",
	} {
		token, err := access.Parse(address)
		wantIs(t, err, tables.ErrInvalid)
		if err == nil || !token.IsZero() || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%s: %v, %v", name, token, err)
		}
	}
	for _, address := range []string{good, https, strings.Replace(good, "?", "()?", 1)} {
		assert.Check(t, assert.Err(access.Parse(address)))
	}
	_, err := access.Open(access.Token{}, nil)
	wantIs(t, err, tables.ErrWiring)
}

// TestTimeIsTheServices: expiry, start, and a clock that is behind.
func TestTimeIsTheServices(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	o.insert(at("p", "r"))
	now := o.s.Clock.Now()
	get := func(c *access.Client) error {
		_, err := c.Table().Entities().Get(t.Context(), at("p", "r"))
		return err
	}
	grant := access.Grant{Range: access.WholeTable(), Permissions: access.Query, Lifetime: time.Hour}
	hour := o.open(grant)
	exact := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, o.s), o.s.AccountKey, &access.SignerOptions{Now: func() time.Time { return now.Add(10 * time.Minute) }, Skew: time.Second}))
	ahead := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, o.s), o.s.AccountKey, &access.SignerOptions{Now: func() time.Time { return now.Add(10 * time.Minute) }}))
	none := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, o.s), o.s.AccountKey, &access.SignerOptions{Now: func() time.Time { return now.Add(10 * time.Minute) }, Skew: -1}))
	grant.Table, grant.InsecureHTTP = o.table.Name(), true
	by := func(s *access.Signer) *access.Client {
		return openToken(t, o.s, assert.Must[access.Token](t)(s.Sign(grant)))
	}
	assert.Check(t, get(hour), get(by(ahead)), get(by(none))) // a signer ten minutes ahead of the service
	wantIs(t, get(by(exact)), tables.ErrDenied)
	grant.Start = now.Add(30 * time.Minute)
	later := by(o.signer)
	wantIs(t, get(later), tables.ErrDenied)
	o.s.Wait(30*time.Minute - time.Second)
	wantIs(t, get(later), tables.ErrDenied)
	o.s.Wait(2 * time.Second) // times are whole seconds
	assert.Check(t, get(later), get(hour))
	o.s.Wait(30*time.Minute - 4*time.Second)
	assert.Check(t, get(hour))
	o.s.Wait(3 * time.Second)
	wantIs(t, get(hour), tables.ErrDenied)
	o.s.Wait(time.Hour)
	wantIs(t, get(later), tables.ErrDenied)
}

// TestExpiryOnTheService is as far as real time goes: a token of the past and one of the future.
func TestExpiryOnTheService(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	o.insert(at("p", "r"))
	for offset, want := range map[time.Duration]error{-2 * time.Hour: tables.ErrDenied, 0: nil, 2 * time.Hour: tables.ErrDenied} {
		now := nowOf(o.s)
		signer := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, o.s), o.s.AccountKey, &access.SignerOptions{Now: func() time.Time { return now().Add(offset) }}))
		token := assert.Must[access.Token](t)(signer.Sign(access.Grant{Table: o.table.Name(), Range: access.WholeTable(), Permissions: access.Query, InsecureHTTP: true}))
		assert.ErrorIs(t, assert.Err(openToken(t, o.s, token).Table().Entities().Get(t.Context(), at("p", "r"))), want, offset)
	}
}

// TestHTTPSOnly: the service refuses such a token without TLS, and nothing here sends it so.
func TestHTTPSOnly(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	secure := strings.Replace(s.TableEndpoint, "http:", "https:", 1)
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: secure}, s.AccountName, s.AccountKey, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	assert.Check(t, account.Table("Employees").Create(t.Context()), account.Table("Employees").Entities().Insert(t.Context(), bag(at("p", "r"))))
	signer := assert.Must[*access.Signer](t)(access.NewSigner(account, s.AccountKey, &access.SignerOptions{Now: s.Clock.Now}))
	token := assert.Must[access.Token](t)(signer.Sign(access.Grant{Table: "Employees", Range: access.WholeTable(), Permissions: access.Query}))
	assert.Check(t, assert.Err(openToken(t, s, token).Table().Entities().Get(t.Context(), at("p", "r"))))
	plain := strings.Replace(token.RevealAddress(), "https:", "http:", 1)
	if status, text := send(t, s, "GET", plain, ""); status != 403 || !strings.Contains(text, "AuthorizationProtocolMismatch") {
		t.Errorf("%d %s", status, text)
	}
	_, err := access.Parse(plain)
	wantIs(t, err, tables.ErrInvalid)
}
