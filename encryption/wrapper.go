package encryption

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// WrappedKey is a key encrypted under another one. It is no secret.
type WrappedKey struct {
	KeyID     string // of the wrapping key, with its version if it has one
	Algorithm string // such as "A256KW" or "RSA-OAEP-256"
	Bytes     []byte
}

// KeyWrapper holds a wrapping key: VaultKey, LocalKey, LocalRSAKey or Chain. It must be safe for concurrent use.
type KeyWrapper interface {
	// Wrap encrypts a key.
	Wrap(ctx context.Context, key []byte) (WrappedKey, error)
	// Holds reports whether Unwrap accepts keys wrapped under this key id and algorithm. Requests: none.
	Holds(keyID, algorithm string) bool
	// Unwrap decrypts a key. It returns tables.ErrGarbled if this wrapper's key did not wrap it, and tables.ErrWiring if Holds is false for it. Any
	// other error means that the wrapping key is temporarily unavailable.
	Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error)
}

// Chain rotates wrapping keys: it wraps with its first wrapper, and unwraps with the one that holds the wrapping key.
type Chain struct {
	hidden
	wrappers []KeyWrapper
}

// NewChain makes a chain, the newest wrapping key first. If one is nil, Wrap fails.
func NewChain(first KeyWrapper, older ...KeyWrapper) Chain {
	return Chain{wrappers: append([]KeyWrapper{first}, older...)}
}

// Wrap implements KeyWrapper.
func (c Chain) Wrap(ctx context.Context, key []byte) (WrappedKey, error) {
	if len(c.wrappers) == 0 || slices.Contains(c.wrappers, nil) {
		return WrappedKey{}, errs.Wiringf("Wrap", "", "the Chain has no wrappers, or a nil one; give NewChain at least one")
	}
	return c.wrappers[0].Wrap(ctx, key)
}

// Holds implements KeyWrapper.
func (c Chain) Holds(keyID, algorithm string) bool {
	for _, w := range c.wrappers {
		if w != nil && w.Holds(keyID, algorithm) {
			return true
		}
	}
	return false
}

// Unwrap implements KeyWrapper.
func (c Chain) Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error) {
	for _, w := range c.wrappers {
		if w != nil && w.Holds(wrapped.KeyID, wrapped.Algorithm) {
			return w.Unwrap(ctx, wrapped)
		}
	}
	return nil, errNoWrapper(wrapped)
}

// errNoWrapper names the wrapping key, so that an operator can add it.
func errNoWrapper(wrapped WrappedKey) error {
	return fmt.Errorf("%w: no KeyWrapper holds wrapping key %q with algorithm %q; add one to the registry's Chain", tables.ErrWiring, wrapped.KeyID, wrapped.Algorithm)
}

func errNotWrapped() error {
	return fmt.Errorf("%w: the bytes are not a key that this wrapping key has wrapped; restore the data key's row from a backup", tables.ErrGarbled)
}

var (
	_ KeyWrapper = LocalKey{}
	_ KeyWrapper = LocalRSAKey{}
	_ KeyWrapper = VaultKey{}
	_ KeyWrapper = Chain{}
)

// The algorithms of wrapping keys, as Key Vault calls them.
const (
	AlgorithmA128KW     = "A128KW"
	AlgorithmA192KW     = "A192KW"
	AlgorithmA256KW     = "A256KW"       // RFC 3394
	AlgorithmRSAOAEP    = "RSA-OAEP"     // with SHA-1: read, never written
	AlgorithmRSAOAEP256 = "RSA-OAEP-256" // with SHA-256
)

// LocalKey is a KeyWrapper whose AES key (RFC 3394) the program holds in memory: for tests, legacy data, or a key from another secret store.
type LocalKey struct {
	hidden
	id        string
	algorithm string
	key       secret
}

// NewLocalKey makes a wrapper from a key of 16, 24 or 32 bytes; use 32 for new data. id is stored with each wrapped key.
func NewLocalKey(id string, key []byte) (LocalKey, error) {
	switch {
	case id == "":
		return LocalKey{}, errs.Wiringf("NewLocalKey", "", "the id of the wrapping key is empty; give one")
	case len(key) != 16 && len(key) != 24 && len(key) != 32:
		return LocalKey{}, errs.Wiringf("NewLocalKey", "", "a wrapping key of %d bytes; it must have 16, 24 or 32", len(key))
	}
	return LocalKey{id: id, algorithm: "A" + strconv.Itoa(8*len(key)) + "KW", key: newSecret(key)}, nil
}

// Wrap implements KeyWrapper.
func (k LocalKey) Wrap(_ context.Context, key []byte) (WrappedKey, error) {
	if k.id == "" {
		return WrappedKey{}, errs.Wiringf("Wrap", "", "the LocalKey is the zero value; make it with NewLocalKey")
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

// LocalRSAKey is a KeyWrapper whose RSA key the program holds in memory. It wraps with RSA-OAEP-256 and also unwraps RSA-OAEP, for legacy data.
// Anybody with the public key can wrap: see the package comment.
type LocalRSAKey struct {
	hidden
	id  string
	key **rsa.PrivateKey // two pointers: see secret
}

// NewLocalRSAKey makes a wrapper from a key of at least 2,048 bits.
func NewLocalRSAKey(id string, key *rsa.PrivateKey) (LocalRSAKey, error) {
	switch {
	case id == "" || key == nil || key.N == nil:
		return LocalRSAKey{}, errs.Wiringf("NewLocalRSAKey", "", "the id is empty or the key nil; give both")
	case key.N.BitLen() < 2048:
		return LocalRSAKey{}, errs.Wiringf("NewLocalRSAKey", "", "an RSA key of %d bits; it must have at least 2,048", key.N.BitLen())
	}
	return LocalRSAKey{id: id, key: &key}, nil
}

// Wrap implements KeyWrapper.
func (k LocalRSAKey) Wrap(_ context.Context, key []byte) (WrappedKey, error) {
	if k.key == nil {
		return WrappedKey{}, errs.Wiringf("Wrap", "", "the LocalRSAKey is the zero value; make it with NewLocalRSAKey")
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

// keyWrapIV is the initial value of RFC 3394, section 2.2.3.1.
const keyWrapIV = 0xA6A6A6A6A6A6A6A6

// keyWrap is AES Key Wrap (RFC 3394, section 2.2.1). key has at least 16 bytes, in multiples of 8.
func keyWrap(wrapping, key []byte) ([]byte, error) {
	block, err := aes.NewCipher(wrapping)
	if err != nil {
		return nil, err
	}
	if len(key) < 16 || len(key)%8 != 0 {
		return nil, errNotWrapped()
	}
	n := len(key) / 8
	out := make([]byte, 8+len(key))
	copy(out[8:], key)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], keyWrapIV)
	for j := range 6 {
		for i := 1; i <= n; i++ {
			copy(b[8:], out[8*i:])
			block.Encrypt(b[:], b[:])
			copy(out[8*i:], b[8:])
			binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^uint64(n*j+i))
		}
	}
	copy(out, b[:8])
	return out, nil
}

// keyUnwrap (section 2.2.2) returns tables.ErrGarbled for bytes that keyWrap did not return.
func keyUnwrap(wrapping, wrapped []byte) ([]byte, error) {
	block, err := aes.NewCipher(wrapping)
	if err != nil {
		return nil, err
	}
	if len(wrapped) < 24 || len(wrapped)%8 != 0 {
		return nil, errNotWrapped()
	}
	n := len(wrapped)/8 - 1
	out := bytes.Clone(wrapped)
	var b, iv [16]byte
	binary.BigEndian.PutUint64(iv[:8], keyWrapIV)
	copy(b[:8], out)
	for j := 5; j >= 0; j-- {
		for i := n; i >= 1; i-- {
			binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^uint64(n*j+i))
			copy(b[8:], out[8*i:])
			block.Decrypt(b[:], b[:])
			copy(out[8*i:], b[8:])
		}
	}
	if subtle.ConstantTimeCompare(b[:8], iv[:8]) != 1 {
		clear(out)
		return nil, errNotWrapped()
	}
	return out[8:], nil
}

// VaultKey is a KeyWrapper whose key never leaves Azure Key Vault or a managed HSM. Requests: 1 to wrap, 1 to unwrap.
type VaultKey struct {
	hidden
	client    *azkeys.Client
	id, name  string // URL of the key, without a version
	algorithm string
}

// VaultOptions are the options of a VaultKey; nil is the same as the zero value.
type VaultOptions struct {
	// Algorithm is AlgorithmRSAOAEP256 (the default), or AlgorithmA256KW with an AES key of a managed HSM.
	Algorithm string
}

// NewVaultKey makes a wrapper from a key of the client's vault, such as "https://contoso.vault.azure.net/keys/tables". It wraps with the newest
// version, and unwraps with every version that the vault still has. Requests: none.
func NewVaultKey(client *azkeys.Client, keyID string, options *VaultOptions) (VaultKey, error) {
	if options == nil {
		options = &VaultOptions{}
	}
	keyID = strings.TrimSuffix(keyID, "/")
	_, name, found := strings.Cut(keyID, "/keys/")
	k := VaultKey{client: client, id: keyID, name: name, algorithm: cmp.Or(options.Algorithm, AlgorithmRSAOAEP256)}
	switch {
	case client == nil:
		return VaultKey{}, errs.Wiringf("NewVaultKey", "", "the client is nil; give an azkeys.Client")
	case !found || name == "" || strings.Contains(name, "/"):
		return VaultKey{}, errs.Wiringf("NewVaultKey", "", "%q is not the id of a key without a version; it must look like https://contoso.vault.azure.net/keys/tables", keyID)
	case k.algorithm != AlgorithmRSAOAEP256 && k.algorithm != AlgorithmA256KW:
		return VaultKey{}, errs.Wiringf("NewVaultKey", "", "VaultOptions.Algorithm is %q; it must be %s or %s", k.algorithm, AlgorithmRSAOAEP256, AlgorithmA256KW)
	}
	return k, nil
}

// Wrap implements KeyWrapper.
func (k VaultKey) Wrap(ctx context.Context, key []byte) (WrappedKey, error) {
	if k.client == nil {
		return WrappedKey{}, errs.Wiringf("Wrap", "", "the VaultKey is the zero value; make it with NewVaultKey")
	}
	algorithm := azkeys.EncryptionAlgorithm(k.algorithm)
	answer, err := k.client.WrapKey(ctx, k.name, "", azkeys.KeyOperationParameters{Algorithm: &algorithm, Value: key}, nil)
	if err != nil {
		return WrappedKey{}, wire.Redact(err)
	}
	if answer.KID == nil || k.version(string(*answer.KID)) == "" || len(answer.Result) == 0 {
		return WrappedKey{}, errNotWrapped()
	}
	return WrappedKey{KeyID: string(*answer.KID), Algorithm: k.algorithm, Bytes: answer.Result}, nil
}

// version returns the version in an id of this key, 32 hexadecimal digits, else "": it becomes part of a request's path. It ignores case, since the
// vault's name is a DNS name.
func (k VaultKey) version(keyID string) string {
	if len(keyID) <= len(k.id) || !strings.EqualFold(keyID[:len(k.id)], k.id) || keyID[len(k.id)] != '/' {
		return ""
	}
	version := keyID[len(k.id)+1:]
	if b, err := hex.DecodeString(version); err != nil || len(b) != 16 {
		return ""
	}
	return version
}

// Holds implements KeyWrapper. The algorithm must fit the key's kind: a row that claims another could pass for one that only the holder of a secret
// AES key can have wrapped.
func (k VaultKey) Holds(keyID, algorithm string) bool {
	fits := algorithm == k.algorithm || algorithm == AlgorithmRSAOAEP && k.algorithm == AlgorithmRSAOAEP256
	return k.client != nil && fits && k.version(keyID) != ""
}

// Unwrap implements KeyWrapper. The vault answers 400 if it cannot decrypt the key.
func (k VaultKey) Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error) {
	if !k.Holds(wrapped.KeyID, wrapped.Algorithm) {
		return nil, errNoWrapper(wrapped)
	}
	algorithm := azkeys.EncryptionAlgorithm(wrapped.Algorithm)
	answer, err := k.client.UnwrapKey(ctx, k.name, k.version(wrapped.KeyID), azkeys.KeyOperationParameters{Algorithm: &algorithm, Value: wrapped.Bytes}, nil)
	var response *azcore.ResponseError
	switch {
	case errors.As(err, &response) && (response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusNotFound):
		return nil, errNotWrapped() // 404: the version no longer exists, or the row names another key
	case err != nil:
		return nil, wire.Redact(err)
	}
	return answer.Result, nil
}
