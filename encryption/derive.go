package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
)

// writeKeys are the keys of one write or one stream. The salt is 32 random bytes, so no two writes share keys.
//
//	HKDF-SHA256(data key, salt, domain ‖ data key id) = 32 bytes key of AES-256-GCM ‖ 32 bytes key of HMAC-SHA256 ‖ 32 bytes commitment
//
// The commitment is stored because AES-GCM alone would let somebody who knows two keys make a ciphertext that opens
// under both.
type writeKeys struct {
	aead       cipher.AEAD
	mac        []byte
	commitment []byte

	digests hash.Hash // HMAC with the key mac; nil before the first digest. It has state, so only one goroutine may use a writeKeys
	scratch []byte
}

func derive(dataKey []byte, domain string, id DataKeyID, salt *[saltSize]byte) (*writeKeys, error) {
	info := make([]byte, 0, 64)
	info = append(append(info, domain...), id[:]...)
	okm, err := expand(dataKey, salt[:], string(info), 3*keySize)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(okm[:keySize])
	if err != nil {
		return nil, err
	}
	return &writeKeys{aead: aead, mac: okm[keySize : 2*keySize], commitment: okm[2*keySize:]}, nil
}

// expand derives n bytes from a key by HKDF-SHA256.
func expand(key, salt []byte, info string, n int) ([]byte, error) {
	return hkdf.Key(sha256.New, key, salt, info, n)
}

// newAEAD returns AES-GCM with nonces of 12 bytes and tags of 16 bytes.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newWrite draws a random salt and derives the keys of a write.
func newWrite(dataKey []byte, domain string, version byte, id DataKeyID) (origin, *writeKeys, error) {
	o := origin{version: version, key: id, salt: newSalt()}
	keys, err := derive(dataKey, domain, id, &o.salt)
	if err != nil {
		return o, nil, err
	}
	copy(o.commitment[:], keys.commitment)
	return o, keys, nil
}

func newSalt() (salt [saltSize]byte) {
	rand.Read(salt[:]) // never fails: crypto/rand ends the program instead
	return salt
}

// commits reports whether the stored commitment was made for these keys.
func (k *writeKeys) commits(o *origin) bool {
	return subtle.ConstantTimeCompare(k.commitment, o.commitment[:]) == 1
}

// valueNonce returns the nonce of a value. No nonce repeats under one key, since a key serves one write and each index occurs once in a
// write.
func valueNonce(index uint16) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint16(nonce[10:], index)
	return nonce
}
