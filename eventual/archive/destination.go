package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Destination says to where a Mover moves entities: use ToRepository or ToContainer.
type Destination[T any] interface {
	// check refuses a destination to which entities of the source cannot be moved.
	check(source driver.Host[T]) error
	// place returns the location of an entity's copy: partition key and row key, or the name of a blob. It does not
	// depend on properties that can change.
	place(source driver.Host[T], entity *T) ([]string, error)
	// move handles one delivery.
	move(ctx context.Context, w *moving[T]) error
}

// ToRepository moves entities into another repository, of another table, partition or account. That repository writes and maintains
// the copy and its patterns' rows like those of any entity.
//
// rekey changes the copy so that the repository's schema gives it another key; nil changes nothing. The new key must depend only on
// the entity's key or on properties that never change, and different entities must get different keys. rekey may assign fields, but
// must not change what pointers, maps and slices point to, because the entity shares it.
//
// along says what moves with the entity, such as the lines of an order: see Along.
func ToRepository[T any](repo *patterns.Repository[T], rekey func(*T), along ...Part[T]) Destination[T] {
	d := toRepository[T]{rekey: rekey, along: along}
	if repo != nil {
		d.repo = patterns.HostOf(repo)
	}
	return d
}

type toRepository[T any] struct {
	repo  driver.Host[T] // nil for no repository
	rekey func(*T)
	along []Part[T]
}

// check returns an error for a repository that would store in plaintext what the source encrypts, or that would hold references to blobs
// which the move deletes with the source's entity.
func (d toRepository[T]) check(source driver.Host[T]) error {
	if d.repo == nil {
		return errors.New("the repository is nil; give one")
	}
	kept := d.repo.Patterns()
	for _, p := range source.Patterns() {
		if streams(p) && !slices.ContainsFunc(kept, func(k driver.Implementation[T]) bool { return streams(k) && k.Name == p.Name }) {
			return fmt.Errorf("pattern %q keeps content in blobs that are deleted with the entity, and the destination has no such pattern; add it to the destination repository", p.Name)
		}
		if encrypts(p) && !slices.ContainsFunc(kept, encrypts[T]) {
			return fmt.Errorf("pattern %q encrypts properties, and the destination has no such pattern; add it to the destination repository", p.Name)
		}
	}
	for i, p := range d.along {
		if p == nil {
			return fmt.Errorf("part %d of ToRepository is nil; use Along", i+1)
		}
		if err := p.checkPart(source, d.repo); err != nil {
			return err
		}
	}
	return nil
}

func encrypts[T any](p driver.Implementation[T]) bool {
	return p.Transform != nil && p.Transform.Stage == driver.StageEncrypt
}

func streams[T any](p driver.Implementation[T]) bool {
	return p.Transform != nil && p.Transform.Streams
}

// rekeyed returns the value to store for an entity: a copy, since a write updates the Meta of its value.
func (d toRepository[T]) rekeyed(source driver.Host[T], entity *T) (*T, error) {
	v := *entity
	*d.repo.MetaOf(&v) = tables.Meta{}
	if d.rekey != nil {
		d.rekey(&v)
	}
	key := source.MetaOf(entity).Key()
	if d.repo.KeyOf(&v) == key && source.Table().Same(d.repo.Table()) {
		return nil, &tables.Error{Op: "Move", Table: source.Table().Name(), Key: key, Kind: tables.ErrInvalid,
			Err: errors.New("source and destination of the entity are the same; give another table or a rekey function")}
	}
	return &v, d.protects(source, entity, &v, key)
}

// protects refuses a copy that would hold in plaintext, or unsigned, what the source encrypts or signs. Which properties
// are protected depends on the entity's key, so protects is called for each entity.
func (d toRepository[T]) protects(source driver.Host[T], entity, copied *T, key tables.Key) error {
	from, to := protectorOf(source), protectorOf(d.repo)
	if from == nil {
		return nil
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return err
	}
	properties, err := codec.Encode(entity)
	if err != nil {
		return err
	}
	for _, p := range properties {
		want, got := from.Transform.Protects(key, p.Name), driver.Unprotected
		if to != nil {
			got = to.Transform.Protects(d.repo.KeyOf(copied), p.Name)
		}
		if !p.Value.IsNull() && got < want {
			return &tables.Error{Op: "Move", Table: source.Table().Name(), Key: key, Kind: tables.ErrInvalid, Pattern: from.Name,
				Err: fmt.Errorf("property %s is encrypted or signed at the source, but not at the destination, table %s; declare it there, too", p.Name, d.repo.Table().Name())}
		}
	}
	return nil
}

// protectorOf returns the pattern that encrypts or signs a repository's properties, nil for none.
func protectorOf[T any](repo driver.Host[T]) *driver.Implementation[T] {
	for _, p := range repo.Patterns() {
		if p.Transform != nil && p.Transform.Protects != nil {
			return &p
		}
	}
	return nil
}

func (d toRepository[T]) place(source driver.Host[T], entity *T) ([]string, error) {
	v, err := d.rekeyed(source, entity)
	if err != nil {
		return nil, err
	}
	key := d.repo.KeyOf(v)
	return []string{key.Partition, key.Row}, nil
}
