package encryption_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSecretsAreNotPrinted: keys come out of nothing, by no verb, in JSON, in logs; as they are, behind pointers, and as
// exported and unexported fields. Plaintext is in no error.
func TestSecretsAreNotPrinted(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	raw := []byte("0123456789abcdefABCDEF9876543210")
	local := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("local", raw))
	private := assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	local2 := assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("rsa", private))
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, encryption.NewChain(local, local2), &encryption.RegistryOptions{Name: "printed"}))
	id := assert.Must[encryption.DataKeyID](t)(registry.CreateDataKey(t.Context()))
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(t.Context(), registry, "b", 0))
	stream := streamOf(t, registry, "")
	w.registry = registry
	e := encryption.New[employee]("encryption", registry, &encryption.Options{Legacy: local})
	a := loaderIn(t, w, "Employees", nil)
	a.stored(t, aKey, text("A", "1")) // so that the key is in the cache

	secrets := []string{string(raw), private.D.String(), private.D.Text(16), private.Primes[0].String()}
	row := bag(t, w.keys, tables.Key{Partition: "printed", Row: "key_" + id.String()})
	wrapped, _ := row.Get("Wrapped").Bytes()
	dataKey := assert.Must[[]byte](t)(local.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: "A256KW", Bytes: wrapped}))
	row = bag(t, w.keys, tables.Key{Partition: "printed", Row: "beacon_b"})
	wrapped, _ = row.Get("Wrapped").Bytes()
	beaconKey := assert.Must[[]byte](t)(local.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: "A256KW", Bytes: wrapped}))
	for _, key := range [][]byte{raw, dataKey, beaconKey} {
		decimal := strings.Trim(fmt.Sprint(key), "[]")
		secrets = append(secrets, string(key), hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)), decimal, strings.ReplaceAll(decimal, " ", ","),
			strings.Trim(fmt.Sprintf("%#v", key)[7:], "{}"), fmt.Sprintf("% x", key))
	}
	type open struct{ Value any }
	type closed struct {
		local    encryption.LocalKey
		rsa      encryption.LocalRSAKey
		chain    encryption.Chain
		beacon   *encryption.Beacon
		stream   encryption.Stream
		registry encryption.Registry
	}
	in := closed{local, local2, encryption.NewChain(local, local2), beacon, stream, *registry}
	tried := 0
	for _, v := range []any{local, local2, in.chain, beacon, stream, *registry, registry, e, a.Encryption, &in, in, open{local}, open{beacon}, []any{local, local2, beacon}, map[string]any{"k": registry},
		encryption.Options{Legacy: local}, &encryption.Options{Legacy: encryption.NewChain(local, local2)}} {
		for _, text := range printed(v) {
			tried++
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Fatalf("a %T prints a secret: %q in %q", v, secret, text)
				}
			}
		}
	}
	t.Logf("%d texts", tried)
	assert.Equal(t, fmt.Sprintf("%v %+v %#v", local, registry, beacon), "REDACTED REDACTED REDACTED", "printed")
	for _, err := range []error{
		assert.Err(a.Load(t.Context(), allOf(aKey), tables.Properties{text("A", "078-05-1120")})),
		assert.Err(a.Store(t.Context(), &driver.Change{Key: aKey}, tables.Properties{{Name: "P", Value: tables.Binary([]byte("TPE\x01078-05-1120"))}})),
		assert.Err(local.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: "A256KW", Bytes: raw})),
		assert.Err(encryption.NewLocalKey("x", raw[:9])),
	} {
		if err == nil || strings.Contains(err.Error(), "078-05") || strings.Contains(err.Error(), string(raw[:9])) {
			t.Errorf("an error says %v", err)
		}
	}
}
