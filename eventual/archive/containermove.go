package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// containerMove is one delivery of a move into a container. internal/models/archive is the model of this protocol; S, D and R
// there are the entity, its blob and the record.
type containerMove[T any] struct {
	*moving[T]
	toContainer[T]
	refused bool // the service has refused a request, so the next round must find out what is stored
}

func (d toContainer[T]) move(ctx context.Context, w *moving[T]) error {
	if len(w.to) != 1 || w.to[0] == "" {
		return w.failure(tables.ErrInvalid, errors.New("the message does not name a blob; call Move again"))
	}
	m := &containerMove[T]{moving: w, toContainer: d}
	return w.rounds(ctx, m.round)
}

func (m *containerMove[T]) round(ctx context.Context) (done bool, err error) {
	if m.refused {
		return m.recheck(ctx)
	}
	entity, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	if entity == nil {
		return m.gone(ctx)
	}
	m.refused = true
	pending := m.metadata(rand.Text(), metaPending, "1")
	base, err := m.put(ctx, m.to[0], nil, pending, "")
	if done, err = unlessRefused(err); err != nil {
		return false, err
	}
	if !done || base == "" {
		return m.recheck(ctx)
	}
	return m.begin(ctx, entity, nil, base)
}

// metadata returns the metadata of a write of this move.
func (m *containerMove[T]) metadata(write, key, value string) map[string]*string {
	incarnation := movedIncarnation(m.incarnation)
	return map[string]*string{metaMove: &m.id, metaIncarnation: &incarnation, metaWrite: &write, key: &value}
}

func (m *containerMove[T]) readBlob(ctx context.Context) (*archiveBlob, error) {
	return m.stat(ctx, m.to[0])
}

func (m *containerMove[T]) readRecord(ctx context.Context) (*moverRow, error) {
	return m.readRow(ctx, m.source.Table(), m.key.Partition, recordRow)
}

// ours reports whether a blob has the metadata of a write of this move.
func (m *containerMove[T]) ours(b *archiveBlob) bool { return b != nil && b.move == m.id }

// begin writes a record of the entity as it was read, and continues with fill. It replaces earlier, the move's
// previous record, if there is one. base is the blob's ETag.
func (m *containerMove[T]) begin(ctx context.Context, entity *T, earlier *moverRow, base azcore.ETag) (done bool, err error) {
	record := m.row(recordRow, m.key.Partition)
	record.Source, record.Base, record.Write, record.Round = string(m.source.MetaOf(entity).ETag), string(base), rand.Text(), 1
	verb := driver.InsertRow
	if earlier != nil {
		verb, record.ETag, record.Round = driver.ReplaceRow, earlier.ETag, earlier.Round+1
	}
	done, err = writeRow(ctx, verb, m.source.Table(), record)
	if err != nil {
		return false, err
	}
	if !done || record.ETag == "" {
		return m.recheck(ctx)
	}
	return m.fill(ctx, entity, record)
}

// fill replaces the blob whose ETag the record holds by one with the content, and continues with finish.
func (m *containerMove[T]) fill(ctx context.Context, entity *T, record *moverRow) (done bool, err error) {
	body, err := m.encode(m.key, entity)
	if err != nil {
		return false, err
	}
	sum := md5Of(body)
	_, err = m.put(ctx, m.to[0], body, m.metadata(record.Write, metaMD5, hex.EncodeToString(sum[:])), azcore.ETag(record.Base))
	if done, err = unlessRefused(err); !done || err != nil {
		return false, err
	}
	return m.finish(ctx, entity, record)
}

// finish deletes the entity from which the record was made, together with the record.
func (m *containerMove[T]) finish(ctx context.Context, entity *T, record *moverRow) (done bool, err error) {
	beside, err := besideRow(driver.DeleteRow, m.source.Table(), record)
	if err != nil {
		return false, err
	}
	return m.commit(ctx, entity, nil, beside)
}

// recheck finds out what other workers and users have changed. It reads the record before the entity, and the entity
// before the blob.
func (m *containerMove[T]) recheck(ctx context.Context) (done bool, err error) {
	record, err := m.readRecord(ctx)
	if err != nil {
		return false, err
	}
	if record == nil {
		return m.unrecorded(ctx)
	}
	entity, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	if entity == nil {
		return m.gone(ctx)
	}
	b, err := m.readBlob(ctx)
	if err != nil {
		return false, err
	}
	current := record.Source == string(m.source.MetaOf(entity).ETag)
	switch {
	case b != nil && string(b.etag) == record.Base && current:
		return m.fill(ctx, entity, record)
	case b != nil && string(b.etag) == record.Base:
		return m.begin(ctx, entity, record, b.etag)
	case m.ours(b) && !b.pending && b.write == record.Write && current:
		return m.finish(ctx, entity, record)
	case m.ours(b) && !b.pending && b.unchanged:
		return m.begin(ctx, entity, record, b.etag) // the blob belongs to an earlier record
	case m.ours(b) && b.pending:
		if done, err := m.remove(ctx, m.to[0], b); !done || err != nil { // a late request has put it after a user had deleted the blob
			return false, err
		}
	}
	return m.changed(ctx, record)
}

// changed poisons the message, since a user has changed or deleted the blob: no metadata shows any more from
// which version of the entity the blob was made.
func (m *containerMove[T]) changed(ctx context.Context, record *moverRow) (done bool, err error) {
	entity, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	if entity == nil {
		return m.gone(ctx)
	}
	return m.poison("the blob was changed or deleted while the entity was moved there, and may lack changes of the entity; both are left as they are. "+
		"Delete the one that is not wanted, if it is there, then requeue this message; with Options.Replace, a requeued message replaces a blob that has lost its metadata", m.dropRecord(record))
}

func (m *containerMove[T]) dropRecord(record *moverRow) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := writeRow(ctx, driver.DeleteRow, m.source.Table(), record)
		return err
	}
}

// unrecorded continues a move that has no record: the blob can be the move's pending blob, or another one.
func (m *containerMove[T]) unrecorded(ctx context.Context) (done bool, err error) {
	b, err := m.readBlob(ctx)
	if err != nil {
		return false, err
	}
	if b == nil {
		m.refused = false
		return false, nil
	}
	begun := m.ours(b) && b.pending
	if !begun {
		if record, err := m.readRecord(ctx); record != nil || err != nil {
			return false, err
		}
	}
	entity, err := m.read(ctx)
	switch {
	case err != nil:
		return false, err
	case entity == nil:
		return m.gone(ctx)
	case begun, m.replaces && !m.ours(b) && !b.pending:
		return m.begin(ctx, entity, nil, b.etag)
	case b.pending:
		return false, m.failure(tables.ErrExists, errors.New("another entity is being moved to the same blob; the worker will retry the message"))
	case m.ours(b):
		return false, m.failure(tables.ErrExists, errors.New("the blob holds a copy of the entity that may lack changes; delete the blob or the entity, whichever is not wanted, then requeue this message"))
	}
	return false, m.failure(tables.ErrExists, errors.New("the blob already holds another entity, or another incarnation of this one; delete the blob or set Options.Replace, then requeue this message"))
}

// gone handles an entity that no longer exists at the source. If its record exists, a user has deleted the
// entity, since a move deletes the entity and the record together.
func (m *containerMove[T]) gone(ctx context.Context) (done bool, err error) {
	m.refused = false
	record, err := m.readRecord(ctx)
	if err != nil {
		return false, err
	}
	b, err := m.readBlob(ctx)
	if err != nil {
		return false, err
	}
	if record == nil {
		if m.ours(b) && b.pending {
			return m.remove(ctx, m.to[0], b)
		}
		return true, nil
	}
	removes := false
	switch base := b != nil && string(b.etag) == record.Base; {
	case b == nil:
	case base, m.ours(b) && b.pending:
		// Remove also the blob that the content was to replace: another worker may be about to write the
		// content under its ETag.
		removes = true
	case m.ours(b) && b.write != record.Write && record.Round == 1:
		// Another worker had moved the entity before this record was inserted.
	case m.ours(b) && b.unchanged:
		removes = true
	default: // a user has changed the blob
		return m.poison("the entity was deleted at the source, and its blob was changed, while the entity was moved there; the blob is left as it is. "+
			"Delete it if it is not wanted; there is nothing more to move", m.dropRecord(record))
	}
	if removes {
		if done, err := m.remove(ctx, m.to[0], b); !done || err != nil {
			return false, err
		}
	}
	return writeRow(ctx, driver.DeleteRow, m.source.Table(), record)
}
