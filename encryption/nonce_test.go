package encryption_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
)

// TestSaltsNeverRepeat counts the salts of ten million writes. Keys are a pseudorandom function of data key and salt, so they repeat
// when salts do; within a write, each value has a random nonce. Of each salt, the first 8 bytes are compared: two of ten million
// random ones are equal in 1 of 370,000 runs.
func TestSaltsNeverRepeat(t *testing.T) {
	n := 10_000_000
	if testing.Short() {
		n = 500_000
	}
	salts := make([]uint64, n)
	for i := range salts {
		salt := encryption.NewSalt()
		salts[i] = binary.BigEndian.Uint64(salt[:])
	}
	slices.Sort(salts)
	for i := 1; i < n; i++ {
		if salts[i] == salts[i-1] {
			t.Fatalf("of %d salts two begin with the same 8 bytes", n)
		}
	}
}

// TestWritesHaveNothingInCommon: the same entity, written again and again by several processes, has another salt, commitment and
// ciphertext each time; within a row, salt and commitment are the same.
func TestWritesHaveNothingInCommon(t *testing.T) {
	a := loader(t, nil)
	n := 5_000
	if testing.Short() {
		n = 1_000
	}
	seen := map[string]bool{}
	for range n {
		p := a.stored(t, aKey, text("A", "same"), text("B", "same"))
		left, _ := p.Get("A").Bytes()
		right, _ := p.Get("B").Bytes()
		seal, _ := p.Get(encryption.SealProperty).Bytes()
		if !bytes.Equal(left[8:88], right[8:88]) || !bytes.Equal(left[8:88], seal[8:88]) {
			t.Fatal("the values of a row do not belong together")
		}
		for _, part := range [][]byte{left[24:56], left[56:88], left[88:], right[88:]} {
			seen[string(part)] = true
		}
	}
	if len(seen) != 4*n {
		t.Errorf("%d of %d salts, commitments and ciphertexts are different", len(seen), 4*n)
	}
}
