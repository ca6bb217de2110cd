package archive

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Mover moves the entities of one repository to one destination. The package comment says what it stores and what it guarantees.
// A Mover is safe for concurrent use.
type Mover[T any] struct {
	queue       *eventual.Queue
	name        string
	messageType string
	source      driver.Host
	destination Destination[T]
	replaces    bool
}

// Options are the options of New; nil is the same as the zero value.
type Options struct {
	// Replace makes the mover replace another entity, or another incarnation of the same entity, that has the
	// copy's key at the destination. Without Replace, the move fails with tables.ErrExists: both entities stay,
	// and the message goes to the poison queue. With Replace, the entity at the destination can be lost even if
	// a user deletes the moved entity during the move.
	Replace bool
}

// moveTypes is the prefix of the message types of movers.
const moveTypes = "tablepatterns.move."

// moveBody is the body of a message of Move. It is a stored format that must stay compatible, like the
// envelope that package eventual puts around it.
type moveBody struct {
	Partition   string `json:"partition"`
	Row         string `json:"row"`
	Incarnation string `json:"incarnation"`
	// To is the location of the copy. The message contains it because a worker may have to find the copy when
	// the entity no longer exists.
	To []string `json:"to"`
}

// New returns a mover of a repository's entities, and makes all workers of the Queue q handle the mover's
// messages. It makes no request.
//
// Every program with workers on the queue must make the same movers: a worker counts a message of an unknown
// type as a failure. Messages contain the mover's name, so do not change it between versions of a program. A
// second New with the same name on the same Queue returns an error.
func New[T any](q *eventual.Queue, name string, source *patterns.Repository[T], destination Destination[T], options *Options) (*Mover[T], error) {
	const op = "archive.New"
	if q == nil || q.Account() == nil {
		return nil, errs.Wiringf(op, "", "the queue is nil or the zero value; make it with eventual.NewQueue")
	}
	switch {
	case name == "":
		return nil, errs.Wiringf(op, q.Name(), "the mover's name is empty; give one")
	case source == nil:
		return nil, errs.Wiringf(op, q.Name(), "the source repository is nil; give one")
	case destination == nil:
		return nil, errs.Wiringf(op, q.Name(), "the destination is nil; use ToRepository or ToContainer")
	}
	host := patterns.HostOf(source)
	if sharesMeta[T](host) {
		return nil, errs.Wiringf(op, q.Name(), "%s embeds tables.Meta through a pointer, so an entity and its copy would share it; embed the struct itself", reflect.TypeFor[T]())
	}
	m := &Mover[T]{queue: q, name: name, messageType: moveTypes + name, source: host, destination: destination}
	if options != nil {
		m.replaces = options.Replace
	}
	if err := destination.check(host); err != nil {
		return nil, errs.Wiringf(op, q.Name(), "the destination is not suitable: %w", err)
	}
	if err := intents.Of((*handle.Any)(q)).HandleOwn(op, m.messageType, m.handle); err != nil {
		return nil, err
	}
	return m, nil
}

// sharesMeta reports whether a copy of a T has the same Meta as the original, because T embeds a pointer to its
// Meta.
func sharesMeta[T any](r driver.Host) bool {
	var v T
	meta := r.MetaOf(&v)
	copied := v
	return r.MetaOf(&copied) == meta
}

// Move requests the move of an entity that was read from the mover's repository, or written to it. A worker
// moves the stored entity, which may have changed since v was read. If the entity was deleted meanwhile, the
// worker does nothing.
//
// ErrUnknownOutcome means that the message may have been enqueued anyway. Calling Move twice is harmless.
//
// Requests: 1, and 1 more for an entity that was read in part, since the copy's key can depend on any property.
func (m *Mover[T]) Move(ctx context.Context, v *T) error {
	const op = "Move"
	if v == nil {
		return errs.InvalidIn(op, m.queue.Name(), "the entity is nil; give one")
	}
	meta := m.source.MetaOf(v)
	key, incarnation := meta.Key(), meta.Incarnation()
	refused := func(kind, err error) error {
		return &tables.Error{Op: op, Table: m.source.Table().Name(), Key: key, Kind: kind, Err: err}
	}
	if incarnation == "" {
		return refused(tables.ErrInvalid, errors.New("the entity has no incarnation; read it with the repository, and if a program without repository wrote it, Replace it there first"))
	}
	if meta.Partial() {
		whole, err := driver.Got[T](m.source.Get(ctx, key))
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
	return intents.Of((*handle.Any)(m.queue)).SendOwn(ctx, op, m.messageType, moveBody{key.Partition, key.Row, incarnation, to})
}

// movedIncarnation returns the incarnation of an entity's copy, the same in each attempt. It differs from the
// entity's incarnation: otherwise a delayed message would move the entity again after another Mover has moved
// it back.
func movedIncarnation(incarnation string) string {
	sum := sha256.Sum256([]byte("tablepatterns.move" + incarnation))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// Destination says where a Mover moves entities: use ToRepository, ToContainer or ToFiles.
type Destination[T any] interface {
	// check refuses a destination to which entities of the source cannot be moved.
	check(source driver.Host) error
	// place returns the location of an entity's copy: partition key and row key, or the name of a blob.
	place(source driver.Host, entity *T) ([]string, error)
	// move handles one delivery.
	move(ctx context.Context, w *moving[T]) error
}

// moveRounds limits how often a delivery begins again after a concurrent writer has changed the entity or its
// copy.
const moveRounds = 10

// handle handles a delivery. If a request may still arrive at the service, handle leaves the message hidden
// until its visibility timeout ends, so that the next worker begins after the request has arrived.
func (m *Mover[T]) handle(ctx context.Context, message intents.Message) (verdict.Verdict, error) {
	var body moveBody
	if err := message.Decode(&body); err != nil {
		return verdict.Verdict{}, err
	}
	if body.Incarnation == "" || len(body.To) == 0 {
		return verdict.Verdict{}, errs.InvalidIn("Move", m.queue.Name(), "the message has no incarnation or no location for the copy; call Move again")
	}
	key := tables.Key{Partition: body.Partition, Row: body.Row}
	w := &moving[T]{Mover: m, key: key, incarnation: body.Incarnation, to: body.To,
		id: moveName(m.name, m.source.Table().Name(), key, body.Incarnation, body.To)}
	err := m.destination.move(ctx, w)
	switch {
	case errors.Is(err, tables.ErrUnknownOutcome), (err == nil || w.poisoned != nil) && lease.From(ctx).Unsure():
		return verdict.Verdict{Action: verdict.Leave}, nil
	case err != nil:
		return verdict.Verdict{Poisoned: w.poisoned}, err
	}
	return verdict.Verdict{}, nil
}

// moving is one delivery of a message. It has the fields and methods that both destinations use.
type moving[T any] struct {
	*Mover[T]
	key         tables.Key
	incarnation string
	to          []string // the location of the copy, as Destination.place returns it
	id          string   // name of the move, from moveName

	// poisoned is set if users have changed both ends. The worker calls it after it has put the message on the
	// poison queue. It deletes the move's rows, so that a requeued message starts from the beginning.
	poisoned func(context.Context) error
}

// rounds calls round until it returns done.
func (w *moving[T]) rounds(ctx context.Context, round func(context.Context) (done bool, err error)) error {
	return backoff.Retry(ctx, moveRounds, func() (again bool, err error) {
		if done, err := round(ctx); done || err != nil {
			return false, err
		}
		return true, w.failure(tables.ErrConflict, fmt.Errorf("concurrent writers changed the entity or its copy in each of %d attempts; the worker will retry the message", moveRounds))
	})
}

// read reads the entity. It returns nil if the entity does not exist, or if another incarnation is stored under
// its key.
func (w *moving[T]) read(ctx context.Context) (*T, error) {
	entity, err := driver.Got[T](w.source.Get(ctx, w.key))
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case w.source.MetaOf(entity).Incarnation() != w.incarnation:
		return nil, nil
	}
	to, err := w.destination.place(w.source, entity)
	if err == nil && !slices.Equal(to, w.to) {
		err = w.failure(tables.ErrInvalid, fmt.Errorf("the location of the copy was %q when Move was called and is %q now; derive it only from the key and from properties that never change, and call Move again", w.to, to))
	}
	return entity, err
}

// commit deletes the entity and its children as they were read, and writes or deletes one of the move's rows, in one
// transaction. After it, the entity has moved. done is false if another writer came first.
func (w *moving[T]) commit(ctx context.Context, entity *T, rest []follower, beside driver.Beside) (done bool, err error) {
	return unlessRefused(w.source.Apply(ctx, driver.ChangeDelete, entity, &driver.ApplyOptions{Beside: beside, Along: deletesOf(rest)}))
}

func (w *moving[T]) failure(kind, err error) error {
	return &tables.Error{Op: "Move", Table: w.source.Table().Name(), Key: w.key, Kind: kind, Err: err}
}

// poison ends the move without a change of either end, since users have changed both. after is called when the
// message is on the poison queue, and deletes the move's rows.
func (w *moving[T]) poison(reason string, after func(context.Context) error) (done bool, err error) {
	w.poisoned = after
	return false, w.failure(tables.ErrConflict, errors.New(reason))
}
