package access_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ranges are ranges with each combination of bounds, all around the key (Sales, empid_000123).
func ranges() map[string]access.Range {
	return map[string]access.Range{
		"table":             access.WholeTable(),
		"partition":         access.Partition("Sales"),
		"partitions":        access.Partitions(compoundkey.Range("S", "T")),
		"partitions from":   access.Partitions(compoundkey.Range("S", "")),
		"partitions to":     access.Partitions(compoundkey.Range("", "T")),
		"rows":              access.Rows("Sales", compoundkey.Range("empid_000123", "empid_000124")),
		"rows from":         access.Rows("Sales", compoundkey.Range("empid", "")),
		"rows to":           access.Rows("Sales", compoundkey.Range("", "f")),
		"starting":          access.Rows("Sales", compoundkey.Starting("empid", compoundkey.Int(123, 6))),
		"all of a prefix":   access.Rows("Sales", compoundkey.All().Under("empid")),
		"row":               access.Row(at("Sales", "empid_000123")),
		"through":           access.Through(at("Marketing", "x"), at("Sales", "empid_000123")),
		"through from none": access.Through(at("", ""), at("Sales", "empid_000123")),
		"quotes and spaces": access.Through(at("O'Brien & Söhne+1=2", " 'a' "), at("Sales", "empid_000123 ü€ +&='")),
	}
}

// TestEveryCombinationIsAccepted: the service takes a token with each combination of the fields.
func TestEveryCombinationIsAccepted(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	o.insert(at("Sales", "empid_000123"))
	hour := nowOf(o.s)().Truncate(time.Second).Add(time.Hour)
	o.put(access.Policy{ID: "all said", Permissions: access.Query, Start: hour.Add(-2 * time.Hour), Expiry: hour})
	tried := 0
	for name, keys := range ranges() {
		for _, g := range []access.Grant{
			{Permissions: access.Query},
			{Permissions: access.Everything, Lifetime: time.Minute},
			{Permissions: access.Query | access.Delete, Start: hour.Add(-2 * time.Hour).In(time.FixedZone("", 3*3600))},
			{Policy: "all said"},
		} {
			g.Range = keys
			token := o.sign(g)
			status, text := send(t, o.s, http.MethodGet, token.RevealAddress(), "")
			if status != http.StatusOK || !strings.Contains(text, "empid_000123") {
				t.Errorf("%s, %+v: %d %s", name, g, status, text)
			}
			if _, err := openToken(t, o.s, token).Table().Entities().Get(t.Context(), at("Sales", "empid_000123")); err != nil {
				t.Errorf("%s, %+v: %v", name, g, err)
			}
			tried++
		}
	}
	if tried < 50 {
		t.Errorf("%d tokens", tried)
	}
}

// TestTamperedTokensAreRefused: each parameter left out, changed, or added.
func TestTamperedTokensAreRefused(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	o.insert(at("Sales", "empid_000123"))
	now := nowOf(o.s)().Truncate(time.Second)
	readers := access.Policy{ID: "readers", Start: now.Add(-time.Hour), Expiry: now.Add(time.Hour), Permissions: access.Query}
	writers := readers
	writers.ID = "writers"
	o.put(readers, writers)
	wider := map[string]string{"sv": "2020-12-06", "sp": "raud", "st": "2001-01-01T00:00:00Z", "se": "2099-01-01T00:00:00Z", "spr": "https", "si": "writers",
		"spk": "A", "srk": "a", "epk": "Z", "erk": "z", "sip": "0.0.0.0-255.255.255.255", "sig": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
	tried := 0
	for _, g := range []access.Grant{
		{Permissions: access.Query, Range: access.WholeTable()},
		{Permissions: access.Query, Range: access.Rows("Sales", compoundkey.Range("empid_000123", "empid_000124"))},
		{Policy: "readers", Range: access.Partition("Sales")},
	} {
		address, query, _ := strings.Cut(o.sign(g).RevealAddress(), "?")
		whole := assert.Must[url.Values](t)(url.ParseQuery(query))
		try := func(name string, change func(q url.Values)) {
			q := assert.Must[url.Values](t)(url.ParseQuery(query))
			change(q)
			if q.Encode() == whole.Encode() {
				return
			}
			if status, text := send(t, o.s, http.MethodGet, address+"?"+q.Encode(), ""); status != http.StatusForbidden {
				t.Errorf("%v: %s: %d %s", o.sign(g), name, status, text)
			}
			tried++
		}
		for name, value := range wider {
			try(name+" changed", func(q url.Values) { q.Set(name, value) })
			if name != "sig" && name != "sv" { // without these two it is no token, and the service asks for one
				try(name+" left out", func(q url.Values) { q.Del(name) })
			}
		}
		if status, text := send(t, o.s, http.MethodGet, address+"?"+query, ""); status != http.StatusOK {
			t.Errorf("as it was: %d %s", status, text)
		}
		other := newOwner(t, o.s)
		if status, text := send(t, o.s, http.MethodGet, strings.Replace(address, o.table.Name(), other.table.Name(), 1)+"?"+query, ""); status != http.StatusForbidden {
			t.Errorf("another table: %d %s", status, text)
		}
	}
	if tried < 45 {
		t.Errorf("%d tampered tokens", tried)
	}
}

// TestGoldenToken: the text of a token, which others read.
func TestGoldenToken(t *testing.T) {
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.AccountEndpoints("contoso"), "contoso", "a2V5", nil))
	now := time.Date(2026, 11, 20, 15, 0, 0, 999, time.FixedZone("", 2*3600))
	signer := assert.Must[*access.Signer](t)(access.NewSigner(account, "a2V5", &access.SignerOptions{Now: func() time.Time { return now }}))
	token := assert.Must[access.Token](t)(signer.Sign(access.Grant{Table: "Employees", Permissions: access.Query | access.Update,
		Range: access.Rows("Sales & Co", compoundkey.Starting("empid", compoundkey.Int(123, 6)))}))
	const want = "https://contoso.table.core.windows.net/Employees?epk=Sales%20%26%20Co&erk=empid_000123%EF%BF%BD&se=2026-11-20T14%3A00%3A00Z" +
		"&sig=l%2Bk14rkhrrgJks0vbmON9De1tEAZPmpScZmvE0pp2AU%3D&sp=ru&spk=Sales%20%26%20Co&spr=https&srk=empid_000123&st=2026-11-20T12%3A45%3A00Z&sv=2019-02-02&tn=employees"
	assert.Equal(t, token.RevealAddress(), want)
	again := assert.Must[access.Token](t)(access.Parse(token.RevealAddress()))
	if again.RevealAddress() != token.RevealAddress() || again.Range() != token.Range() || again.Permissions() != token.Permissions() ||
		!again.Start().Equal(token.Start()) || !again.Expiry().Equal(token.Expiry()) || again.Table() != "Employees" || again.AllowsHTTP() {
		t.Errorf("%v read back is %v", token, again)
	}
}

func TestGrantsThatAreRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	account := accountOf(t, s)
	signer := assert.Must[*access.Signer](t)(access.NewSigner(account, s.AccountKey, nil))
	good := access.Grant{Table: "Employees", Range: access.WholeTable(), Permissions: access.Query, InsecureHTTP: true}
	assert.Check(t, assert.Err(signer.Sign(good)))
	for name, change := range map[string]func(g *access.Grant){
		"no table":             func(g *access.Grant) { g.Table = "" },
		"no name of a table":   func(g *access.Grant) { g.Table = "a\nb" },
		"no range":             func(g *access.Grant) { g.Range = access.Range{} },
		"no permission":        func(g *access.Grant) { g.Permissions = 0 },
		"no such permission":   func(g *access.Grant) { g.Permissions = 32 },
		"lifetime below 0":     func(g *access.Grant) { g.Lifetime = -time.Hour },
		"lifetime below 1 s":   func(g *access.Grant) { g.Lifetime = time.Millisecond },
		"ends before it start": func(g *access.Grant) { g.Start = time.Now().Add(2 * time.Hour) },
		"policy of two lines":  func(g *access.Grant) { g.Policy = "a\n2099-01-01" },
		"policy too long":      func(g *access.Grant) { g.Policy = strings.Repeat("a", 65) },
		"policy of ours":       func(g *access.Grant) { g.Policy = "_tpLock_a" },
		"HTTPS over HTTP":      func(g *access.Grant) { g.InsecureHTTP = false },
		"empty partition key":  func(g *access.Grant) { g.Range = access.Partition("") },
		"empty row key":        func(g *access.Grant) { g.Range = access.Row(at("p", "")) },
		"poisoned key":         func(g *access.Grant) { g.Range = access.Partition(compoundkey.Join("a", compoundkey.Int(10, 1))) },
		"poisoned span":        func(g *access.Grant) { g.Range = access.Rows("p", compoundkey.Range("a\n", "")) },
		"empty span":           func(g *access.Grant) { g.Range = access.Rows("p", compoundkey.Range("b", "b")) },
		"backward span":        func(g *access.Grant) { g.Range = access.Rows("p", compoundkey.Range("b", "a")) },
		"only the empty row":   func(g *access.Grant) { g.Range = access.Rows("p", compoundkey.Range("", " ")) },
		"only the empty part":  func(g *access.Grant) { g.Range = access.Partitions(compoundkey.Range("", " ")) },
		"all partitions":       func(g *access.Grant) { g.Range = access.Partitions(compoundkey.All()) },
		"row without part":     func(g *access.Grant) { g.Range = access.Through(at("", "a"), at("p", "r")) },
		"backward":             func(g *access.Grant) { g.Range = access.Through(at("p", "b"), at("p", "a")) },
		"behind the end's cut": func(g *access.Grant) { g.Range = access.Rows("p", compoundkey.Range("a\uFFFE", "b")) },
	} {
		g := good
		change(&g)
		token, err := signer.Sign(g)
		wantIs(t, err, tables.ErrInvalid)
		if !token.IsZero() || token.RevealAddress() != "" {
			t.Errorf("%s: a token all the same", name)
		}
	}
}

func TestWhoCannotSign(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	token := assert.Must[access.Token](t)(assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, s), s.AccountKey, nil)).Sign(
		access.Grant{Table: "Employees", Range: access.WholeTable(), Permissions: access.Query, InsecureHTTP: true}))
	entra := assert.Must[*tables.Account](t)(tables.NewAccount(tables.AccountEndpoints("contoso"), credential{}, nil))
	for name, account := range map[string]*tables.Account{"Entra ID": entra, "a token": openToken(t, s, token).Account()} {
		_, err := access.NewSigner(account, "", nil)
		wantIs(t, err, access.ErrNoSharedKey, tables.ErrWiring)
		assert.ErrorContains(t, err, "user delegation", name)
		_, err = access.NewSigner(account, "a2V5", nil)
		wantIs(t, err, tables.ErrWiring)
	}
	_, err := access.NewSigner(nil, "a2V5", nil)
	wantIs(t, err, tables.ErrWiring)
	const noBase64 = "not&base64&at&all"
	_, err = access.NewSigner(accountOf(t, s), noBase64, nil)
	wantIs(t, err, tables.ErrWiring)
	if strings.Contains(fmt.Sprint(err), noBase64) {
		t.Error("the key is in the error")
	}
	cosmos := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5", nil))
	_, err = access.NewSigner(cosmos, "a2V5", nil)
	wantIs(t, err, tables.ErrWiring)
	for _, connection := range []string{"UseDevelopmentStorage=true", " usedevelopmentstorage = TRUE ;", "AccountName=abc; accountkey = a2V5 ;EndpointSuffix=core.chinacloudapi.cn"} {
		assert.NoError(t, assert.Err(access.NewSignerFromConnectionString(connection, nil)), connection)
	}
	_, err = access.NewSignerFromConnectionString("AccountName=abc;SharedAccessSignature="+token.RevealQuery(), nil)
	wantIs(t, err, access.ErrNoSharedKey)
}
