package encryption

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The plaintext of a value is its type code, its octets, 0x80, and zeros up to a multiple of Options.Padding:
//
//	1  Edm.String    UTF-8
//	2  Edm.Binary    the octets
//	3  Edm.Boolean   1 byte, 0 or 1
//	4  Edm.Int32     4 bytes, big endian
//	5  Edm.Int64     8 bytes, big endian
//	6  Edm.Double    8 bytes, IEEE 754, big endian
//	7  Edm.DateTime  8 bytes, big endian: units of 100 ns since 0001-01-01 UTC
//	8  Edm.Guid      16 bytes
//
// The header also contains the code, so the associated data contain it, too.
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

// appendValue appends the type code and the octets of a value; code 0 is null, which is never stored.
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

// parseValue is the inverse of appendValue.
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

// pad appends the mark 0x80 and zeros up to a multiple.
func pad(b []byte, multiple int) []byte {
	b = append(b, padMark)
	for multiple > 1 && len(b)%multiple != 0 {
		b = append(b, 0)
	}
	return b
}

// unpad removes the padding. It is called only on authenticated plaintext, so it need not run in constant
// time.
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

// seal encrypts one value.
func (k *writeKeys) seal(o origin, context []byte, name string, index int, v tables.Value, multiple int) []byte {
	plain, code := appendValue(make([]byte, 0, 64), v)
	plain = pad(plain, multiple)
	h := header{kind: kindValue, typeCode: code, index: uint16(index), origin: o}
	out := h.append(make([]byte, 0, headerSize+len(plain)+tagSize))
	data := append(appendField(append([]byte(nil), context...), name), out...)
	return k.aead.Seal(out, valueNonce(h.index), plain, data)
}

// open decrypts the result of seal. It takes the same steps whichever check fails.
func (k *writeKeys) open(h header, context []byte, name string, stored []byte) (v tables.Value, ok bool) {
	if len(stored) < headerSize {
		stored = make([]byte, headerSize)
	}
	data := append(appendField(append([]byte(nil), context...), name), stored[:headerSize]...)
	plain, err := k.aead.Open(nil, valueNonce(h.index), stored[headerSize:], data)
	committed := k.commits(&h.origin)
	if err != nil || !committed {
		return v, false
	}
	plain, padded := unpad(plain)
	v, valid := parseValue(plain, h.typeCode)
	return v, padded && valid
}
