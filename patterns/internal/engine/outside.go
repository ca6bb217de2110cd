package engine

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// rememberOutside returns an entity's copies in other partitions. For a pattern whose key function rejects the
// entity it returns none, since the pattern has written none.
func (r *Engine) rememberOutside(v EntityCopies, stored entity.Properties) []outsideCopy {
	var list []outsideCopy
	for _, p := range r.Outside {
		copies, err := v.Outside(p)
		if err != nil {
			continue
		}
		for i := range copies {
			c := outsideCopy{pattern: p.Name, key: copies[i].Key}
			if copies[i].Keep != nil {
				if c.kept = stored.Only(copies[i].Keep); c.kept == nil {
					c.kept = entity.Properties{}
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// checkOutside checks that the copies of a change in other partitions can be stored, marked and settled.
func (w *Work) checkOutside() error {
	r := w.engine
	if w.Change.Kind == driver.ChangeDelete {
		return nil
	}
	own := &tablerow.Row{Key: w.Change.Key, ETag: anyETag, WriteID: tablerow.AnyWriteID, Properties: w.Change.Stored,
		Own: tablerow.Own{Incarnation: tablerow.AnyWriteID, Copies: string(r.copyNames)}}
	for _, p := range r.Outside {
		copies, err := w.Copies().Outside(p)
		if err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
		for i := range copies {
			row := r.copyOf(p, own, &copies[i])
			row.Own.Outside.Mark, row.Own.Outside.Acquirer, row.Own.Outside.Base = tablerow.AnyWriteID, tablerow.AnyWriteID, anyETag
			if _, err := row.Check(); err != nil {
				return PatternError(p, err, entity.ErrInvalid)
			}
		}
	}
	return nil
}

// anyETag is as long as the service's ETags, to compute the size of rows that will contain one.
const anyETag = `W/"datetime'2026-01-01T00%3A00%3A00.0000000Z'"`

// EntityCopies are the copies that patterns make of one entity value.
type EntityCopies struct {
	entity  any // nil for none
	near    map[*driver.Implementation][]driver.Copy
	outside map[*driver.Implementation][]driver.OutsideCopy
}

// CopiesOf returns the copies of an entity without caching: each call asks the pattern.
func CopiesOf(entity any) EntityCopies { return EntityCopies{entity: entity} }

// keptCopiesOf caches the copies of an entity during a change, so that a pattern's key function runs only
// once per entity. The program provides that function, and it may be slow.
func keptCopiesOf(entity any) EntityCopies {
	return EntityCopies{entity: entity, near: map[*driver.Implementation][]driver.Copy{}, outside: map[*driver.Implementation][]driver.OutsideCopy{}}
}

// Near returns a pattern's copies in the entity's partition.
func (e EntityCopies) Near(p *driver.Implementation) ([]driver.Copy, error) {
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
func (e EntityCopies) Outside(p *driver.Implementation) ([]driver.OutsideCopy, error) {
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

// checkOutsideCopies rejects copies that cannot be stored.
func checkOutsideCopies(copies []driver.OutsideCopy) error {
	for i := range copies {
		if err := rows.CheckKeys(copies[i].Key.Partition, copies[i].Key.Row); err != nil {
			return err
		}
		for j := range copies[:i] {
			if copies[j].Key == copies[i].Key {
				return errors.New("two copies of the entity have the same key; return each key once")
			}
		}
	}
	return nil
}

// OwnerOf describes the owner of a row that is in the way of a copy, for an error.
func OwnerOf(row *tablerow.Row) error {
	if !row.Own.Outside.Is {
		return errNoCopy
	}
	return ownedBy(marks.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary})
}

var errNoCopy = errors.New("a row that is not a copy of an entity has this key; delete it, or give the index another name or table")

func ownedBy(owner marks.Key) error {
	return fmt.Errorf("entity (%q, %q) owns this key", owner.Partition, owner.Row)
}
