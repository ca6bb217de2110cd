package relationships

import (
	"errors"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// placeSeparator stands between the parts of an entity's key in intents, audits and memories; no key has it in it.
const placeSeparator = "\t"

func placeOf(key tables.Key) string { return key.Partition + placeSeparator + key.Row }

func parsePlace(place string) (tables.Key, error) {
	partition, row, ok := strings.Cut(place, placeSeparator)
	if !ok {
		return tables.Key{}, errors.New("it names a parent without a key")
	}
	return tables.Key{Partition: partition, Row: row}, nil
}

// parentIn returns the key of an entity's parent, and refuses one that no entity can have.
func parentIn[C any](parentOf func(*C) (tables.Key, bool), v *C) (key tables.Key, ok bool, err error) {
	if key, ok = parentOf(v); !ok {
		return tables.Key{}, false, nil
	}
	return key, true, errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}

// rememberParent notes the parent of an entity. What has none that can be never was counted.
func rememberParent[C any](parentOf func(*C) (tables.Key, bool), v *C) []string {
	key, ok, err := parentIn(parentOf, v)
	if err != nil || !ok {
		return nil
	}
	return []string{placeOf(key)}
}

// moves returns the place that a change takes an entity out of, and the one that it puts it into; "" for none.
func moves[C any](parentOf func(*C) (tables.Key, bool), c *driver.Change[C]) (from, to string, err error) {
	if len(c.Prior) > 0 {
		from = c.Prior[0]
	}
	if c.Kind == driver.ChangeDelete {
		return from, "", nil
	}
	key, ok, err := parentIn(parentOf, c.Entity)
	if ok && err == nil {
		to = placeOf(key)
	}
	return from, to, err
}
