package access_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPolicyIDsAtTheirLimits: an id has 64 UTF-16 units at most, as the service counts; what a signature's lines or a list
// cannot hold is refused.
func TestPolicyIDsAtTheirLimits(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	for id, legal := range map[string]bool{
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, strings.Repeat("é", 64): true, strings.Repeat("é", 65): false,
		strings.Repeat("😀", 32): true, strings.Repeat("😀", 32) + "x": false, strings.Repeat("😀", 64): false,
		`a "b" <c> & 'd'`: true, " ": true, "": false, "a\nb": false, "a\x00": false, "a\u0085b": false, "a\xff": false, "_tpLock_": false, "_tplock_": true,
		"a\u2028b": true, "a\uFFFEb": false, "a\uFFFFb": false,
	} {
		token, err := o.signer.Sign(access.Grant{Table: o.table.Name(), Range: access.WholeTable(), Policy: id, Permissions: access.Query, InsecureHTTP: true})
		if legal != (err == nil) && id != "" {
			t.Errorf("%q: %v", id, err)
		}
		if policies := policiesOf(t, o.table, time.Millisecond); !legal {
			wantIs(t, policies.Create(t.Context(), access.Policy{ID: id}), tables.ErrInvalid)
			wantIs(t, policies.Revoke(t.Context(), id), tables.ErrInvalid)
			continue
		}
		assert.Equal(t, assert.Must[access.Token](t)(access.Parse(token.RevealAddress())).Policy(), id, "read back")
	}
}

// TestAddressesWithEscapes: what is escaped in the path cannot become another address.
func TestAddressesWithEscapes(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	good := o.sign(access.Grant{Range: access.Partition("Sales"), Permissions: access.Query}).RevealAddress()
	table := "/" + o.table.Name() + "?"
	for _, path := range []string{"%3Fa", "a%3Fb", "%2F%2Fevil.test", "a%0Ab", "%23", "a%20b", "%00", "é", "a;b"} {
		token, err := access.Parse(strings.Replace(good, table, "/"+path+table, 1))
		if err == nil { // the address is what it was, and no other
			again := assert.Must[*url.URL](t)(url.Parse(token.RevealAddress()))
			if !strings.HasSuffix(again.Path, "/"+path+strings.TrimSuffix(table, "?")) || strings.ContainsAny(token.Endpoint(), "?#\n\x00 ") {
				t.Errorf("%s: %s", path, token.Endpoint())
			}
			continue
		}
		wantIs(t, err, tables.ErrInvalid)
	}
}

// TestHostileTokens: whatever a token's text is made of, Parse does not panic, its errors hold nothing of it, and what it accepts
// says of itself what the text says, once more when it is read again.
func TestHostileTokens(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	good := o.sign(access.Grant{Range: access.Rows("Sales O'Brien", compoundkey.Range("a", "b")), Permissions: access.Query, Policy: "a policy"}).RevealAddress()
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		address := good
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(address)).Draw(t, "at")
			cut := rapid.IntRange(0, min(12, len(address)-at)).Draw(t, "cut")
			insert := rapid.OneOf(rapid.SampledFrom([]string{"&", "=", "%", "%00", "%0A", "?", "#", "'", "''", "/", "//", ":", "@", "\n", "\x00", "é", "\xff", "%ff", "&sig=SECRETSECRET", "&srk=SECRETSECRET", "&epk=%2F", "+", ";", "&se=9999-12-31"}), rapid.String()).Draw(t, "insert")
			address = address[:at] + insert + address[at+cut:]
		}
		token, err := access.Parse(address)
		if err != nil {
			if u, bad := url.Parse(address); strings.Contains(err.Error(), "SECRET") || bad == nil && u.Query().Get("sig") != "" && strings.Contains(err.Error(), u.Query().Get("sig")) && len(u.Query().Get("sig")) > 3 {
				t.Fatalf("%q: %v", address, err)
			}
			return
		}
		accepted++
		again, err := access.Parse(token.RevealAddress())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(token) || again.Range() != token.Range() || again.RevealQuery() != token.RevealQuery() {
			t.Fatalf("%q is read as %v, and then as %v, %v", address, token, again, err)
		}
	})
	t.Logf("%d were accepted", accepted)
}
