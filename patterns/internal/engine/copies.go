package engine

import (
	"errors"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// EntityCopies are the copies that patterns make of one entity value.
type EntityCopies struct {
	entity  any // nil for none
	near    map[*Pattern][]driver.Copy
	outside map[*Pattern][]driver.OutsideCopy
}

// CopiesOf returns the copies of an entity without caching: each call asks the pattern.
func CopiesOf(entity any) EntityCopies { return EntityCopies{entity: entity} }

// keptCopiesOf caches the copies of an entity during a change, so that a pattern's key function runs only
// once per entity. The program provides that function, and it may be slow.
func keptCopiesOf(entity any) EntityCopies {
	return EntityCopies{entity: entity, near: map[*Pattern][]driver.Copy{}, outside: map[*Pattern][]driver.OutsideCopy{}}
}

// Near returns a pattern's copies in the entity's partition.
func (e EntityCopies) Near(p *Pattern) ([]driver.Copy, error) {
	if made, known := e.near[p]; known {
		return made, nil
	}
	made, err := p.Copies(e.entity)
	if err == nil && e.near != nil {
		e.near[p] = made
	}
	return made, err
}

// Outside returns a pattern's copies outside of the entity's partition; without an entity it returns nil.
func (e EntityCopies) Outside(p *Pattern) ([]driver.OutsideCopy, error) {
	if e.entity == nil {
		return nil, nil
	}
	if made, known := e.outside[p]; known {
		return made, nil
	}
	made, err := p.Outside.Copies(e.entity)
	if err == nil {
		err = checkOutsideCopies(made)
	}
	if err != nil {
		return nil, err
	}
	if e.outside != nil {
		e.outside[p] = made
	}
	return made, nil
}

// has reports whether the entity has a copy of a pattern under a key outside of its partition.
func (e EntityCopies) has(p *Pattern, key tables.Key) (bool, error) {
	made, err := e.Outside(p)
	return slices.ContainsFunc(made, func(c driver.OutsideCopy) bool { return c.Key == key }), err
}

// checkOutsideCopies rejects copies that cannot be stored.
func checkOutsideCopies(copies []driver.OutsideCopy) error {
	for i := range copies {
		if err := rows.CheckKeys(copies[i].Key.Partition, copies[i].Key.Row); err != nil {
			return err
		}
		if strings.HasPrefix(copies[i].Key.Row, ClaimPrefix) {
			return errors.New("a copy's row key begins with U+FFFC, which is reserved for claims; use another row key")
		}
		for j := range copies[:i] {
			if copies[j].Key == copies[i].Key {
				return errors.New("two copies of the entity have the same key; return each key once")
			}
		}
	}
	return nil
}
