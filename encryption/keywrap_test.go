package encryption_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	return assert.Must[[]byte](t)(hex.DecodeString(text))
}

// TestKeyWrapVectors: RFC 3394, section 4.
func TestKeyWrapVectors(t *testing.T) {
	const kek = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"
	const data = "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"
	for _, v := range []struct {
		name      string
		kek, data int // bytes
		wrapped   string
	}{
		{"4.1", 16, 16, "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5"},
		{"4.2", 24, 16, "96778B25AE6CA435F92B5B97C050AED2468AB8A17AD84E5D"},
		{"4.3", 32, 16, "64E8C3F9CE0F5BA263E9777905818A2A93C8191E7D6E8AE7"},
		{"4.4", 24, 24, "031D33264E15D33268F24EC260743EDCE1C6C7DDEE725A936BA814915C6762D2"},
		{"4.5", 32, 24, "A8F9BC1612C68B3FF6E6F4FBE30E71E4769C8B80A32CB8958CD5D17D6B254DA1"},
		{"4.6", 32, 32, "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"},
	} {
		wrapping, key, want := unhex(t, kek)[:v.kek], unhex(t, data)[:v.data], unhex(t, v.wrapped)
		if got, err := encryption.KeyWrap(wrapping, key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: wrapped to %X, %v", v.name, got, err)
		}
		if got, err := encryption.KeyUnwrap(wrapping, want); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: unwrapped to %X, %v", v.name, got, err)
		}
		for bit := range 8 * len(want) { // every bit, every length, a wrong key
			changed := slices.Clone(want)
			changed[bit/8] ^= 1 << (bit % 8)
			if got, err := encryption.KeyUnwrap(wrapping, changed); !errors.Is(err, tables.ErrGarbled) || got != nil {
				t.Fatalf("%s: bit %d changed: %v", v.name, bit, err)
			}
		}
		for n := range len(want) {
			if got, err := encryption.KeyUnwrap(wrapping, want[:n]); !errors.Is(err, tables.ErrGarbled) || got != nil {
				t.Errorf("%s: cut to %d bytes: %v", v.name, n, err)
			}
		}
		wrong := slices.Clone(wrapping)
		wrong[0] ^= 1
		assert.ErrorIs(t, assert.Err(encryption.KeyUnwrap(wrong, want)), tables.ErrGarbled, "%s: another key", v.name)
	}
	for _, n := range []int{0, 8, 15, 17, 31} {
		assert.Error(t, assert.Err(encryption.KeyWrap(make([]byte, 32), make([]byte, n))), "a key of %d bytes is wrapped", n)
	}
}

// TestLocalWrappers: what one wraps it unwraps, no other does, and what was changed nobody.
func TestLocalWrappers(t *testing.T) {
	ctx := context.Background()
	rsaKey := assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	local := assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("rsa", rsaKey))
	aes := localKey(t, "aes", 1)
	key := bytes.Repeat([]byte{9}, 32)
	for _, w := range []encryption.KeyWrapper{local, aes, encryption.NewChain(aes, local), encryption.NewChain(local, aes)} {
		wrapped := assert.Must[encryption.WrappedKey](t)(w.Wrap(ctx, key))
		if got, err := encryption.NewChain(aes, local).Unwrap(ctx, wrapped); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %v", wrapped.KeyID, err)
		}
		for i := range wrapped.Bytes {
			changed := wrapped
			changed.Bytes = slices.Clone(wrapped.Bytes)
			changed.Bytes[i] ^= 0x10
			if i%16 == 0 || wrapped.KeyID == "aes" {
				assert.ErrorIs(t, assert.Err(w.Unwrap(ctx, changed)), tables.ErrGarbled, "%s, byte %d changed", wrapped.KeyID, i)
			}
		}
		for _, other := range []encryption.KeyWrapper{localKey(t, "other", 1), encryption.NewChain(localKey(t, "other", 1)), encryption.LocalKey{}, encryption.LocalRSAKey{}} {
			if _, err := other.Unwrap(ctx, wrapped); !errors.Is(err, tables.ErrWiring) || other.Holds(wrapped.KeyID, wrapped.Algorithm) {
				t.Errorf("a wrapper without the key %s: %v", wrapped.KeyID, err)
			}
		}
	}
	old := assert.Must[[]byte](t)(rsa.EncryptOAEP(sha1.New(), rand.Reader, &rsaKey.PublicKey, key, nil))
	if got, err := local.Unwrap(ctx, encryption.WrappedKey{KeyID: "rsa", Algorithm: encryption.AlgorithmRSAOAEP, Bytes: old}); err != nil || !bytes.Equal(got, key) {
		t.Errorf("RSA-OAEP of the old libraries: %v", err)
	}
	for what, err := range map[string]error{
		"no id":       assert.Err(encryption.NewLocalKey("", key)),
		"20 bytes":    assert.Err(encryption.NewLocalKey("x", key[:20])),
		"no rsa key":  assert.Err(encryption.NewLocalRSAKey("x", nil)),
		"1,024 bits":  assert.Err(encryption.NewLocalRSAKey("x", &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: rsaKey.Primes[0], E: 3}})),
		"no table":    assert.Err(encryption.NewRegistry(nil, local, nil)),
		"no registry": assert.Err(encryption.NewStream(nil, nil)),
	} {
		assert.ErrorIs(t, err, tables.ErrWiring, what)
	}
}
