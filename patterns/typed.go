package patterns

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// TypedTable reads and writes the rows of a table as values of T, one row a value and without any pattern. T is
// Entity for the property bag, or a struct with string fields PartitionKey and RowKey.
//
// Replace, Merge and Delete are conditional on the ETag the value was read with: that of the Entity, or of an
// embedded Meta. A value of a row that a Repository keeps in step with others can be inserted elsewhere; every other
// write of it is ErrInvalid, as far as there is a Meta to remember that. Every operation makes 1 request.
type TypedTable[T any] struct {
	src source[T]
}

// Typed returns a view of the table's rows as T. It makes no request.
func Typed[T any](table *Table) (*TypedTable[T], error) {
	if table == nil {
		return nil, invalidf("Typed", "the table is nil")
	}
	codec, err := NewCodec[T]()
	if err != nil {
		return nil, err
	}
	t := &TypedTable[T]{src: source[T]{table: table, codec: codec, known: codec.known()}}
	if codec.plan == nil || codec.plan.meta != nil {
		t.src.guards = []string{propertyPrimary, propertyShared, propertyCopies, propertyLayout}
	}
	t.src.load = func(_ context.Context, row *storedRow, selected []string) (*T, error) {
		return codec.load(row, selected != nil)
	}
	return t, nil
}

// Entities returns a view of the table's rows as property bags. It makes no request.
func (t *Table) Entities() *TypedTable[Entity] {
	view, _ := Typed[Entity](t) // Entity is a T that cannot fail
	return view
}

// load makes a value of a row.
func (c *Codec[T]) load(row *storedRow, partial bool) (*T, error) {
	v, s := c.room()
	if err := c.Decode(row.properties, v); err != nil {
		return nil, err
	}
	c.finish(row, row.key, v)
	if c.plan == nil {
		any(v).(*Entity).read = row.facts(partial)
	} else if s != nil {
		*s = state{key: row.key, row: row.key.Row, incarnation: row.incarnation, writeID: row.writeID, copies: row.copies, partial: partial}
		if facts := row.facts(partial); !facts.none() {
			s.viewed = new(facts)
		}
		c.meta(v).state = s
	}
	return v, nil
}

// room makes a T, and the state of its Meta where it has one, in one allocation.
func (c *Codec[T]) room() (*T, *state) {
	if c.plan == nil || c.plan.meta == nil {
		return new(T), nil
	}
	both := new(struct {
		v     T
		state state
	})
	return &both.v, &both.state
}

// Table returns the table.
func (t *TypedTable[T]) Table() *Table { return t.src.table }

// Get reads one row. It is ErrNotFound when it is not there.
func (t *TypedTable[T]) Get(ctx context.Context, key Key) (*T, error) {
	return t.src.get(ctx, "Get", key)
}

// Query begins a query of the rows.
func (t *TypedTable[T]) Query() Query[T] { return newQuery(&t.src) }

// Insert adds a row, and is ErrExists when there is one with the same key.
func (t *TypedTable[T]) Insert(ctx context.Context, v *T) error {
	return t.write(ctx, "Insert", wire.VerbInsert, v, "")
}

// Replace puts v in the place of the row it was read from: properties that v does not have are removed. A value that
// was read through a Select is refused.
func (t *TypedTable[T]) Replace(ctx context.Context, v *T) error {
	return t.conditional(ctx, "Replace", wire.VerbReplace, v)
}

// ReplaceUnconditional is Replace of whatever row is there; changes of other writers are lost.
func (t *TypedTable[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	return t.write(ctx, "ReplaceUnconditional", wire.VerbReplace, v, azcore.ETagAny)
}

// Merge sets the properties that v has and keeps the row's others.
func (t *TypedTable[T]) Merge(ctx context.Context, v *T) error {
	return t.conditional(ctx, "Merge", wire.VerbMerge, v)
}

// MergeUnconditional is Merge into whatever row is there.
func (t *TypedTable[T]) MergeUnconditional(ctx context.Context, v *T) error {
	return t.write(ctx, "MergeUnconditional", wire.VerbMerge, v, azcore.ETagAny)
}

// Upsert inserts or replaces, whatever is there; changes of other writers are lost.
func (t *TypedTable[T]) Upsert(ctx context.Context, v *T) error {
	return t.write(ctx, "Upsert", wire.VerbReplace, v, "")
}

// UpsertMerge inserts or merges, whatever is there.
func (t *TypedTable[T]) UpsertMerge(ctx context.Context, v *T) error {
	return t.write(ctx, "UpsertMerge", wire.VerbMerge, v, "")
}

// Delete removes the row v was read from, and is ErrConflict when it has changed since.
func (t *TypedTable[T]) Delete(ctx context.Context, v *T) error {
	return t.conditional(ctx, "Delete", wire.VerbDelete, v)
}

// DeleteUnconditional removes the row, whatever is there.
func (t *TypedTable[T]) DeleteUnconditional(ctx context.Context, key Key) error {
	_, err := t.src.table.commit(ctx, "DeleteUnconditional", []operation{{verb: wire.VerbDelete, key: key, ifMatch: azcore.ETagAny}})
	return err
}

func (t *TypedTable[T]) conditional(ctx context.Context, op string, verb wire.Verb, v *T) error {
	etag, err := t.src.codec.etag(v)
	if err != nil {
		return relabel(op, t.src.table, invalid("", err))
	}
	return t.write(ctx, op, verb, v, etag)
}

func (t *TypedTable[T]) write(ctx context.Context, op string, verb wire.Verb, v *T, ifMatch azcore.ETag) error {
	o, err := t.src.codec.operation(verb, v, ifMatch)
	if err != nil {
		return relabel(op, t.src.table, err)
	}
	etags, err := t.src.table.commit(ctx, op, []operation{o})
	if err != nil {
		return err
	}
	t.src.codec.settle(verb, v, etags[0])
	return nil
}

// operation encodes v as one row of a write.
func (c *Codec[T]) operation(verb wire.Verb, v *T, ifMatch azcore.ETag) (operation, error) {
	if v == nil {
		return operation{}, invalid("", errNil)
	}
	key, err := c.key(v)
	if err != nil {
		return operation{}, invalid("", err)
	}
	o := operation{verb: verb, key: key, ifMatch: ifMatch}
	if facts := c.facts(v); facts != nil {
		if err := facts.check(verb, c.plan == nil); err != nil {
			e := invalid("", err)
			e.Key = loggable(key)
			return operation{}, e
		}
		facts.onto(&o)
	}
	if verb == wire.VerbDelete {
		return o, nil
	}
	if o.properties, err = c.Encode(v); err != nil {
		return operation{}, err
	}
	if err := checkReserved(o.properties); err != nil {
		return operation{}, invalid("", err)
	}
	return o, nil
}

// relabel gives an error from further down the operation that the caller called.
func relabel(op string, t *Table, err error) error {
	if e, ok := err.(*Error); ok {
		labelled := *e
		labelled.Op, labelled.Table = op, t.name
		return &labelled
	}
	return err
}
