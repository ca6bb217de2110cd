package relationships

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ParentCount stores the number of an entity's children in a property of the entity itself: the guide's EmployeeCount
// of a department, in whose partition the employees are. The children's own transactions update it. It is a pattern:
// give it to NewRepository of the children.
type ParentCount[C, P any] struct {
	name     string
	parents  *patterns.Repository[P]
	parentOf parentFunc
	count    func(*P) *int

	repository driver.Binding
}

// NewParentCount returns the pattern. parents is the repository of the parents. parentOf returns the key of a
// child's parent, which must be in the child's own partition, or false if the child has no parent. parentOf
// must be pure, and use stored properties only. count returns a pointer to the field with the number. Programs
// that write parents must not change this field. If a parent is read and then replaced, the field keeps its
// number, since the Replace fails if the number has changed meanwhile. name distinguishes the count from the
// children's other patterns.
func NewParentCount[C, P any](name string, parents *patterns.Repository[P], parentOf func(*C) (tables.Key, bool), count func(*P) *int) *ParentCount[C, P] {
	return &ParentCount[C, P]{name: name, parents: parents, parentOf: parentFuncOf(parentOf), count: count}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *ParentCount[C, P]) Attach(host driver.Host, _ *C) (driver.Implementation, error) {
	k := &parentCounter[C, P]{ParentCount: x, host: host}
	implementation := driver.Implementation{Name: x.name, Binding: &x.repository, Companions: k.companions,
		Prior: x.parentOf.prior}
	switch {
	case x.parents == nil || x.parentOf == nil || x.count == nil:
		return implementation, errors.New("the parents' repository, parentOf or count is nil; give all three")
	case !x.parents.Table().Same(host.Table()):
		return implementation, fmt.Errorf("the parents are on table %s, and a transaction changes one table; put the children there, or use Members, which counts across tables", x.parents.Table().Name())
	}
	return implementation, nil
}

// parentCounter is a ParentCount with the children's repository.
type parentCounter[C, P any] struct {
	*ParentCount[C, P]
	host driver.Host
}

// companions stages the parents whose numbers change, under the ETags with which it reads them.
func (x *parentCounter[C, P]) companions(ctx context.Context, c *driver.Change, t *tables.Transaction) error {
	from, to, err := x.parentOf.moves(c)
	if err != nil || from == to {
		return err
	}
	if from != "" {
		if err := x.add(ctx, c, t, from, -1); err != nil {
			return err
		}
	}
	if to != "" {
		return x.add(ctx, c, t, to, 1)
	}
	return nil
}

// add stages a parent with the changed number. If the parent does not exist, it returns an error for a child
// that enters it, and does nothing for a child that leaves it.
func (x *parentCounter[C, P]) add(ctx context.Context, c *driver.Change, t *tables.Transaction, place string, delta int) error {
	key, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	if key.Partition != c.Key.Partition {
		if delta < 0 {
			return nil // a program without the count has stored the child
		}
		return fmt.Errorf("the parent (%q, %q) is in another partition, and a transaction changes one partition; use Members, which counts across partitions", key.Partition, key.Row)
	}
	parent, err := driver.Got[P](patterns.HostOf(x.parents).GetIn(ctx, t, key))
	if errors.Is(err, tables.ErrNotFound) {
		if delta < 0 {
			return nil
		}
		return &tables.Error{Pattern: x.name, Kind: tables.ErrMissingReference, Err: fmt.Errorf("the parent (%q, %q) does not exist; insert it first, or let the child refer to another one", key.Partition, key.Row)}
	}
	if err != nil {
		return err
	}
	n := x.count(parent)
	if *n+delta < 0 {
		if *n, err = x.scan(ctx, key); err != nil {
			return err
		}
	}
	*n = max(*n+delta, 0)
	patterns.HostOf(x.parents).Stage(ctx, driver.ChangeReplace, t, parent)
	return nil
}

// scan counts the stored children of a parent.
func (x *parentCounter[C, P]) scan(ctx context.Context, parent tables.Key) (n int, err error) {
	for v, err := range core.Query(x.host.Query()).Partition(parent.Partition).All(ctx) {
		if err != nil {
			return 0, err
		}
		if key, ok := x.parentOf(v); ok && key == parent {
			n++
		}
	}
	return n, nil
}

// errSame ends the update of a parent whose number is already correct.
var errSame = errors.New("the number is already correct")

// unchanged returns errSame if a parent has not changed since it was read. Otherwise it returns nil. Then the
// service refuses the write of the running Update, which begins again: the counted number may be wrong although
// it equals the stored one.
func (x *ParentCount[C, P]) unchanged(ctx context.Context, read *P) error {
	meta := patterns.HostOf(x.parents).MetaOf
	now, err := x.parents.Get(ctx, meta(read).Key())
	if err == nil && meta(now).ETag == meta(read).ETag {
		return errSame
	}
	return err
}

// Recount counts a parent's children again and stores the number. It returns the new number and the previous
// one. Use it for parents that were inserted after their children, and for children that programs without the
// count have written. The number is exact: if a child is added or removed meanwhile, Recount counts again, up
// to the Schema.MaxAttempts of the parents' repository. Requests for each attempt: 2, and 1 for each page of
// children.
func (x *ParentCount[C, P]) Recount(ctx context.Context, parent tables.Key) (n, was int, err error) {
	host, err := x.repository.Host("Recount", x.name)
	if err != nil {
		return 0, 0, err
	}
	k := &parentCounter[C, P]{x, host}
	_, err = x.parents.Update(ctx, parent, func(v *P) error {
		field := x.count(v)
		was = *field
		var err error
		if n, err = k.scan(ctx, parent); err != nil {
			return err
		}
		if n == was {
			return x.unchanged(ctx, v)
		}
		*field = n
		return nil
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return n, was, err
}
