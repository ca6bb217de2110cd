package relationships

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// facts returns the fact that the child has a row at its parent. It returns an error for a child whose row
// would have too long a key; only a program without Members can have stored such a child.
func (x *memberRows[C]) facts(v *C) ([]driver.Fact, error) {
	key, ok, err := parentIn(x.parentOf, v)
	if err != nil || !ok {
		return nil, err
	}
	fact := driver.Fact{Place: driver.JoinKey(key), Entity: x.host.KeyOf(v)}
	if err := x.checkMember(fact.Place, fact.Entity); err != nil {
		return nil, err
	}
	return []driver.Fact{fact}, nil
}

// held yields the stored rows of the children in the scope. Requests: those of Query.AllParallel of the table
// that holds the rows.
func (x *memberRows[C]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		q := x.rows().Entities().Query().Rows(compoundkey.All().Under(x.name)).AllowTableScan()
		for row, err := range q.AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			parent, child, ok := x.childOf(row.Key)
			if !ok || !scope.Contains(child) {
				continue
			}
			if !yield(driver.Fact{Place: driver.JoinKey(parent), Entity: child}, nil) {
				return
			}
		}
	}
}

// readRow reads one row. Requests: 1.
func (x *memberRows[C]) readRow(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	parent, err := driver.SplitKey(place)
	if err != nil {
		return driver.Fact{}, false, err
	}
	row, err := readRow(ctx, x.rows(), x.memberKey(parent, entity))
	return driver.Fact{Place: place, Entity: entity}, err == nil && row.ETag != "", err
}
