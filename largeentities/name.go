package largeentities

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// The names of the blobs' metadata; the service knows no case in them.
const (
	metaKey  = "tpkey"    // whose blob it is: partition key, tab, row key, in base64
	metaHash = "tpsha256" // of the content, in hexadecimal
	metaHome = "tphome"   // which table's, in base64
)

const keySeparator = "\t" // no key has it in it

// nameOf names the blob of one change of one entity: no other change has its id, so a name is never used again.
func nameOf(prefix string, key patterns.Key, change string) string {
	return entityPrefix(prefix, key) + change
}

// entityPrefix begins the names of an entity's blobs.
func entityPrefix(prefix string, key patterns.Key) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%s", len(key.Partition), key.Partition, key.Row)
	return prefix + "/" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:15]) + "/"
}

// encodeKey writes a key for metadata, which takes ASCII only.
func encodeKey(key patterns.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(key.Partition + keySeparator + key.Row))
}

func decodeKey(text string) (patterns.Key, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return patterns.Key{}, false
	}
	partition, row, ok := strings.Cut(string(raw), keySeparator)
	return patterns.Key{Partition: partition, Row: row}, ok
}

// homeOf says which table a blob's entity is in. The port is left out: a local service has another one at each start.
func homeOf(table *patterns.Table) string {
	endpoint := table.Account().Endpoints().Table
	if u, err := url.Parse(endpoint); err == nil {
		endpoint = strings.ToLower(u.Hostname()) + u.Path
	}
	return base64.RawURLEncoding.EncodeToString([]byte(endpoint + "/" + table.Name()))
}
