package archive

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ToRepository moves entities into another repository, whose table can be another one, or the same with another
// partition, and can be in another account. That repository writes the copy, with the rows of its patterns,
// like any other entity.
//
// rekey changes the copy so that the repository's schema gives it another key; nil changes nothing. The new key
// must depend only on the entity's key or on properties that never change, and different entities must get
// different keys. rekey may assign fields, but must not change what pointers, maps and slices point to, because
// the entity and the copy share that.
//
// along says which other entities move together with the entity, such as the lines of an order; see Along.
func ToRepository[T any](repo *patterns.Repository[T], rekey func(*T), along ...Part[T]) Destination[T] {
	d := toRepository[T]{rekey: rekey, along: along}
	if repo != nil {
		d.repo = patterns.HostOf(repo)
	}
	return d
}

type toRepository[T any] struct {
	repo  driver.Host // nil if ToRepository was given nil
	rekey func(*T)
	along []Part[T]
}

// check refuses a repository that would store in plaintext what the source encrypts, or would hold references to blobs that
// the move deletes with the entity.
func (d toRepository[T]) check(source driver.Host) error {
	if d.repo == nil {
		return errors.New("the repository is nil; give one")
	}
	kept := d.repo.Patterns()
	for _, p := range source.Patterns() {
		if streams(p) && !slices.ContainsFunc(kept, func(k *driver.Implementation) bool { return streams(k) && k.Name == p.Name }) {
			return fmt.Errorf("pattern %q keeps content in blobs that are deleted with the entity, and the destination has no such pattern; add it to the destination repository", p.Name)
		}
		if encrypts(p) && !slices.ContainsFunc(kept, encrypts) {
			return fmt.Errorf("pattern %q encrypts properties, and the destination has no such pattern; add it to the destination repository", p.Name)
		}
	}
	for i, p := range d.along {
		if p == nil {
			return fmt.Errorf("value %d of the along arguments of ToRepository is nil; use Along", i+1)
		}
		if err := p.checkPart(source, d.repo); err != nil {
			return err
		}
	}
	return nil
}

func encrypts(p *driver.Implementation) bool {
	return p.Transform != nil && p.Transform.Stage == driver.StageEncrypt
}

func streams(p *driver.Implementation) bool {
	return p.Transform != nil && p.Transform.Streams
}

// rekeyed returns a copy of the entity's value, with the key that it gets at the destination.
func (d toRepository[T]) rekeyed(source driver.Host, entity *T) (*T, error) {
	v := *entity
	*d.repo.MetaOf(&v) = tables.Meta{}
	if d.rekey != nil {
		d.rekey(&v)
	}
	key := source.MetaOf(entity).Key()
	err := source.MayName(key, d.repo.KeyOf(&v))
	if d.repo.KeyOf(&v) == key && source.Table().Same(d.repo.Table()) {
		err = errors.New("source and destination of the entity are the same; give another table or a rekey function")
	}
	if err != nil {
		return nil, &tables.Error{Op: "Move", Table: source.Table().Name(), Key: key, Kind: tables.ErrInvalid, Err: err}
	}
	return &v, d.protects(source, entity, &v, key)
}

// protects returns an error if a property is less protected in the copy than at the source: encrypted, signed,
// or neither. It checks each entity, since the key may determine which properties are protected.
func (d toRepository[T]) protects(source driver.Host, entity, copied *T, key tables.Key) error {
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

// protectorOf returns the pattern that encrypts or signs a repository's properties, or nil.
func protectorOf(repo driver.Host) *driver.Implementation {
	for _, p := range repo.Patterns() {
		if p.Transform != nil && p.Transform.Protects != nil {
			return p
		}
	}
	return nil
}

func (d toRepository[T]) place(source driver.Host, entity *T) ([]string, error) {
	v, err := d.rekeyed(source, entity)
	if err != nil {
		return nil, err
	}
	key := d.repo.KeyOf(v)
	return []string{key.Partition, key.Row}, nil
}

// repositoryMove is one delivery of a move into a repository. internal/models/mover is the model of this protocol; S, D, M and T
// there are the entity, its copy, the mark and the trace.
type repositoryMove[T any] struct {
	*moving[T]
	toRepository[T]
	refused bool // the service has refused a request, so the next round must find out what is stored
}

func (d toRepository[T]) move(ctx context.Context, w *moving[T]) error {
	if len(w.to) != 2 {
		return w.failure(tables.ErrInvalid, errors.New("the message has no key of a copy in a repository; call Move again"))
	}
	m := &repositoryMove[T]{moving: w, toRepository: d}
	return w.rounds(ctx, m.round)
}

func (m *repositoryMove[T]) round(ctx context.Context) (done bool, err error) {
	if m.refused {
		return m.recheck(ctx)
	}
	entity, err := m.readSource(ctx)
	if err != nil {
		return false, err
	}
	if entity == nil {
		return m.gone(ctx)
	}
	return m.copy(ctx, entity, nil, nil)
}

func (m *repositoryMove[T]) readMark(ctx context.Context) (*moverRow, error) {
	return m.readRow(ctx, m.repo.Table(), m.to[0], markRow)
}

// readSource reads the entity with its children; it returns nil if read does. The rows may be read at different
// moments: the transaction that deletes them checks all ETags.
func (m *repositoryMove[T]) readSource(ctx context.Context) (*family[T], error) {
	entity, err := m.read(ctx)
	if err != nil || entity == nil {
		return nil, err
	}
	return m.familyOf(ctx, entity, true)
}

// readCopy reads the entity under the copy's key with its children; it returns nil if there is none.
func (m *repositoryMove[T]) readCopy(ctx context.Context) (*family[T], error) {
	there, err := driver.Got[T](m.repo.Get(ctx, tables.Key{Partition: m.to[0], Row: m.to[1]}))
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.familyOf(ctx, there, false)
}

// isCopy reports whether an entity at the destination is this move's copy, even if users have changed it since.
func (m *repositoryMove[T]) isCopy(there *family[T]) bool {
	return there != nil && m.repo.MetaOf(there.head).Incarnation() == movedIncarnation(m.incarnation)
}

// isAsCopied reports whether the copies of the entity and its children have not changed since the transaction
// that wrote them and the mark.
func (m *repositoryMove[T]) isAsCopied(there *family[T], mark *moverRow) bool {
	if !m.isCopy(there) || m.repo.MetaOf(there.head).WriteID() != mark.WriteID() || len(there.rest) != int(mark.Along) {
		return false
	}
	return !slices.ContainsFunc(there.rest, func(f follower) bool { return f.meta().WriteID() != mark.WriteID() })
}

// sourceVersion returns the text by which the mark identifies what was copied: the entity's ETag or, with children, a hash
// of all keys and ETags.
func (m *repositoryMove[T]) sourceVersion(f *family[T]) string {
	head := m.source.MetaOf(f.head)
	if len(f.rest) == 0 {
		return string(head.ETag)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q", head.ETag)
	for _, child := range f.rest {
		fmt.Fprintf(h, " %q %q %q", child.meta().Key().Partition, child.meta().Key().Row, child.meta().ETag)
	}
	return base32.StdEncoding.EncodeToString(h.Sum(nil))
}

// copy writes the copies of entity and children, and the mark, in one transaction, and continues with finish.
// It replaces there, the family that was read at the destination, and mark, the move's earlier mark; each of
// the two is nil if it does not exist.
func (m *repositoryMove[T]) copy(ctx context.Context, entity, there *family[T], mark *moverRow) (done bool, err error) {
	m.refused = true
	copied, err := m.rekeyed(m.source, entity.head)
	if err != nil {
		return false, err
	}
	var present []follower
	next, verb, kind := m.row(markRow, m.to[0]), driver.InsertRow, driver.ChangeInsert
	next.Source, next.Along = m.sourceVersion(entity), int32(len(entity.rest))
	if there != nil {
		*m.repo.MetaOf(copied) = *m.repo.MetaOf(there.head)
		kind, present = driver.ChangeReplace, there.rest
	}
	if mark != nil {
		next.ETag, verb = mark.ETag, driver.ReplaceRow
	}
	beside, err := besideRow(verb, m.repo.Table(), next)
	if err != nil {
		return false, err
	}
	along, err := copiesOf(entity.rest, present)
	if err != nil {
		return false, err
	}
	options := &driver.ApplyOptions{Incarnation: movedIncarnation(m.incarnation), Beside: beside, Along: along}
	err = m.repo.Apply(ctx, kind, copied, options)
	var taken *tables.Error
	if len(along) > 0 && tables.KindOf(err) == tables.ErrExists && errors.As(err, &taken) && taken.Change > 1 {
		return false, m.failure(tables.ErrExists, fmt.Errorf("a child's key is taken at the destination: that of child %d, by an entity that does not belong to the copy; delete that one, then requeue this message", taken.Change-1))
	}
	if done, err = unlessRefused(err); err != nil {
		return false, err
	}
	if !done {
		return m.recheck(ctx)
	}
	next.ETag = beside.Rows[0].Row.ETag
	return m.finish(ctx, entity, next, m.repo.MetaOf(copied).WriteID())
}

// finish deletes the entity whose version the mark holds, with its children, and then the move's rows. write is
// the mark's write ID.
func (m *repositoryMove[T]) finish(ctx context.Context, entity *family[T], mark *moverRow, write string) (done bool, err error) {
	m.refused = true
	trace := m.row(traceRow, m.key.Partition)
	trace.Write = write
	beside, err := besideRow(driver.InsertRow, m.source.Table(), trace)
	if err != nil {
		return false, err
	}
	if done, err = m.commit(ctx, entity.head, entity.rest, beside); !done || err != nil {
		return false, err
	}
	if mark.ETag == "" {
		return m.gone(ctx) // the response to the write of the mark was lost
	}
	return m.cleanUp(ctx, mark)
}

// cleanUp deletes the mark before the trace: a mark without a trace means that a user has deleted the entity.
func (m *repositoryMove[T]) cleanUp(ctx context.Context, mark *moverRow) (done bool, err error) {
	if _, err := writeRow(ctx, driver.DeleteRow, m.repo.Table(), mark); err != nil {
		return false, err
	}
	return true, m.dropTrace(ctx)
}

// recheck finds out what other workers and users have changed. It reads the mark before the entity: if the
// entity has the version that the mark holds, it has not changed since it was copied.
func (m *repositoryMove[T]) recheck(ctx context.Context) (done bool, err error) {
	mark, err := m.readMark(ctx)
	if err != nil {
		return false, err
	}
	if mark == nil {
		return m.unmarked(ctx)
	}
	entity, err := m.readSource(ctx)
	if err != nil {
		return false, err
	}
	if entity == nil {
		return m.gone(ctx)
	}
	if mark.Source == m.sourceVersion(entity) {
		return m.finish(ctx, entity, mark, mark.WriteID())
	}
	there, err := m.readCopy(ctx)
	if err != nil {
		return false, err
	}
	if m.isAsCopied(there, mark) {
		return m.copy(ctx, entity, there, mark)
	}
	what := "changed"
	if !m.isCopy(there) {
		what = "deleted"
	}
	return m.bothChanged(ctx, mark, "the entity was changed at the source, and its copy was "+what+" at the destination, while the move was under way; "+
		"both are left as they are. Delete the one that is not wanted, if it is there, then requeue this message", nil)
}

// unmarked continues a move without a mark after the service has refused the copy, because an entity has the
// copy's key.
func (m *repositoryMove[T]) unmarked(ctx context.Context) (done bool, err error) {
	there, err := m.readCopy(ctx)
	if err != nil {
		return false, err
	}
	if there == nil {
		m.refused = false
		return false, nil
	}
	entity, err := m.readSource(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case entity == nil:
		return m.gone(ctx)
	case m.isCopy(there):
		return false, m.failure(tables.ErrExists, errors.New("a copy of the entity, which users may have changed, has the key at the destination; delete the copy or the entity, whichever is not wanted, then requeue this message"))
	case m.replaces:
		return m.copy(ctx, entity, there, nil)
	}
	return false, m.failure(tables.ErrExists, errors.New("another entity, or another incarnation of it, has the key at the destination; delete it or set Options.Replace, then requeue this message"))
}

// gone ends a move whose entity no longer exists at the source: a worker has moved it, or a user has deleted it.
func (m *repositoryMove[T]) gone(ctx context.Context) (done bool, err error) {
	m.refused = false
	trace, err := m.readRow(ctx, m.source.Table(), m.key.Partition, traceRow)
	if err != nil {
		return false, err
	}
	mark, err := m.readMark(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case mark == nil && trace == nil:
		return true, nil
	case mark == nil:
		return true, m.dropTrace(ctx)
	case trace != nil && trace.Write == mark.WriteID():
		return m.cleanUp(ctx, mark)
	}
	there, err := m.readCopy(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case !m.isCopy(there):
		done, err = writeRow(ctx, driver.DeleteRow, m.repo.Table(), mark)
	case m.isAsCopied(there, mark):
		var beside driver.Beside
		if beside, err = besideRow(driver.DeleteRow, m.repo.Table(), mark); err == nil {
			done, err = unlessRefused(m.repo.Apply(ctx, driver.ChangeDelete, there.head, &driver.ApplyOptions{Beside: beside, Along: deletesOf(there.rest)}))
		}
	default:
		return m.bothChanged(ctx, mark, "the entity was deleted at the source, and its copy was changed at the destination, while the move was under way; "+
			"the copy is left as it is. Delete it if it is not wanted; there is nothing more to move", trace)
	}
	if err == nil && done && trace != nil {
		err = m.dropTrace(ctx)
	}
	return done, err
}

// bothChanged poisons the message, unless another worker has changed the mark and continued the move.
func (m *repositoryMove[T]) bothChanged(ctx context.Context, mark *moverRow, reason string, trace *moverRow) (done bool, err error) {
	again, err := m.readMark(ctx)
	if err != nil || again == nil || again.ETag != mark.ETag {
		return false, err
	}
	return m.poison(reason, func(ctx context.Context) error {
		if _, err := writeRow(ctx, driver.DeleteRow, m.repo.Table(), mark); err != nil || trace == nil {
			return err
		}
		return m.dropTrace(ctx)
	})
}
