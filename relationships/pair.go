package relationships

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Pair is a one-to-one relationship of entities in one partition of one table, by a convention of their keys,
// such as an employee and the photo of the employee. Each of the two types has a repository of its own. It is
// safe for concurrent use.
type Pair[A, B any] struct {
	as      *patterns.Repository[A]
	bs      *patterns.Repository[B]
	partner func(tables.Key) tables.Key
}

// NewPair makes a pair of two repositories on one table. partner returns the key of the B that belongs to an
// A: it has the same partition key and another row key. partner must be pure. NewPair makes no request.
func NewPair[A, B any](as *patterns.Repository[A], bs *patterns.Repository[B], partner func(a tables.Key) tables.Key) (*Pair[A, B], error) {
	const op = "NewPair"
	switch {
	case as == nil || bs == nil || partner == nil:
		return nil, errs.Wiringf(op, "", "a repository or the partner function is nil; give all three")
	case !as.Table().Same(bs.Table()):
		return nil, errs.Wiringf(op, "", "the repositories are on two tables, and a transaction changes one table; use Reference with SameKey")
	}
	return &Pair[A, B]{as, bs, partner}, nil
}

// belong returns an error if a and b are not the keys of a pair.
func (p *Pair[A, B]) belong(op string, a, b tables.Key) error {
	if want := p.partner(a); want != b || want.Partition != a.Partition || want == a {
		return &tables.Error{Op: op, Table: p.as.Table().Name(), Key: a, Kind: tables.ErrInvalid,
			Err: fmt.Errorf("the partner function returned the key (%q, %q), but the other entity has the key (%q, %q); they must be equal, in the partition of the first entity and with another row key", want.Partition, want.Row, b.Partition, b.Row)}
	}
	return nil
}

// Insert adds both entities with all their rows, or neither. Requests: 1, and those of the patterns of both
// (see Repository.StageInsert).
func (p *Pair[A, B]) Insert(ctx context.Context, a *A, b *B) error {
	if a == nil || b == nil {
		return errs.Invalidf("Insert", "an entity of the pair is nil; give both")
	}
	if err := p.belong("Insert", p.as.KeyOf(a), p.bs.KeyOf(b)); err != nil {
		return err
	}
	x := p.as.Table().NewTransaction()
	p.as.StageInsert(x, a)
	p.bs.StageInsert(x, b)
	_, err := x.Commit(ctx)
	return err
}

// Delete removes both entities under the ETags with which they were read, or neither. Requests: as Insert.
func (p *Pair[A, B]) Delete(ctx context.Context, a *A, b *B) error {
	if a == nil || b == nil {
		return errs.Invalidf("Delete", "an entity of the pair is nil; give both")
	}
	if err := p.belong("Delete", patterns.HostOf(p.as).MetaOf(a).Key(), patterns.HostOf(p.bs).MetaOf(b).Key()); err != nil {
		return err
	}
	x := p.as.Table().NewTransaction()
	p.as.StageDelete(x, a)
	p.bs.StageDelete(x, b)
	_, err := x.Commit(ctx)
	return err
}

// Get reads both entities concurrently, given the key of the A. It returns nil for an entity that does not
// exist, and tables.ErrNotFound if neither exists. The two reads are not atomic. Requests: 2.
func (p *Pair[A, B]) Get(ctx context.Context, key tables.Key) (a *A, b *B, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		a, err = there(p.as.Get(ctx, key))
		return err
	})
	group.Go(func() (err error) {
		b, err = there(p.bs.Get(ctx, p.partner(key)))
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if a == nil && b == nil {
		return nil, nil, &tables.Error{Op: "Get", Table: p.as.Table().Name(), Key: key, Kind: tables.ErrNotFound}
	}
	return a, b, nil
}

// there turns tables.ErrNotFound into a nil entity without error.
func there[T any](v *T, err error) (*T, error) {
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	return v, err
}
