package rows

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

const hashBytes = 20 // a multiple of 5, so base32 adds no padding

// Hash returns a hash of the texts in base32, which a key can contain. The hash includes the lengths of the
// texts, so that different lists of texts have different hashes.
func Hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d %s", len(text), text)
	}
	return base32.StdEncoding.EncodeToString(h.Sum(nil)[:hashBytes])
}
