package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// repositoryMove is one delivery of a move into a repository. internal/models/mover is the model of this protocol; S, D, M and T
// there are the entity, its copy, the mark and the trace.
type repositoryMove[T any] struct {
	*moving[T]
	toRepository[T]
	refused bool // a request was refused: find out what is stored
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

// copyKey returns the key of the copy.
func (m *repositoryMove[T]) copyKey() tables.Key {
	return tables.Key{Partition: m.to[0], Row: m.to[1]}
}

func (m *repositoryMove[T]) readMark(ctx context.Context) (*moverRow, error) {
	return m.readRow(ctx, m.repo.Table(), m.to[0], markRow)
}

// readSource reads the entity and what moves along with it, as moving.read does. The reads do not form a
// snapshot; the transaction that deletes the rows checks all ETags.
func (m *repositoryMove[T]) readSource(ctx context.Context) (*family[T], error) {
	entity, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	return m.familyOf(ctx, entity, true)
}

// readCopy reads the entity under the copy's key with its children; it returns nil if there is none.
func (m *repositoryMove[T]) readCopy(ctx context.Context) (*family[T], error) {
	there, err := m.repo.Get(ctx, m.copyKey())
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.familyOf(ctx, there, false)
}

// isCopy reports whether an entity at the destination is this move's copy, even if it was changed since.
func (m *repositoryMove[T]) isCopy(there *family[T]) bool {
	return there != nil && m.repo.MetaOf(there.head).Incarnation() == movedIncarnation(m.incarnation)
}

// isAsCopied reports whether the copy and its children are unchanged since the transaction that wrote the
// mark.
func (m *repositoryMove[T]) isAsCopied(there *family[T], mark *moverRow) bool {
	if !m.isCopy(there) || m.repo.MetaOf(there.head).WriteID() != mark.WriteID() || len(there.rest) != int(mark.Along) {
		return false
	}
	return !slices.ContainsFunc(there.rest, func(f follower) bool { return f.meta().WriteID() != mark.WriteID() })
}

// sourceVersion returns the version of the family at the source, as the mark stores it.
func (m *repositoryMove[T]) sourceVersion(f *family[T]) string {
	return versionOf(m.source.MetaOf(f.head), f.rest)
}

// copy writes the copy, the children's copies and the mark in one transaction. there is the family that was
// read at the destination, which copy replaces; nil if nothing exists. Then it calls finish.
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

// finish deletes the entity from which the mark was made, and then the move's rows. write is the mark's write ID.
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

// recheck finds out what other workers and users have changed. It reads the mark before the entity: if the entity's ETag
// is then the one in the mark, the entity has not changed since it was copied.
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

// unmarked handles a destination with an entity under the copy's key, but no mark of this move.
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

// gone handles an entity that no longer exists at the source: it was moved, or a user has deleted it.
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
	case mark == nil:
		return m.withdrawn(ctx, true, trace)
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
	if err != nil {
		return false, err
	}
	return m.withdrawn(ctx, done, trace)
}

// withdrawn ends a move whose entity or copy a user has deleted. done is false if another worker has changed the
// mark.
func (m *repositoryMove[T]) withdrawn(ctx context.Context, done bool, trace *moverRow) (bool, error) {
	if !done || trace == nil {
		return done, nil
	}
	return true, m.dropTrace(ctx)
}

// bothChanged poisons the message, unless another worker has changed the mark and continued the move.
func (m *repositoryMove[T]) bothChanged(ctx context.Context, mark *moverRow, reason string, trace *moverRow) (done bool, err error) {
	again, err := m.readMark(ctx)
	if err != nil || again == nil || again.ETag != mark.ETag {
		return false, err
	}
	return m.poison(reason, func(ctx context.Context) error {
		if _, err := writeRow(ctx, driver.DeleteRow, m.repo.Table(), mark); err != nil {
			return err
		}
		_, err := m.withdrawn(ctx, true, trace)
		return err
	})
}
