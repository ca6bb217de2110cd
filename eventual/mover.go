package eventual

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Mover moves entities somewhere else: into another table, partition or account, or into blobs. It is the archiver of
// the guide's "Eventually consistent transactions pattern".
//
// # Stored layout
//
// Move puts a message of type tablepatterns.move.<name> on the queue, whose body is
//
//	{"partition":"Sales","row":"empid_000223","incarnation":"5LT4...","to":["Sales","empid_000223"]}
//
// to is the key of the copy, or the name of its blob. In a repository, the copy is an entity like any other. Its incarnation is
// made of that of the entity: the first 26 characters of the base32 of the SHA-256 of "tablepatterns.move" and the entity's
// incarnation. ToContainer tells what the copy is in a container.
//
// While an entity is moved, the mover keeps rows that belong to no one entity (_tpShared is "mover"). Queries, indexes and
// Verify leave them out. All have Version, Mover, Table, Partition, Row and Incarnation, which say what is moved, and
//
//	mark    beside the copy    U+FFFC movemark_<move>    Source: the ETag of the entity that the copy was made of
//	trace   beside the entity  U+FFFC movetrace_<move>   Write: the write id of the mark
//	record  beside the entity  U+FFFC moverecord_<move>  Source; Base: the ETag of the blob before it gets its content; Write: the
//	                                                     write id of the content; Round: 1, or more for one that was replaced
//
// <move> is the base32 of the first 20 bytes of the SHA-256 of the mover's name, the source's table in lower case, the entity's
// partition key, row key and incarnation, and the texts of to, each after its length in bytes and a space.
//
// # Order
//
// Into a repository:
//
//  1. Get the message, and read the entity.
//  2. Insert copy and mark in one transaction. They have one write id, until somebody changes the copy.
//  3. Delete the entity and insert the trace in one transaction, under the ETag that the mark holds. Now the entity has moved.
//  4. Delete the mark, then the trace, then the message.
//
// Into a container, where no transaction holds a blob and a row:
//
//  1. Get the message, and read the entity.
//  2. Put a pending blob, which has the name of the move and no content, where nothing is. ReadArchived does not see it.
//  3. Insert the record, which names the pending blob's ETag.
//  4. Put the content in place of the pending blob, under that ETag.
//  5. Delete the entity and the record in one transaction, under the ETag that the record holds. Now the entity has moved.
//  6. Delete the message.
//
// Whoever finds a request refused reads the mark or record, then the entity, then the copy, and goes on from there.
//
// # Guarantee
//
// An entity that Move was asked to move, and that nobody deletes, ends in exactly one place with the content that it had last: at
// the destination or, with the reason on the poison queue, at the source. Between copy and delete it is in both places for a
// while; at no time is it in neither. This holds whatever crashes, and however many messages about the entity there are, handled
// by however many workers at the same time and in whatever order. What users do at either end meanwhile is never lost:
//
//   - An update of the entity is carried over to the copy, as long as nobody has changed the copy.
//   - An update or a delete of the copy stays. The worker deletes the entity if it has not changed since it was copied.
//   - A delete of the entity stays: its copy is deleted too, as long as nobody has changed it.
//   - If users have changed both ends, both stay as they are, and the message is poison with a reason that tells what to do. In
//     a container a blob that a user has changed without keeping its metadata, or deleted, counts as both ends: nothing else tells what
//     it was made of.
//   - A message names the incarnation of its entity. If the entity was deleted and another one inserted under its key, nothing is
//     touched. So it is after the entity was moved back by another Mover: at its destination it has another incarnation.
//
// Another entity that is at the destination already, under the copy's key, is left alone, unless MoverOptions.Replace
// says otherwise.
//
// A delete of the entity whose response was lost counts as made if the entity is gone by then, also if a Mover has moved it
// meanwhile: delete the copy too. An insert whose first attempt got no response can come a second time, after the move; then the
// message is poison, and both stay.
//
// With two messages about one entity handled at once, a copy that a user has deleted can reappear, until the slower worker
// withdraws it.
//
// # Crashes
//
// The message appears again when its visibility timeout is over, and the next worker finds out from the mark and the trace, or
// from the record, how far the move has come:
//
//	after            left                     the next worker
//	the read         nothing                  begins anew
//	the copy         copy, mark               deletes the entity, or first brings the copy up to date
//	the delete       copy, mark, trace        deletes mark and trace
//	the mark         copy, trace              deletes the trace
//	the pending blob pending blob             inserts the record
//	the record       pending blob, record     puts the content
//	the content      blob, record             deletes entity and record
//
// Nobody but a worker repairs these rows: while one is there, so is a message, or its entry on the poison queue. If a message
// failed too often, requeue it, and the worker goes on from where it came to. An entry that says that both ends were changed has
// left no row: if it is requeued, the move begins anew.
//
// # Requests
//
//	Move                                1; 1 more for an entity that was read in part
//	a message handled                   7, to a repository and to a container
//	  with a rival update               5 more for each: look at the mark, the entity, the copy; replace; delete. To a container 6
//	  with nothing to do                5
//
// The inserts and deletes of a repository whose patterns reach out of the partition cost what that repository says.
//
// # When not to use it
//
// Between rows of one partition of one table: a transaction does that at once. For what readers must not see twice: they may
// find the entity in both places for a moment. For whole periods of time: drop their tables. For entities of 100 rows: the mark or
// the trace is one row more than a transaction holds.
//
// Movers of one source have different names, on whichever queues they are: the name tells whose a mark, trace or record is.
//
// A Mover is safe for concurrent use.
type Mover[T any] struct {
	queue       *Queue
	name        string
	messageType string
	source      *patterns.Repository[T]
	destination Destination[T]
	replaces    bool
}

// MoverOptions are the options of NewMover; nil is the same as the zero value.
type MoverOptions struct {
	// Replace says what becomes of another entity, or another incarnation of the same one, that has the copy's key at the
	// destination: it is written over. Without Replace, the move fails with tables.ErrExists and its message ends on
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
	// To is the place of the copy. The entity may be gone when a worker looks for its copy.
	To []string `json:"to"`
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
		return nil, invalidf(op, q.name, "%s embeds tables.Meta through a pointer, so an entity and its copy would share it", source.EntityType())
	}
	m := &Mover[T]{queue: q, name: name, messageType: moveTypes + name, source: source, destination: destination}
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
// An error is tables.ErrUnknownOutcome where the message may be on the queue all the same. To ask twice does no harm.
//
// Requests: 1, and 1 more for an entity that was read in part: the place of the copy follows from the whole entity.
func (m *Mover[T]) Move(ctx context.Context, v *T) error {
	const op = "Move"
	if v == nil {
		return invalidf(op, m.queue.name, "the entity is nil")
	}
	meta := m.source.MetaOf(v)
	key, incarnation := meta.Key(), meta.Incarnation()
	refused := func(kind, err error) error {
		return &tables.Error{Op: op, Table: m.source.Table().Name(), Key: key, Kind: kind, Err: err}
	}
	if incarnation == "" {
		return refused(tables.ErrInvalid, errors.New("the entity was neither read from a repository nor written to one, or it was last written by something else than a repository; Replace it first"))
	}
	if meta.Partial() {
		whole, err := m.source.Get(ctx, key)
		if err != nil {
			return err
		}
		if m.source.MetaOf(whole).Incarnation() != incarnation {
			return refused(tables.ErrConflict, errors.New("another incarnation of the entity has its key now; read it again"))
		}
		v = whole
	}
	if m.source.KeyOf(v) != key {
		return refused(tables.ErrInvalid, errors.New("the entity's key was changed since it was read; read it again"))
	}
	to, err := m.destination.place(m.source, v)
	if err != nil {
		return err
	}
	e, err := m.queue.newEnvelope(op, m.messageType, moveBody{key.Partition, key.Row, incarnation, to})
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
