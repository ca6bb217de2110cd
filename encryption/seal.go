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

// SealProperty is the plain Edm.Binary property beside the encrypted ones of a row. It authenticates which properties are encrypted, the values of
// the signed ones, and which rows hold copies. After its header:
//
//	 88   2   number of encrypted properties, big endian
//	 90  ...  each name: 2 bytes length, big endian, and UTF-8; sorted
//	...   2   number of signed properties
//	...  ...  each name in the same way, sorted, and 16 bytes of its digest
//	...   2   number of copies
//	...  ...  16 bytes of digest of each, sorted
//	end  32   HMAC-SHA256 over place and all of the above
//
// docs/reference/encryption.md has the inputs of the digests and of the MAC.
const SealProperty = "_encryptionSeal"

const (
	macSize    = sha256.Size
	digestSize = 16
)

type digest [digestSize]byte

type signedValue struct {
	name string
	code digest
}

type contents struct {
	names  []string      // of the encrypted properties, sorted
	signed []signedValue // sorted by name
	copies []digest      // sorted
}

// digest truncates a MAC over texts, under the MAC key of one write.
func (k *writeKeys) digest(texts ...string) (d digest) {
	if k.digests == nil {
		k.digests = hmac.New(sha256.New, k.mac)
	} else {
		k.digests.Reset() // cheaper than a new HMAC, which would hash its key again
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

func (k *writeKeys) copyDigest(l location) digest {
	return k.digest(domainCopy, l.account, l.table, l.partition, l.row)
}

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

// rowSeal must not be used before its MAC is verified.
type rowSeal struct {
	header
	contents
	body, code []byte
}

// parseSeal returns a seal even if ok is false: see parseHeader.
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

// sealReader sets short at an incomplete part, and returns zeros from there on.
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

// count returns 0 if there are fewer bytes than parts, so that a forged count does not make parseSeal loop.
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

func (k *writeKeys) verifies(s *rowSeal, at place) bool {
	genuine := hmac.Equal(k.sealMAC(at, s.body), s.code)
	return k.commits(&s.origin) && genuine
}

// signedIndex returns -1 for a property that is not signed.
func (c *contents) signedIndex(name string) int {
	i, found := slices.BinarySearchFunc(c.signed, name, func(s signedValue, name string) int { return strings.Compare(s.name, name) })
	if !found {
		return -1
	}
	return i
}
