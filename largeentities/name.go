package largeentities

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// The names of the blobs' metadata; the service knows no case in them.
const (
	metaTerm = "tpterm"   // how many seconds after it was stored, or touched, no transaction that points at it is sent any more
	metaKey  = "tpkey"    // whose blob it is: partition key, tab, row key, in base64
	metaHash = "tpsha256" // of the content, in hexadecimal
)

const keySeparator = "\t" // no key has it in it

// entityPrefix begins the names of an entity's blobs. Behind it comes the id of the change that wrote the blob: no other
// change has it, so a name is never used again.
func entityPrefix(prefix string, key tables.Key) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%s", len(key.Partition), key.Partition, key.Row)
	return prefix + "/" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:15]) + "/"
}

// encodeKey writes a key for metadata, which takes ASCII only.
func encodeKey(key tables.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(key.Partition + keySeparator + key.Row))
}

func decodeKey(text string) (tables.Key, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return tables.Key{}, false
	}
	partition, row, ok := strings.Cut(string(raw), keySeparator)
	return tables.Key{Partition: partition, Row: row}, ok
}
