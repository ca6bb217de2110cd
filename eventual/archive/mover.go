package archive

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"reflect"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/rows"
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
	source      driver.Host[T]
	destination Destination[T]
	replaces    bool
}

// Options are the options of New; nil is the same as the zero value.
type Options struct {
	// Replace makes the mover replace another entity, or another incarnation of the same one, that has the copy's key at the destination.
	// Without Replace, the move fails with tables.ErrExists: both entities stay, and the message goes to the poison queue.
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
	// To is the location of the copy. It is stored because the entity may no longer exist when a worker looks for its
	// copy.
	To []string `json:"to"`
}

// New returns a mover of a repository's entities, and makes all workers of this Queue handle its messages. It makes no request.
//
// Every program with workers on the queue must make the same movers: a worker counts a message of an unknown type as a failure.
// Messages contain the mover's name, so keep it from one version of a program to the next. A Queue accepts each name once.
func New[T any](q *eventual.Queue, name string, source *patterns.Repository[T], destination Destination[T], options *Options) (*Mover[T], error) {
	const op = "archive.New"
	if q == nil || q.Account() == nil {
		return nil, tables.Wiringf(op, "", "the queue is nil or the zero value; make it with eventual.NewQueue")
	}
	switch {
	case name == "":
		return nil, tables.Wiringf(op, q.Name(), "the mover's name is empty; give one")
	case source == nil:
		return nil, tables.Wiringf(op, q.Name(), "the source repository is nil; give one")
	case destination == nil:
		return nil, tables.Wiringf(op, q.Name(), "the destination is nil; use ToRepository or ToContainer")
	}
	host := patterns.HostOf(source)
	if sharesMeta(host) {
		return nil, tables.Wiringf(op, q.Name(), "%s embeds tables.Meta through a pointer, so an entity and its copy would share it; embed the struct itself", reflect.TypeFor[T]())
	}
	m := &Mover[T]{queue: q, name: name, messageType: moveTypes + name, source: host, destination: destination}
	if options != nil {
		m.replaces = options.Replace
	}
	if err := destination.check(host); err != nil {
		return nil, tables.Wiringf(op, q.Name(), "the destination is not suitable: %w", err)
	}
	if err := eventual.HandleOwn(rows.Pass(0), q, op, m.messageType, m.handle); err != nil {
		return nil, err
	}
	return m, nil
}

// sharesMeta reports whether a copied entity value shares its Meta with the original.
func sharesMeta[T any](r driver.Host[T]) bool {
	var v T
	meta := r.MetaOf(&v)
	copied := v
	return r.MetaOf(&copied) == meta
}

// Move requests the move of an entity that was read from the mover's repository, or written to it. The worker
// moves the stored entity, which may have changed since v was read. It does nothing if the entity was deleted
// meanwhile.
//
// ErrUnknownOutcome means that the message may have been enqueued anyway. Calling Move twice is harmless.
//
// Requests: 1, and 1 more for an entity that was read in part, since the copy's key can depend on any property.
func (m *Mover[T]) Move(ctx context.Context, v *T) error {
	const op = "Move"
	if v == nil {
		return tables.InvalidIn(op, m.queue.Name(), "the entity is nil; give one")
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
	return eventual.SendOwn(ctx, rows.Pass(0), m.queue, op, m.messageType, moveBody{key.Partition, key.Row, incarnation, to})
}

// movedIncarnation is the incarnation of an entity's copy: the same in each attempt, and different from the
// entity's. If the copy kept the entity's incarnation, a delayed message would move the entity again after it
// was moved back.
func movedIncarnation(incarnation string) string {
	sum := sha256.Sum256([]byte("tablepatterns.move" + incarnation))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}
