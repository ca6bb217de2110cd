package encryption

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Every encrypted value, seal and stream begins with a header of 88 bytes:
//
//	 0   3  "TPE"
//	 3   1  format version, 1
//	 4   1  kind: 1 a property's value, 2 a row's seal, 3 a stream
//	 5   1  type code of the value (codeString and so on); 0 for a seal and a stream
//	 6   2  0
//	 8  16  id of the data key
//	24  32  salt of the write
//	56  32  key commitment
//
// In a value, nonce (12 bytes), ciphertext and tag (16 bytes) follow.
const (
	headerSize = 88
	version    = 1

	kindValue  = 1
	kindSeal   = 2
	kindStream = 3

	saltSize = 32
	keySize  = 32
	overhead = 28 // nonce and tag
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

// origin is what the values and the seal of one write share.
type origin struct {
	key        DataKeyID
	salt       [saltSize]byte
	commitment [keySize]byte
}

type header struct {
	kind, typeCode byte
	origin
}

func (h *header) append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version, h.kind, h.typeCode, 0, 0)
	dst = append(dst, h.key[:]...)
	dst = append(dst, h.salt[:]...)
	return append(dst, h.commitment[:]...)
}

// parseHeader returns a header even if ok is false: the caller does the same work in both cases, so its time does not show which check failed.
func parseHeader(b []byte, kind byte) (h header, rest []byte, ok bool) {
	if len(b) < headerSize {
		return header{}, nil, false
	}
	h.kind, h.typeCode = b[4], b[5]
	copy(h.key[:], b[8:])
	copy(h.salt[:], b[24:])
	copy(h.commitment[:], b[56:])
	return h, b[headerSize:], hasHeader(b) && h.kind == kind
}

// hasHeader reports whether a binary value looks encrypted, as a plain value must not.
func hasHeader(b []byte) bool {
	return len(b) > len(magic) && bytes.HasPrefix(b, []byte(magic)) && b[len(magic)] == version
}

// appendFields appends each text with its length, so different lists have different encodings.
func appendFields(dst []byte, texts ...string) []byte {
	for _, text := range texts {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(text)))
		dst = append(dst, text...)
	}
	return dst
}

type location struct {
	account, table, partition, row string
}

// locationOf has the table's name in lower case, since table names ignore case.
func locationOf(table *tables.Table, key tables.Key) location {
	return location{table.Account().Identity(), strings.ToLower(table.Name()), key.Partition, key.Row}
}

// place is what a value is bound to, besides its header.
type place struct {
	scope string
	location
	required string // the encoded result of Options.Context
}

// context begins the associated data of a value and the MAC input of a seal.
func (p place) context(domain string) []byte {
	b := make([]byte, 0, 256+len(p.partition)+len(p.row)+len(p.required))
	return appendFields(b, domain, p.scope, p.account, p.table, p.partition, p.row, p.required)
}

// encodeContext encodes the result of Options.Context: "" if it is empty.
func encodeContext(pairs map[string]string) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		b = appendFields(b, name, pairs[name])
	}
	return string(b)
}

// A domain begins each input of a key derivation, MAC or hash, and associated data, so a result made for one purpose is not valid for another.
const (
	domainValue  = "tablepatterns/encryption/1/value"
	domainSeal   = "tablepatterns/encryption/1/seal"
	domainStream = "tablepatterns/encryption/1/stream"
	domainSigned = "tablepatterns/encryption/1/signed"
	domainCopy   = "tablepatterns/encryption/1/copy"
)

// The plaintext of a value is its type code, its octets, 0x80, and zeros up to a multiple of Options.Padding. docs/reference/encryption.md has the
// octets of each type. The code also stands in the header, which is part of the associated data.
const (
	codeString = iota + 1
	codeBinary
	codeBoolean
	codeInt32
	codeInt64
	codeDouble
	codeDateTime
	codeGuid
)

const padMark = 0x80

// appendValue appends type code and octets; code 0 is null, which is never stored.
func appendValue(dst []byte, v tables.Value) (out []byte, code byte) {
	switch v.Type() {
	case tables.TypeString:
		s, _ := v.Text()
		return append(append(dst, codeString), s...), codeString
	case tables.TypeBinary:
		b, _ := v.Bytes()
		return append(append(dst, codeBinary), b...), codeBinary
	case tables.TypeBoolean:
		b, _ := v.Bool()
		if b {
			return append(dst, codeBoolean, 1), codeBoolean
		}
		return append(dst, codeBoolean, 0), codeBoolean
	case tables.TypeInt32:
		i, _ := v.Int()
		return binary.BigEndian.AppendUint32(append(dst, codeInt32), uint32(i)), codeInt32
	case tables.TypeInt64:
		i, _ := v.Int()
		return binary.BigEndian.AppendUint64(append(dst, codeInt64), uint64(i)), codeInt64
	case tables.TypeDouble:
		f, _ := v.Float()
		return binary.BigEndian.AppendUint64(append(dst, codeDouble), math.Float64bits(f)), codeDouble
	case tables.TypeDateTime:
		t, _ := v.Time()
		ticks, _ := edm.Ticks(t) // a Value's time is always in range
		return binary.BigEndian.AppendUint64(append(dst, codeDateTime), uint64(ticks)), codeDateTime
	case tables.TypeGUID:
		u, _ := v.UUID()
		return append(append(dst, codeGuid), u[:]...), codeGuid
	}
	return dst, 0
}

func parseValue(b []byte, code byte) (v tables.Value, ok bool) {
	if len(b) == 0 || b[0] != code {
		return v, false
	}
	b = b[1:]
	switch code {
	case codeString:
		return tables.String(string(b)), utf8.Valid(b)
	case codeBinary:
		return tables.Binary(b), true
	case codeBoolean:
		return tables.Boolean(len(b) == 1 && b[0] == 1), len(b) == 1 && b[0] <= 1
	case codeInt32:
		if len(b) == 4 {
			return tables.Int32(int32(binary.BigEndian.Uint32(b))), true
		}
	case codeInt64:
		if len(b) == 8 {
			return tables.Int64(int64(binary.BigEndian.Uint64(b))), true
		}
	case codeDouble:
		if len(b) == 8 {
			return tables.Double(math.Float64frombits(binary.BigEndian.Uint64(b))), true
		}
	case codeDateTime:
		if len(b) == 8 {
			v, err := tables.DateTime(edm.TimeOfTicks(int64(binary.BigEndian.Uint64(b))))
			return v, err == nil
		}
	case codeGuid:
		if len(b) == 16 {
			return tables.GUID(uuid.UUID(b)), true
		}
	}
	return v, false
}

// pad appends 0x80, and zeros up to a multiple.
func pad(b []byte, multiple int) []byte {
	b = append(b, padMark)
	for multiple > 1 && len(b)%multiple != 0 {
		b = append(b, 0)
	}
	return b
}

// unpad need not run in constant time: the plaintext is already authenticated.
func unpad(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i] {
		case 0:
		case padMark:
			return b[:i], true
		default:
			return nil, false
		}
	}
	return nil, false
}

func (k *writeKeys) seal(o origin, context []byte, name string, v tables.Value, multiple int) []byte {
	plain, code := appendValue(make([]byte, 0, 64), v)
	plain = pad(plain, multiple)
	h := header{kind: kindValue, typeCode: code, origin: o}
	out := h.append(make([]byte, 0, headerSize+len(plain)+overhead))
	data := append(appendFields(bytes.Clone(context), name), out...)
	return k.aead.Seal(out, nil, plain, data)
}

// open makes all checks even if one fails, so that its time does not show which did.
func (k *writeKeys) open(h header, context []byte, name string, stored []byte) (v tables.Value, ok bool) {
	if len(stored) < headerSize {
		stored = make([]byte, headerSize)
	}
	data := append(appendFields(bytes.Clone(context), name), stored[:headerSize]...)
	plain, err := k.aead.Open(nil, nil, stored[headerSize:], data)
	committed := k.commits(&h.origin)
	if err != nil || !committed {
		return v, false
	}
	plain, padded := unpad(plain)
	v, valid := parseValue(plain, h.typeCode)
	return v, padded && valid
}
