package encryption

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// SealProperty is the plain Edm.Binary property beside the encrypted ones of a row. After its header come the names of the
// encrypted properties, sorted, and a MAC, so that none can be removed, added, or exchanged for that of another version:
//
//	 88   2   number of names, big endian
//	 90  ...  each name: 2 bytes length, big endian, and UTF-8
//	end  32   HMAC-SHA256 over "tablepatterns/encryption/1/seal", scope, table, partition key and row key, each preceded by 4 bytes
//	          of length, and all of the above
const SealProperty = "_encryptionSeal"

const macSize = sha256.Size

// appendSeal makes the seal of a row.
func (k *writeKeys) appendSeal(o origin, at place, names []string) []byte {
	h := header{kind: kindSeal, origin: o}
	b := binary.BigEndian.AppendUint16(h.append(nil), uint16(len(names)))
	for _, name := range names {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(name))), name...)
	}
	return append(b, k.sealMAC(at, b)...)
}

func (k *writeKeys) sealMAC(at place, body []byte) []byte {
	mac := hmac.New(sha256.New, k.mac)
	mac.Write(at.context(domainSeal))
	mac.Write(body)
	return mac.Sum(nil)
}

// rowSeal is a seal as read; nothing of it counts before its MAC was checked.
type rowSeal struct {
	header
	names      []string
	body, code []byte
}

// parseSeal returns a seal also where it is not ok, so that the rest of the work is the same.
func parseSeal(b []byte) (s rowSeal, ok bool) {
	h, rest, ok := parseHeader(b, kindSeal)
	s.header = h
	if len(rest) < 2+macSize {
		return s, false
	}
	s.body, s.code = b[:len(b)-macSize], b[len(b)-macSize:]
	rest = rest[:len(rest)-macSize]
	count := int(binary.BigEndian.Uint16(rest))
	rest = rest[2:]
	for range count {
		if len(rest) < 2 {
			return s, false
		}
		n := int(binary.BigEndian.Uint16(rest))
		if len(rest) < 2+n {
			return s, false
		}
		s.names = append(s.names, string(rest[2:2+n]))
		rest = rest[2+n:]
	}
	return s, ok && len(rest) == 0 && slices.IsSorted(s.names)
}

// verifies checks commitment and MAC.
func (k *writeKeys) verifies(s *rowSeal, at place) bool {
	genuine := hmac.Equal(k.sealMAC(at, s.body), s.code)
	return k.commits(&s.origin) && genuine
}
