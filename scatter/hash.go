package scatter

import (
	"crypto/sha256"
	"encoding/binary"
)

// MaxPartitions is the largest n.
const MaxPartitions = 1000

// Bucket returns the number of the partition, 0 to n-1, of a text: the first 8 bytes of SHA-256 of the text
// in UTF-8, as a big-endian number, modulo n. Stored data depend on it, so it never changes; n must be 1 or
// more. Unlike simpler hashes, it spreads evenly even keys that differ only in a few digits.
func Bucket(text string, n int) int {
	sum := sha256.Sum256([]byte(text))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}
