package eventual

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// Mover moves entities somewhere else: into another table, partition or account, or into blobs. It is the archiver of
// the guide's "Eventually consistent transactions pattern".
//
// # Stored layout
//
// What is asked for is a message of type tablepatterns.move.<name> on the queue, whose body is
//
//	{"partition":"Sales","row":"empid_000223","incarnation":"5LT4..."}
//
// In a repository, the copy is an entity like any other. Its incarnation is made of that of the entity: the first 26
// characters of the base32 of the SHA-256 of "tablepatterns.move" and the entity's incarnation. ToContainer tells what it
// is in a container.
//
// # Guarantee
//
// An entity that Move was told to move, and that nobody deletes, ends in exactly one place with the content that it had
// last: at the destination or, with the reason on the poison queue, where it was. Between copy and delete it is in both
// places for a while; at no time is it in neither. This holds whatever crashes, and however many messages about the entity
// there are, handled by however many workers at the same time and in whatever order:
//
//   - An update between copy and delete is not lost: the delete is conditional on the state that was copied, and where it
//     is refused, the worker carries the newer state over and tries again.
//   - Somebody else's copy of the entity is written over only with what was read of the entity after the copy was
//     looked at, and under the copy's ETag: so what is at the destination never gets older.
//   - A message names the incarnation of its entity. One that comes again, or late, after the entity was deleted and another
//     one inserted under its key, touches nothing. So it is after the entity was moved back by another Mover: at its
//     destination it has another incarnation.
//   - An entity that somebody deletes between copy and delete was deleted, not moved: its copy is removed again,
//     where it is surely the worker's own. See below for where it stays.
//
// Another entity that is at the destination already, under the copy's key, is left alone, unless MoverOptions.Replace
// says otherwise.
//
// # Crashes
//
// The message appears again when its visibility timeout is over, and the next worker goes through everything anew. What
// stays behind is one case: when the entity is deleted by somebody else after it was copied, and the worker has
// crashed by then, or has lost its lease, or a second message about the entity is under way, then nobody can tell that
// delete from a Mover's own, and the copy stays at the destination with what was copied.
//
// A message on the poison queue may have left the entity in both places; requeue it, and it is carried on with.
//
// # Requests
//
//	Move                      1
//	a message handled         5: get it, read the entity, insert the copy, delete the entity, delete the message
//	  after an earlier try    8: the insert is refused, the copy is looked at, and the entity is read again
//	  with a rival update     3 more for each: read, replace, delete
//	  with nothing to do      3
//
// The inserts and deletes of a repository whose patterns reach out of the partition cost what that repository says.
//
// # When not to use it
//
// Between rows of one partition of one table: a transaction does that at once. For what readers must not see twice: they may
// find the entity in both places for a moment. For whole periods of time: drop their tables.
//
// A Mover is safe for concurrent use.
type Mover[T any] struct {
	queue       *Queue
	messageType string
	source      *patterns.Repository[T]
	destination Destination[T]
	replaces    bool
}

// MoverOptions are the options of NewMover; nil is the same as the zero value.
type MoverOptions struct {
	// Replace says what becomes of another entity, or another incarnation of the same one, that has the copy's key at the
	// destination: it is written over. Without Replace, the move fails with patterns.ErrExists and its message ends on
	// the poison queue; both entities stay where they are.
	Replace bool
}

// moveTypes begin the types of the messages of movers.
const moveTypes = ownTypes + "move."

// moveBody is the stored form of what Move asks for. It is API, like the envelope around it.
type moveBody struct {
	Partition   string `json:"partition"`
	Row         string `json:"row"`
	Incarnation string `json:"incarnation"`
}

// NewMover returns a mover of a repository's entities, and has all workers of this Queue handle its messages. It makes no
// request. Every program with workers on the queue makes the same mover: messages of a type that a worker does not know
// are failures. The name is stored in messages, so it stays the same from one version of a program to the next. A Queue has
// one mover of a name.
func NewMover[T any](q *Queue, name string, source *patterns.Repository[T], destination Destination[T], options *MoverOptions) (*Mover[T], error) {
	const op = "NewMover"
	if q == nil || q.account == nil {
		return nil, invalidf(op, "", "the queue is nil, or was not made by NewQueue")
	}
	switch {
	case name == "":
		return nil, invalidf(op, q.name, "the mover has no name")
	case source == nil:
		return nil, invalidf(op, q.name, "the repository to move from is nil")
	case destination == nil:
		return nil, invalidf(op, q.name, "the destination is nil")
	case sharesMeta(source):
		return nil, invalidf(op, q.name, "%s embeds patterns.Meta through a pointer, so an entity and its copy would share it", source.EntityType())
	}
	m := &Mover[T]{queue: q, messageType: moveTypes + name, source: source, destination: destination}
	if options != nil {
		m.replaces = options.Replace
	}
	if err := checkType(m.messageType); err != nil {
		return nil, invalidf(op, q.name, "%w", err)
	}
	if err := destination.check(source); err != nil {
		return nil, invalidf(op, q.name, "the destination: %w", err)
	}
	if err := q.register(m.messageType, m.handle); err != nil {
		return nil, err
	}
	return m, nil
}

// sharesMeta reports whether the copy of an entity has the same Meta, not one of its own.
func sharesMeta[T any](r *patterns.Repository[T]) bool {
	var v T
	meta := r.MetaOf(&v)
	copied := v
	return r.MetaOf(&copied) == meta
}

// Move asks for the move of an entity that was read from the mover's repository, or written to it. What moves is the entity
// as it will be when a worker comes to it, not v. One that is deleted before that is not moved.
//
// An error is patterns.ErrUnknownOutcome where the message may be on the queue for all that. To ask twice does no harm.
//
// Requests: 1.
func (m *Mover[T]) Move(ctx context.Context, v *T) error {
	const op = "Move"
	if v == nil {
		return invalidf(op, m.queue.name, "the entity is nil")
	}
	meta := m.source.MetaOf(v)
	if meta.Incarnation() == "" {
		err := errors.New("the entity was neither read from a repository nor written to one, or it was last written by something else than a repository; Replace it first")
		return &patterns.Error{Op: op, Table: m.source.Table().Name(), Key: meta.Key(), Index: -1, Kind: patterns.ErrInvalid, Err: err}
	}
	key := meta.Key()
	e, err := m.queue.newEnvelope(op, m.messageType, moveBody{key.Partition, key.Row, meta.Incarnation()})
	if err != nil {
		return err
	}
	if _, err := m.queue.send(ctx, op, e, 0); err != nil {
		return err
	}
	m.queue.wake.all()
	return nil
}

// movedIncarnation is the incarnation of an entity's copy: the same at each try, and another than the entity's. Were it the
// same, a message that comes late would move the entity once more after it was moved back.
func movedIncarnation(incarnation string) string {
	sum := sha256.Sum256([]byte("tablepatterns.move" + incarnation))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}
