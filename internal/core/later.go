package core

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/streams"
)

// Later is the value of a row that only a further read can tell. It returns nil if the row is not in the result after all. The reader
// reuses its memory before Later is called, so whoever makes the Later clones what it needs of the row.
//
// meets reports whether a row with the given key and properties meets the conditions of the query: the service has returned the row
// because of its mark, and has not checked them. A condition on Timestamp looks for a property of that name.
type Later func(ctx context.Context, meets func(key entity.Key, p entity.Properties) bool) (any, error)

// located is a Later and the key of its row.
type located struct {
	key entity.Key
	of  Later
}

// atOnce is the largest number of Laters of one page that run at the same time.
const atOnce = 16

// always is what a read without conditions gives a Later.
func always(entity.Key, entity.Properties) bool { return true }

// follow returns a page with the values of the Laters, several of which it calls at once. If the query has a Top, follow ends after left
// values, so that it calls few Laters of whose values the query has no use.
func (q *query) follow(ctx context.Context, got received, left int) (page streams.Mixed[any], err error) {
	if len(got.laters) == 0 {
		return got.page, nil
	}
	meets, err := q.meets()
	if err != nil {
		return page, err
	}
	call := func(ctx context.Context, i int) (any, error) {
		later := got.laters[i]
		v, err := later.of(ctx, meets)
		if err != nil {
			return nil, q.src.DecodeError("Query", later.key, err)
		}
		return v, nil
	}
	next, stop := iter.Pull2(streams.Window(ctx, len(got.laters), atOnce, call, func(error) bool { return false }, ofRow))
	defer stop()
	got.page.Each(func(v any, problem error) bool {
		if _, is := v.(Later); is {
			if v, problem, _ = next(); problem != nil && !ofRow(problem) {
				err = problem
				return false
			}
		}
		if v != nil || problem != nil {
			page.Add(v, problem)
		}
		return q.top == 0 || len(page.Values) < left
	})
	return page, err
}

// meets returns what the query gives its Laters.
func (q *query) meets() (func(entity.Key, entity.Properties) bool, error) {
	conditions, err := q.limits().Conditions(q.src.Codec.types())
	return func(key entity.Key, p entity.Properties) bool { return Meets(conditions, key, p) }, err
}

// Meets reports whether a row with the given key and properties meets conditions.
func Meets(conditions odata.Expr, key entity.Key, p entity.Properties) bool {
	return odata.Match(conditions, func(name string) edm.Value {
		switch name {
		case "PartitionKey":
			return edm.String(key.Partition)
		case "RowKey":
			return edm.String(key.Row)
		}
		return edm.Value(p.Get(name))
	})
}
