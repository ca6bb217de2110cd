package encryption

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// SealProperty is the plain Edm.Binary property beside the encrypted ones of a row. It authenticates the row: which properties are
// encrypted, the values of those that are signed, and which rows hold copies. After its header:
//
//	 88   2   number of encrypted properties, big endian
//	 90  ...  each name: 2 bytes length, big endian, and UTF-8; sorted
//	...   2   number of signed properties
//	...  ...  each name in the same way, sorted, and 16 bytes of HMAC-SHA256 over "tablepatterns/encryption/1/signed", the name, and
//	          the type code and octets of the value
//	...   2   number of copies
//	...  ...  each: 16 bytes of HMAC-SHA256 over "tablepatterns/encryption/1/copy", account, table, partition key and row key; sorted
//	end  32   HMAC-SHA256 over "tablepatterns/encryption/1/seal", scope, account, table, partition key, row key and required context;
//	          and all of the above
//
// In the input of a MAC, 4 bytes of length precede each text. No length precedes the header and the lists at the end.
const SealProperty = "_encryptionSeal"

const (
	macSize    = sha256.Size
	digestSize = 16
)

type digest [digestSize]byte

// signedValue is a property that is stored in plaintext and authenticated.
type signedValue struct {
	name string
	code digest
}

// contents holds what a seal says about a row.
type contents struct {
	names  []string      // of the encrypted properties, sorted
	signed []signedValue // sorted by name
	copies []digest      // sorted
}

// digest returns a truncated MAC over texts, under the MAC key of one write.
func (k *writeKeys) digest(texts ...string) (d digest) {
	if k.digests == nil {
		k.digests = hmac.New(sha256.New, k.mac)
	} else {
		k.digests.Reset() // cheaper than a new HMAC, since the HMAC has already hashed its key
	}
	k.scratch = appendFields(k.scratch[:0], texts...)
	k.digests.Write(k.scratch)
	k.scratch = k.digests.Sum(k.scratch[:0])
	copy(d[:], k.scratch)
	return d
}

func (k *writeKeys) signedDigest(name string, v tables.Value) digest {
	octets, _ := appendValue(nil, v)
	return k.digest(domainSigned, name, string(octets))
}

// copyDigest returns the digest of a row that holds a copy.
func (k *writeKeys) copyDigest(l location) digest {
	return k.digest(domainCopy, l.account, l.table, l.partition, l.row)
}

// appendSeal encodes and authenticates the seal of a row.
func (k *writeKeys) appendSeal(o origin, at place, c *contents) []byte {
	h := header{kind: kindSeal, origin: o}
	b := appendCount(h.append(nil), len(c.names))
	for _, name := range c.names {
		b = appendName(b, name)
	}
	b = appendCount(b, len(c.signed))
	for _, s := range c.signed {
		b = append(appendName(b, s.name), s.code[:]...)
	}
	b = appendCount(b, len(c.copies))
	for _, d := range c.copies {
		b = append(b, d[:]...)
	}
	return append(b, k.sealMAC(at, b)...)
}

func appendCount(b []byte, n int) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) }

func appendName(b []byte, name string) []byte { return append(appendCount(b, len(name)), name...) }

func (k *writeKeys) sealMAC(at place, body []byte) []byte {
	return hmacOf(k.mac, at.context(domainSeal), body)
}

// rowSeal is a seal as it was read; do not use it before its MAC is verified.
type rowSeal struct {
	header
	contents
	body, code []byte
}

// parseSeal parses a seal. It returns a seal even if ok is false, so that the caller does the same work in both cases
// and its time does not show which check failed.
func parseSeal(b []byte) (s rowSeal, ok bool) {
	h, rest, ok := parseHeader(b, kindSeal)
	s.header = h
	if len(rest) < 2+macSize {
		return s, false
	}
	s.body, s.code = b[:len(b)-macSize], b[len(b)-macSize:]
	r := sealReader{rest: rest[:len(rest)-macSize]}
	for range r.count() {
		s.names = append(s.names, r.name())
	}
	for range r.count() {
		s.signed = append(s.signed, signedValue{r.name(), r.digest()})
	}
	for range r.count() {
		s.copies = append(s.copies, r.digest())
	}
	sorted := slices.IsSorted(s.names) && slices.IsSortedFunc(s.signed, func(a, b signedValue) int { return strings.Compare(a.name, b.name) }) &&
		slices.IsSortedFunc(s.copies, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return s, ok && sorted && !r.short && len(r.rest) == 0
}

// sealReader reads the parts of a seal. If a part is incomplete, it sets short, and that part and all later ones are zeros.
type sealReader struct {
	rest  []byte
	short bool
}

func (r *sealReader) take(n int) []byte {
	if r.short || len(r.rest) < n {
		r.short, r.rest = true, nil
		return make([]byte, min(n, digestSize))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// count returns the number of parts that follow. It returns 0 if fewer bytes follow, so that a forged count does not make parseSeal loop
// over parts that do not exist.
func (r *sealReader) count() int {
	n := int(binary.BigEndian.Uint16(r.take(2)))
	if n > len(r.rest) {
		r.short = true
		return 0
	}
	return n
}

func (r *sealReader) name() string { return string(r.take(int(binary.BigEndian.Uint16(r.take(2))))) }

func (r *sealReader) digest() digest { return digest(r.take(digestSize)) }

// verifies reports whether the key commitment and the MAC are right.
func (k *writeKeys) verifies(s *rowSeal, at place) bool {
	genuine := hmac.Equal(k.sealMAC(at, s.body), s.code)
	return k.commits(&s.origin) && genuine
}

// signedIndex returns the index of a property among the signed ones, -1 if it is not signed.
func (c *contents) signedIndex(name string) int {
	i, found := slices.BinarySearchFunc(c.signed, name, func(s signedValue, name string) int { return strings.Compare(s.name, name) })
	if !found {
		return -1
	}
	return i
}
