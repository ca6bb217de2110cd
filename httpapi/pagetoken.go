package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
)

const (
	tokenVersion = 1
	saltBytes    = 16
	tokenBlock   = 64 // the plaintext is padded to it, so that its length reveals little about the keys

	leastTokenKey  = 32
	maxTokenKeys   = 8
	maxSealedBytes = 16384
)

// PageTokenOptions are the options of NewPageTokens; nil is the same as the zero value.
type PageTokenOptions struct {
	// Lifetime is how long a token can be opened (default: as long as NewPageTokens gets its key).
	Lifetime time.Duration
	// Now is the clock, for tests (default time.Now).
	Now func() time.Time
}

// PageTokens seals continuation tokens of pages, which contain keys of entities in plaintext, by AES-256-GCM under a key that HKDF-SHA-256 derives
// from a given key, a random salt and the purpose. fmt, log/slog and JSON encoders never show the keys. It is safe for concurrent use.
type PageTokens struct {
	// secrets is a function because package fmt prints the content of an unexported field, but only the address of a function.
	secrets  func() [][]byte
	purpose  string
	lifetime time.Duration
	now      func() time.Time
}

// NewPageTokens returns PageTokens for one purpose, such as "contoso list v1". keys has 1 to 8 random keys of at least 32 bytes, such as those of a
// secret store: the first seals, all open. To rotate, give all processes the new key as the last one, then as the first one, and remove the old key
// when its tokens have expired. It returns tables.ErrWiring for inconsistent arguments.
func NewPageTokens(keys [][]byte, purpose string, options *PageTokenOptions) (*PageTokens, error) {
	const op = "NewPageTokens"
	if options == nil {
		options = &PageTokenOptions{}
	}
	if len(keys) < 1 || len(keys) > maxTokenKeys {
		return nil, errs.Wiringf(op, "", "got %d keys; give 1 to %d", len(keys), maxTokenKeys)
	}
	if purpose == "" || options.Lifetime < 0 {
		return nil, errs.Wiringf(op, "", "the purpose is %q and PageTokenOptions.Lifetime %v; the purpose must not be empty, and Lifetime 0 (meaning no end) or more", purpose, options.Lifetime)
	}
	p := &PageTokens{purpose: purpose, lifetime: options.Lifetime, now: options.Now}
	if p.now == nil {
		p.now = time.Now
	}
	var own [][]byte
	for i, key := range keys {
		if len(key) < leastTokenKey {
			return nil, errs.Wiringf(op, "", "key %d has %d bytes; it must have at least %d", i+1, len(key), leastTokenKey)
		}
		own = append(own, slices.Clone(key))
	}
	p.secrets = func() [][]byte { return own }
	return p, nil
}

func (p *PageTokens) keys() [][]byte {
	if p == nil || p.secrets == nil {
		return nil
	}
	return p.secrets()
}

func noKeys(op string) error {
	return errs.Wiringf(op, "", "the PageTokens hold no key; make them with NewPageTokens")
}

// Format implements fmt.Formatter: no verb shows a key.
func (p *PageTokens) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// String returns how many keys there are.
func (p *PageTokens) String() string { return fmt.Sprintf("page tokens with %d keys", len(p.keys())) }

// MarshalText returns the text of String.
func (p *PageTokens) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// LogValue returns the text of String.
func (p *PageTokens) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Seal seals a token, the Next of a page. bound has all texts on which the query depends: tenant, route, filter, user. Without them the token opens
// for every list of this purpose; Open needs the same in the same order. An empty token, after the last page, stays empty.
func (p *PageTokens) Seal(token string, bound ...string) (string, error) {
	if token == "" {
		return "", nil
	}
	if len(token) > maxSealedBytes/2 {
		return "", errs.Invalidf("Seal", "the token has %d bytes; it must have at most %d", len(token), maxSealedBytes/2)
	}
	keys := p.keys()
	if len(keys) == 0 {
		return "", noKeys("Seal")
	}
	var expiry int64
	if p.lifetime > 0 {
		expiry = p.now().Add(p.lifetime).UnixMilli()
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(expiry))
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(token)))
	plain = append(plain, token...)
	plain = append(plain, make([]byte, (tokenBlock-len(plain)%tokenBlock)%tokenBlock)...)
	header := make([]byte, 1+saltBytes)
	header[0] = tokenVersion
	_, _ = rand.Read(header[1:]) // never fails
	aead, err := p.aead(keys[0], header[1:])
	if err != nil {
		return "", errs.Wiringf("Seal", "", "%w", err)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(header, nil, plain, associated(bound))), nil
}

// Open returns the token that was sealed for the same purpose and bound. For any other text it returns tables.ErrInvalid, with ErrPageToken or
// ErrPageTokenExpired as its cause; it never reveals whether purpose, bound or key was wrong. An empty text is the token of the first page.
func (p *PageTokens) Open(sealed string, bound ...string) (string, error) {
	const op = "OpenPageToken"
	if sealed == "" {
		return "", nil
	}
	if len(sealed) > maxSealedBytes || strings.ContainsAny(sealed, "\r\n") { // base64 ignores line breaks, so one token would have many texts
		return "", errs.Invalid(op, ErrPageToken)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(raw) <= 1+saltBytes || raw[0] != tokenVersion {
		return "", errs.Invalid(op, ErrPageToken)
	}
	keys := p.keys()
	if len(keys) == 0 {
		return "", noKeys(op)
	}
	salt, ciphertext := raw[1:1+saltBytes], raw[1+saltBytes:]
	for _, key := range keys {
		aead, err := p.aead(key, salt)
		if err != nil {
			return "", errs.Wiringf(op, "", "%w", err)
		}
		if plain, err := aead.Open(nil, nil, ciphertext, associated(bound)); err == nil {
			return p.content(op, plain)
		}
	}
	return "", errs.Invalid(op, ErrPageToken)
}

// content returns the token in an authenticated plaintext, unless it has expired.
func (p *PageTokens) content(op string, plain []byte) (string, error) {
	if len(plain) < 12 {
		return "", errs.Invalid(op, ErrPageToken)
	}
	expiry, n := int64(binary.BigEndian.Uint64(plain)), int64(binary.BigEndian.Uint32(plain[8:]))
	if n > int64(len(plain)-12) {
		return "", errs.Invalid(op, ErrPageToken)
	}
	if expiry != 0 && p.now().UnixMilli() >= expiry {
		return "", errs.Invalid(op, ErrPageTokenExpired)
	}
	return string(plain[12 : 12+n]), nil
}

// aead derives the key of one token from its salt of 128 random bits. It chooses the nonce itself, which FIPS 140-3 requires.
func (p *PageTokens) aead(key, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, salt, "tablepatterns page token 1\x00"+p.purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// associated encodes each text with its length, so different lists have different encodings.
func associated(bound []string) []byte {
	out := []byte{tokenVersion}
	for _, text := range bound {
		out = binary.BigEndian.AppendUint64(out, uint64(len(text)))
		out = append(out, text...)
	}
	return out
}
