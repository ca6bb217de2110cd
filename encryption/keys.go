package encryption

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash"
	"io"
	"log/slog"
)

// writeKeys are the keys of one write or stream, made with a random salt of 32 bytes.
//
//	HKDF-SHA256(data key, salt, domain ‖ data key id) = 32 bytes key of AES-256-GCM ‖ 32 bytes key of HMAC-SHA256 ‖ 32 bytes commitment
//
// The commitment is needed because somebody who knows two keys can make an AES-GCM ciphertext that opens under both.
type writeKeys struct {
	aead       cipher.AEAD
	mac        []byte
	commitment []byte

	digests hash.Hash // HMAC under the key in the field mac; nil before the first digest. For one goroutine
	scratch []byte
}

func derive(dataKey []byte, domain string, id DataKeyID, salt *[saltSize]byte) (*writeKeys, error) {
	okm, err := expand(dataKey, salt[:], domain+string(id[:]), 3*keySize)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(okm[:keySize])
	if err != nil {
		return nil, err
	}
	return &writeKeys{aead: aead, mac: okm[keySize : 2*keySize], commitment: okm[2*keySize:]}, nil
}

func expand(key, salt []byte, info string, n int) ([]byte, error) {
	return hkdf.Key(sha256.New, key, salt, info, n)
}

// newAEAD lets AES-GCM choose a random nonce of 12 bytes, which FIPS 140-3 requires.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func newWrite(dataKey []byte, domain string, id DataKeyID) (origin, *writeKeys, error) {
	o := origin{key: id, salt: newSalt()}
	keys, err := derive(dataKey, domain, id, &o.salt)
	if err != nil {
		return o, nil, err
	}
	copy(o.commitment[:], keys.commitment)
	return o, keys, nil
}

func newSalt() (salt [saltSize]byte) {
	rand.Read(salt[:]) // never fails
	return salt
}

func (k *writeKeys) commits(o *origin) bool {
	return subtle.ConstantTimeCompare(k.commitment, o.commitment[:]) == 1
}

func hmacOf(key []byte, input ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, b := range input {
		mac.Write(b)
	}
	return mac.Sum(nil)
}

const redacted = "REDACTED"

// secret is key material behind two pointers: package fmt may print the bytes behind one, without calling Format, but never follows a second.
type secret struct{ octets **[]byte }

func newSecret(b []byte) secret {
	own := bytes.Clone(b)
	pointer := &own
	return secret{&pointer}
}

func (s secret) bytes() []byte {
	if s.octets == nil {
		return nil
	}
	return **s.octets
}

// hidden redacts the type that embeds it in every verb of fmt, in JSON and in slog.
type hidden struct{}

// Format implements fmt.Formatter.
func (hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler.
func (hidden) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer.
func (hidden) LogValue() slog.Value { return slog.StringValue(redacted) }
