package encryption

import (
	"crypto/aes"
	"crypto/subtle"
	"encoding/binary"
)

// keyWrapIV is the initial value of RFC 3394, section 2.2.3.1.
const keyWrapIV = 0xA6A6A6A6A6A6A6A6

// keyWrap is the AES Key Wrap of RFC 3394, section 2.2.1. key has at least 16 bytes, in multiples of 8.
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

// keyUnwrap is the inverse (RFC 3394, section 2.2.2). It returns tables.ErrGarbled for anything that keyWrap did not
// make.
func keyUnwrap(wrapping, wrapped []byte) ([]byte, error) {
	block, err := aes.NewCipher(wrapping)
	if err != nil {
		return nil, err
	}
	if len(wrapped) < 24 || len(wrapped)%8 != 0 {
		return nil, errNotWrapped()
	}
	n := len(wrapped)/8 - 1
	out := append([]byte(nil), wrapped...)
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
