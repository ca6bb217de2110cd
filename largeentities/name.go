package largeentities

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The names of the blobs' metadata; the service ignores their case.
const (
	metaTerm = "tpterm"   // the Deadline in seconds: after this time since Last-Modified, no transaction that points at the blob is sent
	metaKey  = "tpkey"    // the entity: partition key, tab, row key, in base64
	metaHash = "tpsha256" // SHA-256 of the content, in hexadecimal
)

// entityPrefix returns the beginning of the names of an entity's blobs. The rest of a name is the id of the
// change that wrote the blob. No other change has that id, so no name is used twice.
func entityPrefix(prefix string, key tables.Key) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%s", len(key.Partition), key.Partition, key.Row)
	return prefix + "/" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:15]) + "/"
}

// encodeKey encodes a key for metadata, which must be ASCII.
func encodeKey(key tables.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(driver.JoinKey(key)))
}

func decodeKey(text string) (tables.Key, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return tables.Key{}, false
	}
	key, err := driver.SplitKey(string(raw))
	return key, err == nil
}
