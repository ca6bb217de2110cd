package encryption

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
)

// Everything that is stored begins with a header of 88 bytes:
//
//	 0   3  "TPE"
//	 3   1  format version: 2 of values and seals (1 is read), 1 of streams
//	 4   1  kind: 1 a property's value, 2 a row's seal, 3 a stream
//	 5   1  type code of the value (value.go); 0 for a seal and a stream
//	 6   2  index of the property among the row's encrypted ones, sorted by name, big endian; 0 for a seal and a stream
//	 8  16  id of the data key
//	24  32  salt of the write
//	56  32  key commitment
//
// In a value, ciphertext and tag (16 bytes) follow; seal.go and stream.go say what follows in a seal and in a stream.
const (
	headerSize = 88
	version1   = 1
	version2   = 2

	kindValue  = 1
	kindSeal   = 2
	kindStream = 3

	saltSize = 32
	keySize  = 32
	tagSize  = 16
)

const magic = "TPE"

// DataKeyID names a data key of a Registry. It is public.
type DataKeyID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id DataKeyID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the id is zero, which names no key.
func (id DataKeyID) IsZero() bool { return id == DataKeyID{} }

func parseDataKeyID(text string) (id DataKeyID, ok bool) {
	b, err := hex.DecodeString(text)
	return DataKeyID(append(b, make([]byte, 16)...)[:16]), err == nil && len(b) == len(id)
}

// origin holds the parts of a header that the values and the seal of one write have in common.
type origin struct {
	version    byte
	key        DataKeyID
	salt       [saltSize]byte
	commitment [keySize]byte
}

type header struct {
	kind, typeCode byte
	index          uint16
	origin
}

func (h *header) append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, h.version, h.kind, h.typeCode)
	dst = binary.BigEndian.AppendUint16(dst, h.index)
	dst = append(dst, h.key[:]...)
	dst = append(dst, h.salt[:]...)
	return append(dst, h.commitment[:]...)
}

// parseHeader parses a header of the given kind. It returns a header even if ok is false, so that the caller's
// remaining work, and its time, stay the same.
func parseHeader(b []byte, kind byte) (h header, rest []byte, ok bool) {
	if len(b) < headerSize {
		return header{}, nil, false
	}
	h.version, h.kind, h.typeCode, h.index = b[3], b[4], b[5], binary.BigEndian.Uint16(b[6:])
	copy(h.key[:], b[8:])
	copy(h.salt[:], b[24:])
	copy(h.commitment[:], b[56:])
	return h, b[headerSize:], hasHeader(b) && h.kind == kind && (kind != kindStream || h.version == version1)
}

// hasHeader reports whether a binary value has the header of this package. A plain value must not have it.
func hasHeader(b []byte) bool {
	return len(b) > len(magic) && bytes.HasPrefix(b, []byte(magic)) && (b[len(magic)] == version1 || b[len(magic)] == version2)
}

// appendField appends a text with its length, so that different lists of texts never have the same encoding.
func appendField(dst []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(text))), text...)
}

// place is the location to which a value is bound, in addition to its header.
type place struct {
	scope, table, partition, row string
	required                     string // the encoded result of Options.Context; version 1 does not bind it
}

// context begins the associated data of a value and the MAC input of a seal.
func (p place) context(domain string, version byte) []byte {
	b := make([]byte, 0, 256+len(p.partition)+len(p.row)+len(p.required))
	for _, field := range []string{domain, p.scope, p.table, p.partition, p.row} {
		b = appendField(b, field)
	}
	if version > version1 {
		b = appendField(b, p.required)
	}
	return b
}

// encodeContext encodes the result of Options.Context, so that different maps have different encodings; an empty map is
// "".
func encodeContext(pairs map[string]string) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		b = appendField(appendField(b, name), pairs[name])
	}
	return string(b)
}

// Each domain is the first field of the input of one use: a derivation, a MAC or a hash. No two uses, and no
// two versions, share a domain.
const (
	domainStream = "tablepatterns/encryption/1/stream"
	domainSigned = "tablepatterns/encryption/2/signed"
	domainCopy   = "tablepatterns/encryption/2/copy"
)

func domainValue(version byte) string {
	if version == version1 {
		return "tablepatterns/encryption/1/value"
	}
	return "tablepatterns/encryption/2/value"
}

func domainSeal(version byte) string {
	if version == version1 {
		return "tablepatterns/encryption/1/seal"
	}
	return "tablepatterns/encryption/2/seal"
}
