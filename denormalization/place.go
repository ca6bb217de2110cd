package denormalization

import (
	"errors"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// placeSeparator stands between the parts of an entity's key in intents, audits and memories; no key has it in it.
const placeSeparator = "\t"

// placeOf is an entity's key in intents, audits and memories.
func placeOf(key tables.Key) string { return key.Partition + placeSeparator + key.Row }

func parsePlace(place string) (tables.Key, error) {
	partition, row, ok := strings.Cut(place, placeSeparator)
	if !ok {
		return tables.Key{}, errors.New("the intent is damaged: it names an entity without partition and row key")
	}
	return tables.Key{Partition: partition, Row: row}, nil
}
