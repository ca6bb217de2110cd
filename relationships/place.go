package relationships

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// parentIn returns the key of an entity's parent, and an error if that key is illegal.
func parentIn[C any](parentOf func(*C) (tables.Key, bool), v *C) (key tables.Key, ok bool, err error) {
	if key, ok = parentOf(v); !ok {
		return tables.Key{}, false, nil
	}
	return key, true, errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}

// rememberParent returns the prior state of an entity: its parent. For an entity without a legal parent key
// it returns none, since such an entity was never counted.
func rememberParent[C any](parentOf func(*C) (tables.Key, bool), v *C) []string {
	key, ok, err := parentIn(parentOf, v)
	if err != nil || !ok {
		return nil
	}
	return []string{driver.JoinKey(key)}
}

// moves returns the parent from which a change removes an entity, and the parent to which the change adds it;
// "" means none.
func moves[C any](parentOf func(*C) (tables.Key, bool), c *driver.Change[C]) (from, to string, err error) {
	if len(c.Prior) > 0 {
		from = c.Prior[0]
	}
	if c.Kind == driver.ChangeDelete {
		return from, "", nil
	}
	key, ok, err := parentIn(parentOf, c.Entity)
	if ok && err == nil {
		to = driver.JoinKey(key)
	}
	return from, to, err
}
