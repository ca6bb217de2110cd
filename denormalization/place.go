package denormalization

import (
	"errors"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// placeSeparator stands between the parts of an entity's key in intents, audits and memories; no key has it in it.
const placeSeparator = "\t"

// placeOf is an entity's key in intents, audits and memories.
func placeOf(key patterns.Key) string { return key.Partition + placeSeparator + key.Row }

func parsePlace(place string) (patterns.Key, error) {
	partition, row, ok := strings.Cut(place, placeSeparator)
	if !ok {
		return patterns.Key{}, errors.New("an intent names an entity without a key")
	}
	return patterns.Key{Partition: partition, Row: row}, nil
}
