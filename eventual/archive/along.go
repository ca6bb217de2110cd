package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Part says which entities of another type move together with an entity, such as the lines of an order; Along
// returns one.
type Part[T any] interface {
	// checkPart refuses a part that cannot be in one transaction with the entity, at the source or at the destination.
	checkPart(source, destination driver.Host) error
	// at returns the children of v. atSource says whether v is the entity at the source, or its copy at the
	// destination.
	at(ctx context.Context, v *T, atSource bool) ([]follower, error)
}

// Along moves the children of an entity with it, in the same two transactions. of restricts a query of all
// children to the children of one entity. The query must stay in the entity's partition. The mover also calls
// of with the entity's copy, to select the children at the destination. to is the repository that stores the
// copies of the children, in the table and partition of the entity's copy; rekey is as in ToRepository. An
// entity with its children, and all rows that their patterns write, can have at most 99 rows at either end. If
// there are more, the message goes to the poison queue with tables.ErrTooLarge.
//
// The insert of a child must also change the entity; otherwise a child that is inserted during the move stays
// behind. A relationships.ParentCount on the children's repository makes it do so. Do not use a ParentCount at
// the destination: the entity's copy already has the number.
func Along[T, C any](children *patterns.Repository[C], of func(children tables.Query[C], v *T) tables.Query[C], to *patterns.Repository[C], rekey func(*C)) Part[T] {
	p := &childrenOf[T, C]{of: of, toRepository: toRepository[C]{rekey: rekey}}
	if children != nil {
		p.source = patterns.HostOf(children)
	}
	if to != nil {
		p.repo = patterns.HostOf(to)
	}
	return p
}

// childrenOf is the Part that Along returns.
type childrenOf[T, C any] struct {
	source driver.Host
	of     func(tables.Query[C], *T) tables.Query[C]
	toRepository[C]
}

func (p *childrenOf[T, C]) checkPart(source, destination driver.Host) error {
	switch {
	case p.source == nil || p.repo == nil || p.of == nil:
		return errors.New("Along was given a nil repository or function; give both repositories and the function that finds the children")
	case !p.source.Table().Same(source.Table()):
		return fmt.Errorf("the children that move along are in table %s, and the entities in table %s; one transaction deletes both, so keep them in one table", p.source.Table().Name(), source.Table().Name())
	case !p.repo.Table().Same(destination.Table()):
		return fmt.Errorf("the children would move to table %s, and the entities to table %s; one transaction inserts both, so give repositories on one table", p.repo.Table().Name(), destination.Table().Name())
	case sharesMeta[C](p.source):
		return errors.New("the children embed tables.Meta through a pointer, so a child and its copy would share it; embed the struct itself")
	}
	return p.check(p.source)
}

// mostFollowers limits the children of an entity: a transaction has at most 100 rows, and two of them are the
// entity's and the mark or trace.
const mostFollowers = 98

func (p *childrenOf[T, C]) at(ctx context.Context, v *T, atSource bool) ([]follower, error) {
	host := p.repo
	if atSource {
		host = p.source
	}
	var all []follower
	for child, err := range p.of(tables.Query[C](host.Query()), v).Top(mostFollowers + 1).All(ctx) {
		if err != nil {
			return nil, err
		}
		if all = append(all, &childOf[T, C]{p, host, child}); len(all) > mostFollowers {
			return nil, &tables.Error{Op: "Move", Table: host.Table().Name(), Kind: tables.ErrTooLarge,
				Err: fmt.Errorf("more than %d children belong to the entity, and one transaction has 100 rows; move some of them before", mostFollowers)}
		}
	}
	return all, nil
}

// follower is a child that moves along with its entity.
type follower interface {
	meta() *tables.Meta
	deletes() driver.Along
	// copies returns the key of the child's copy, and the change that writes the copy: a replacement if present
	// has this key, otherwise an insert.
	copies(present map[tables.Key]follower) (tables.Key, driver.Along, error)
}

// childOf is a child, at the source or at the destination.
type childOf[T, C any] struct {
	part  *childrenOf[T, C]
	host  driver.Host
	child *C
}

func (c *childOf[T, C]) meta() *tables.Meta { return c.host.MetaOf(c.child) }

func (c *childOf[T, C]) deletes() driver.Along {
	return c.host.Along(driver.ChangeDelete, c.child, "")
}

func (c *childOf[T, C]) copies(present map[tables.Key]follower) (tables.Key, driver.Along, error) {
	incarnation := c.meta().Incarnation()
	if incarnation == "" {
		return tables.Key{}, driver.Along{}, &tables.Error{Op: "Move", Table: c.host.Table().Name(), Key: c.meta().Key(), Kind: tables.ErrInvalid,
			Err: errors.New("the child has no incarnation, because a program without repository wrote it; Replace it with the repository, then requeue this message")}
	}
	copied, err := c.part.rekeyed(c.host, c.child)
	if err != nil {
		return tables.Key{}, driver.Along{}, err
	}
	key, kind := c.part.repo.KeyOf(copied), driver.ChangeInsert
	if there := present[key]; there != nil {
		*c.part.repo.MetaOf(copied) = *there.meta()
		kind = driver.ChangeReplace
	}
	return key, c.part.repo.Along(kind, copied, movedIncarnation(incarnation)), nil
}

// family is an entity with the children that move along with it.
type family[T any] struct {
	head *T
	rest []follower
}

// familyOf reads the children of an entity.
func (d toRepository[T]) familyOf(ctx context.Context, v *T, atSource bool) (*family[T], error) {
	f := &family[T]{head: v}
	for _, p := range d.along {
		rest, err := p.at(ctx, v, atSource)
		if err != nil {
			return nil, err
		}
		f.rest = append(f.rest, rest...)
	}
	return f, nil
}

// deletesOf returns the changes that delete a family's children.
func deletesOf(rest []follower) []driver.Along {
	var changes []driver.Along
	for _, f := range rest {
		changes = append(changes, f.deletes())
	}
	return changes
}

// copiesOf returns the changes after which the destination has copies of exactly the children in source. there
// has the children that are at the destination now.
func copiesOf(source, there []follower) ([]driver.Along, error) {
	present := map[tables.Key]follower{}
	for _, f := range there {
		present[f.meta().Key()] = f
	}
	var changes []driver.Along
	for _, f := range source {
		key, change, err := f.copies(present)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
		delete(present, key)
	}
	for _, f := range there {
		if present[f.meta().Key()] != nil {
			changes = append(changes, f.deletes())
		}
	}
	return changes, nil
}
