package encryption

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/tables"
)

// This file reads rows that the client-side encryption of the storage libraries for .NET, Java and Python has written: with a content key of their
// own, two additional properties, and strings as Edm.Binary, by AES-256-CBC with PKCS#7.
const (
	legacyMetadata = "_ClientEncryptionMetadata1" // JSON: the wrapped content key, the IV
	legacyNames    = "_ClientEncryptionMetadata2" // the names of the encrypted properties, encrypted
)

type legacyEnvelope struct {
	WrappedContentKey struct {
		KeyID        string `json:"KeyId"`
		EncryptedKey []byte
		Algorithm    string
	}
	EncryptionAgent struct {
		Protocol            string
		EncryptionAlgorithm string
	}
	ContentEncryptionIV []byte
	KeyWrappingMetadata *struct{ EncryptionLibrary string }
}

// isJava reports whether the Java library wrote the entity: it derives IVs from partition key and row key in reverse order.
func (l *legacyEnvelope) isJava() bool {
	return l.KeyWrappingMetadata == nil || strings.Contains(l.KeyWrappingMetadata.EncryptionLibrary, "Java")
}

type legacyCipher struct {
	block  cipher.Block
	iv     []byte
	keys   string // partition key and row key, in the library's order
	intact bool   // no check has failed so far
}

// open decrypts one value. Without a MAC, padding and text are checked together, so that both fail with the same error.
func (c *legacyCipher) open(name string, v tables.Value) string {
	sealed, binary := v.Bytes()
	whole := len(sealed) > 0 && len(sealed)%aes.BlockSize == 0
	if !binary || !whole {
		c.intact = false
		return ""
	}
	iv := sha256.Sum256(append(slices.Clone(c.iv), c.keys+name...))
	cipher.NewCBCDecrypter(c.block, iv[:aes.BlockSize]).CryptBlocks(sealed, sealed)
	n, padded := pkcs7(sealed)
	plain := sealed[:n]
	valid := utf8.Valid(plain)
	c.intact = c.intact && padded == 1 && valid
	return string(plain)
}

// pkcs7 runs in constant time. It returns the length without padding, and 1 if the padding is valid.
func pkcs7(b []byte) (length, ok int) {
	n := int(b[len(b)-1])
	ok = subtle.ConstantTimeLessOrEq(1, n) & subtle.ConstantTimeLessOrEq(n, aes.BlockSize)
	for i := 1; i <= aes.BlockSize; i++ {
		inside := subtle.ConstantTimeLessOrEq(i, n)
		equal := subtle.ConstantTimeByteEq(b[len(b)-i], byte(n))
		ok &= subtle.ConstantTimeSelect(inside, equal, 1)
	}
	return len(b) - subtle.ConstantTimeSelect(ok, n, 0), ok
}

// loadLegacy decrypts an entity of the old libraries. Its errors are ErrNotAuthentic, and those of an unavailable wrapping key.
func (c *rowCipher) loadLegacy(ctx context.Context, key tables.Key, p tables.Properties) (tables.Properties, error) {
	values, err := c.legacyCipher(ctx, key, p)
	if err != nil {
		return nil, err
	}
	names, listed := parseLegacyNames(values.open(legacyNames, p.Get(legacyNames)))
	values.intact = values.intact && listed
	out := make(tables.Properties, 0, len(p))
	found := 0
	for _, property := range p {
		switch {
		case property.Name == legacyMetadata || property.Name == legacyNames:
			continue
		case slices.Contains(names, property.Name):
			found++
			property.Value = tables.String(values.open(property.Name, property.Value))
		case isEncrypted(property) || c.declared(key, property.Name) && !c.options.AcceptPlaintext:
			values.intact = false
		}
		out = append(out, property)
	}
	if !values.intact || found != len(names) {
		return nil, ErrNotAuthentic
	}
	return out, nil
}

// legacyCipher continues with a key of zeros if the unwrap fails, so that the time does not show which check failed.
func (c *rowCipher) legacyCipher(ctx context.Context, key tables.Key, p tables.Properties) (*legacyCipher, error) {
	text, intact := p.Get(legacyMetadata).Text()
	var l legacyEnvelope
	if json.Unmarshal([]byte(text), &l) != nil || l.EncryptionAgent.Protocol != "1.0" || l.EncryptionAgent.EncryptionAlgorithm != "AES_CBC_256" || len(l.ContentEncryptionIV) != aes.BlockSize {
		intact = false
	}
	contentKey := make([]byte, keySize)
	wrapped := WrappedKey{KeyID: l.WrappedContentKey.KeyID, Algorithm: l.WrappedContentKey.Algorithm, Bytes: l.WrappedContentKey.EncryptedKey}
	if intact && c.options.Legacy.Holds(wrapped.KeyID, wrapped.Algorithm) {
		unwrapped, err := c.options.Legacy.Unwrap(ctx, wrapped)
		switch {
		case err == nil && len(unwrapped) == keySize:
			contentKey = unwrapped
		case err == nil || unreadable(err):
			intact = false
		default:
			return nil, err
		}
	} else {
		intact = false
	}
	block, err := aes.NewCipher(contentKey)
	if err != nil {
		return nil, ErrNotAuthentic
	}
	keys := key.Row + key.Partition
	if l.isJava() {
		keys = key.Partition + key.Row
	}
	return &legacyCipher{block: block, iv: l.ContentEncryptionIV, keys: keys, intact: intact}, nil
}

// parseLegacyNames reads a JSON array, or the Java library's form [a, b].
func parseLegacyNames(text string) (names []string, ok bool) {
	if json.Unmarshal([]byte(text), &names) == nil {
		return names, true
	}
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed {
		return nil, false
	}
	return strings.Split(inner, ", "), true
}
