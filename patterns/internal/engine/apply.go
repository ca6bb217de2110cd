package engine

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Applied is one change of Host.Apply.
type Applied struct {
	Engine      *Engine
	Kind        driver.ChangeKind
	Value       any
	Incarnation string // of an insert; "" makes a new one
}

// Apply makes changes of entities of one partition of a table, with rows beside them, in one transaction.
func Apply(ctx context.Context, changes []Applied, beside *driver.Beside) error {
	s := &Set{table: changes[0].Engine.Table}
	for i, c := range changes {
		op := "Apply"
		if c.Kind <= driver.ChangeDelete {
			op = c.Kind.String()
		}
		w, err := c.Engine.changing(ctx, op, c.Kind, c.Value)
		if err != nil {
			return err
		}
		w.Change.incarnation, w.engine = c.Incarnation, c.Engine
		if len(changes) > 1 {
			w.number = i + 1
		}
		if err = s.admit(w); err == nil && !c.Engine.Table.Same(s.table) {
			err = fmt.Errorf("the entity is in table %s, and the first one in table %s; all changes of a transaction must be in one table", c.Engine.Table.Name(), s.table.Name())
		}
		if err == nil && i == 0 {
			w.Change.beside = beside
			_, err = beside.Writes(pass)
		}
		if err != nil {
			return c.Engine.Invalid(w.Op, w.Change.Key, err)
		}
		s.own = append(s.own, w)
	}
	s.members = s.own
	return s.Run(ctx)
}

// changing prepares a change whose kind is a value.
func (r *Engine) changing(ctx context.Context, op string, kind driver.ChangeKind, v any) (*Work, error) {
	switch kind {
	case driver.ChangeInsert:
		return r.Inserting(op, v)
	case driver.ChangeReplace:
		return r.Replacing(op, v)
	case driver.ChangeDelete:
		return r.Deleting(ctx, op, v, nil)
	}
	return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("the kind of change is %d; it must be ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
