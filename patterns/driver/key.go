package driver

import (
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// keySeparator stands between the parts of a joined key; no key contains it.
const keySeparator = "\t"

// JoinKey returns a key as one text, for Fact.Place and the keys of an intent; SplitKey is the inverse.
func JoinKey(key tables.Key) string { return key.Partition + keySeparator + key.Row }

// SplitKey returns the key that JoinKey has joined. It returns an error for any other text: intents come from
// a queue, so the text may be forged.
func SplitKey(text string) (tables.Key, error) {
	partition, row, ok := strings.Cut(text, keySeparator)
	if !ok {
		return tables.Key{}, fmt.Errorf("the text of %d characters is not a key that JoinKey has joined; it must be a partition key, a tab and a row key", len(text))
	}
	return tables.Key{Partition: partition, Row: row}, nil
}
