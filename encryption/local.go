package encryption

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"strconv"

	"github.com/tablepatterns/tablepatterns/tables"
)

// The algorithms of wrapping keys, as Key Vault calls them.
const (
	AlgorithmA128KW     = "A128KW"       // RFC 3394
	AlgorithmA192KW     = "A192KW"       // RFC 3394
	AlgorithmA256KW     = "A256KW"       // RFC 3394
	AlgorithmRSAOAEP    = "RSA-OAEP"     // with SHA-1: read, never written
	AlgorithmRSAOAEP256 = "RSA-OAEP-256" // with SHA-256
)

// LocalKey is a KeyWrapper whose AES key the program holds in memory: for tests, legacy data, or a key from another
// secret store.
type LocalKey struct {
	hidden
	id        string
	algorithm string
	key       secret
}

// NewLocalKey makes a wrapper from a key of 16, 24 or 32 bytes; use 32 for new data. id is stored with each wrapped
// key, and identifies this wrapper when the key is unwrapped.
func NewLocalKey(id string, key []byte) (LocalKey, error) {
	switch {
	case id == "":
		return LocalKey{}, tables.Wiringf("NewLocalKey", "", "the id of the wrapping key is empty; give one")
	case len(key) != 16 && len(key) != 24 && len(key) != 32:
		return LocalKey{}, tables.Wiringf("NewLocalKey", "", "a wrapping key of %d bytes; it must have 16, 24 or 32", len(key))
	}
	return LocalKey{id: id, algorithm: "A" + strconv.Itoa(8*len(key)) + "KW", key: newSecret(key)}, nil
}

// Wrap implements KeyWrapper.
func (k LocalKey) Wrap(_ context.Context, key []byte) (WrappedKey, error) {
	if k.id == "" {
		return WrappedKey{}, tables.Wiringf("Wrap", "", "the LocalKey is the zero value; make it with NewLocalKey")
	}
	b, err := keyWrap(k.key.bytes(), key)
	return WrappedKey{KeyID: k.id, Algorithm: k.algorithm, Bytes: b}, err
}

// Holds implements KeyWrapper.
func (k LocalKey) Holds(keyID, algorithm string) bool {
	return k.id != "" && keyID == k.id && algorithm == k.algorithm
}

// Unwrap implements KeyWrapper.
func (k LocalKey) Unwrap(_ context.Context, wrapped WrappedKey) ([]byte, error) {
	if !k.Holds(wrapped.KeyID, wrapped.Algorithm) {
		return nil, errNoWrapper(wrapped)
	}
	return keyUnwrap(k.key.bytes(), wrapped.Bytes)
}

// LocalRSAKey is a KeyWrapper whose RSA key the program holds in memory. It wraps with RSA-OAEP-256 and also unwraps
// RSA-OAEP, for legacy data. Anybody who has the public key can wrap keys of their own: see the package comment.
type LocalRSAKey struct {
	hidden
	id  string
	key **rsa.PrivateKey // two pointers, so that fmt prints only an address if the wrapper is a field of another struct
}

// NewLocalRSAKey makes a wrapper from a key of at least 2,048 bits.
func NewLocalRSAKey(id string, key *rsa.PrivateKey) (LocalRSAKey, error) {
	switch {
	case id == "" || key == nil || key.N == nil:
		return LocalRSAKey{}, tables.Wiringf("NewLocalRSAKey", "", "the id is empty or the key nil; give both")
	case key.N.BitLen() < 2048:
		return LocalRSAKey{}, tables.Wiringf("NewLocalRSAKey", "", "an RSA key of %d bits; it must have at least 2,048", key.N.BitLen())
	}
	return LocalRSAKey{id: id, key: &key}, nil
}

// Wrap implements KeyWrapper.
func (k LocalRSAKey) Wrap(_ context.Context, key []byte) (WrappedKey, error) {
	if k.key == nil {
		return WrappedKey{}, tables.Wiringf("Wrap", "", "the LocalRSAKey is the zero value; make it with NewLocalRSAKey")
	}
	b, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, &(*k.key).PublicKey, key, nil)
	return WrappedKey{KeyID: k.id, Algorithm: AlgorithmRSAOAEP256, Bytes: b}, err
}

// Holds implements KeyWrapper.
func (k LocalRSAKey) Holds(keyID, algorithm string) bool {
	return k.key != nil && keyID == k.id && (algorithm == AlgorithmRSAOAEP || algorithm == AlgorithmRSAOAEP256)
}

// Unwrap implements KeyWrapper.
func (k LocalRSAKey) Unwrap(_ context.Context, wrapped WrappedKey) ([]byte, error) {
	var h hash.Hash
	switch {
	case !k.Holds(wrapped.KeyID, wrapped.Algorithm):
		return nil, errNoWrapper(wrapped)
	case wrapped.Algorithm == AlgorithmRSAOAEP:
		h = sha1.New()
	default:
		h = sha256.New()
	}
	key, err := rsa.DecryptOAEP(h, nil, *k.key, wrapped.Bytes, nil)
	if err != nil {
		return nil, errNotWrapped()
	}
	return key, nil
}
