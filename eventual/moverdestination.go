package eventual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// Destination is where a Mover moves entities to: ToRepository or ToContainer.
type Destination[T any] interface {
	// check refuses a destination that entities of the source cannot be moved to.
	check(source *patterns.Repository[T]) error
	// prepare makes of an entity as read what is to be stored.
	prepare(source *patterns.Repository[T], entity *T) (parcel[T], error)
	// insert stores it where nothing is. It returns a nil occupant where it was stored and somebody has written over it since.
	insert(ctx context.Context, p parcel[T]) (occupant[T], error)
	// look reads what has its key, nil for nothing.
	look(ctx context.Context, p parcel[T]) (occupant[T], error)
}

// parcel is an entity on its way to a destination.
type parcel[T any] struct {
	from        patterns.Key // its key at the source
	incarnation string       // of the copy
	copied      *T           // another Go value than the entity, since writing brings its Meta up to date
}

// occupant is something at a destination, as seen once. Its writes are refused where it has changed since.
type occupant[T any] interface {
	// incarnation is the one that it was stored with, "" for what no repository and no mover has stored.
	incarnation() string
	// replace stores something in its place, and returns what insert does.
	replace(ctx context.Context, p parcel[T]) (occupant[T], error)
	// remove deletes it.
	remove(ctx context.Context) error
}

// ToRepository moves entities into a repository: of another table, another partition or another account. It has its own
// schema and patterns, whose rows are written and kept like those of any entity.
//
// rekey edits the copy so that the repository's schema gives it another key; nil leaves it as it is. The key that comes of
// it follows from the entity's own key alone, or from what never changes, and two entities do not get the same one. rekey
// assigns fields; what pointers, maps and slices in them point to is the entity's, too, and is left alone.
func ToRepository[T any](repo *patterns.Repository[T], rekey func(*T)) Destination[T] {
	return toRepository[T]{repo, rekey}
}

type toRepository[T any] struct {
	repo  *patterns.Repository[T]
	rekey func(*T)
}

// check refuses a repository that would keep in clear what the source encrypts, or hold references to blobs that go with the
// source's entity.
func (d toRepository[T]) check(source *patterns.Repository[T]) error {
	if d.repo == nil {
		return errors.New("the repository is nil")
	}
	kept := d.repo.Patterns()
	for _, p := range source.Patterns() {
		if s, ok := p.(patterns.Streamer); ok && s.Streams() && !slices.ContainsFunc(kept, func(k patterns.Pattern) bool {
			other, streams := k.(patterns.Streamer)
			return streams && other.Streams() && k.PatternName() == p.PatternName()
		}) {
			return fmt.Errorf("pattern %q leaves content in blobs that go with the entity, and the repository, which has no such pattern, would hold a reference to it", p.PatternName())
		}
		if encrypts(p) && !slices.ContainsFunc(kept, encrypts) {
			return fmt.Errorf("pattern %q encrypts properties, and the repository, which has no such pattern, would hold them in clear", p.PatternName())
		}
	}
	return nil
}

func encrypts(p patterns.Pattern) bool {
	t, ok := p.(patterns.PropertyTransformer)
	return ok && t.Stage() == patterns.StageEncrypt
}

func (d toRepository[T]) prepare(source *patterns.Repository[T], entity *T) (parcel[T], error) {
	v := *entity
	*d.repo.MetaOf(&v) = patterns.Meta{}
	if d.rekey != nil {
		d.rekey(&v)
	}
	key := source.MetaOf(entity).Key()
	if d.repo.KeyOf(&v) == key && sameTable(source.Table(), d.repo.Table()) {
		return parcel[T]{}, &patterns.Error{Op: "Move", Table: source.Table().Name(), Key: key, Index: -1, Kind: patterns.ErrInvalid,
			Err: errors.New("the entity would be moved to where it is")}
	}
	return newParcel(source, entity, &v), nil
}

// newParcel is the parcel of an entity as read.
func newParcel[T any](source *patterns.Repository[T], entity, copied *T) parcel[T] {
	meta := source.MetaOf(entity)
	return parcel[T]{from: meta.Key(), incarnation: movedIncarnation(meta.Incarnation()), copied: copied}
}

// sameTable goes by the address: one account may be opened twice. Table names know no case.
func sameTable(a, b *patterns.Table) bool {
	return a.Account().Endpoints().Table == b.Account().Endpoints().Table && strings.EqualFold(a.Name(), b.Name())
}

func (d toRepository[T]) insert(ctx context.Context, p parcel[T]) (occupant[T], error) {
	if err := d.repo.InsertIncarnation(ctx, p.copied, p.incarnation); err != nil {
		return nil, err
	}
	return d.occupant(p.copied), nil
}

func (d toRepository[T]) look(ctx context.Context, p parcel[T]) (occupant[T], error) {
	there, err := d.repo.Get(ctx, d.repo.KeyOf(p.copied))
	switch {
	case patterns.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return d.occupant(there), nil
}

// occupant is an entity as its Meta knows it. After a write whose answer was lost, and that somebody else's has followed, it
// does not.
func (d toRepository[T]) occupant(v *T) occupant[T] {
	if d.repo.MetaOf(v).ETag == "" {
		return nil
	}
	return storedEntity[T]{d.repo, v}
}

// storedEntity is an entity in a repository.
type storedEntity[T any] struct {
	repo   *patterns.Repository[T]
	entity *T
}

func (s storedEntity[T]) incarnation() string { return s.repo.MetaOf(s.entity).Incarnation() }

// replace writes over the entity in one change, whichever incarnation it is.
func (s storedEntity[T]) replace(ctx context.Context, p parcel[T]) (occupant[T], error) {
	*s.repo.MetaOf(p.copied) = *s.repo.MetaOf(s.entity)
	if err := s.repo.ReplaceIncarnation(ctx, p.copied, p.incarnation); err != nil {
		return nil, err
	}
	return toRepository[T]{repo: s.repo}.occupant(p.copied), nil
}

func (s storedEntity[T]) remove(ctx context.Context) error { return s.repo.Delete(ctx, s.entity) }
