package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// repetitions is how often each way to an answer is measured; the report has the one with the middle time.
const repetitions = 5

// way is one way to the answer of a question about T.
type way[T any] struct {
	how        string // the class of the query, or what is read in place of a table
	goes       int    // through so many rows; 0 is those that are found
	sequence   func(context.Context) iter.Seq2[*T, error]
	less       func(a, b *T) int
	first      int
	projection func(*T)
}

// get is the way of reading one thing by its key.
func get[T any](read func(context.Context) (*T, error)) way[T] {
	return way[T]{how: tables.PointQuery.String(), goes: 1, sequence: func(ctx context.Context) iter.Seq2[*T, error] {
		return func(yield func(*T, error) bool) { yield(read(ctx)) }
	}}
}

// query is the way of a query.
func query[T any](q tables.Query[T]) way[T] {
	return way[T]{how: must(q.Plan()).Class.String(), sequence: q.All}
}

// sequence is the way of reading some other sequence: how says which, mostly the class of its queries.
func sequence[T any](how fmt.Stringer, read func(context.Context) iter.Seq2[*T, error]) way[T] {
	return way[T]{how: how.String(), sequence: read}
}

// through is how many rows the service has to go through, where that is not those it finds.
func (w way[T]) through(rows int) way[T] { w.goes = rows; return w }

// sorted sorts in the client, where the rows come in another order.
func (w way[T]) sorted(less func(a, b *T) int) way[T] { w.less = less; return w }

// top keeps the first ones in the client.
func (w way[T]) top(n int) way[T] { w.first = n; return w }

// without drops what the other way does not read.
func (w way[T]) without(drop func(*T)) way[T] { w.projection = drop; return w }

// ask asks a question with the pattern and without it. Both answers must be the same. Each way is asked once unmeasured, so that
// neither pays for new connections.
func ask[T any](ctx context.Context, s *scene, question string, with, without way[T]) {
	l := &lookup{Question: question}
	answer, err := measured(ctx, s, with, &l.With)
	if err == nil {
		var other []*T
		if other, err = measured(ctx, s, without, &l.Without); err == nil {
			err = sameAnswers(answer, other)
		}
	}
	if err != nil {
		panic(failure{fmt.Errorf("%s: %w", question, err)})
	}
	l.Found = len(answer)
	s.Lookups = append(s.Lookups, l)
}

// measured asks one way several times, and sets the cost with the middle time.
func measured[T any](ctx context.Context, s *scene, w way[T], middle *cost) (found []*T, err error) {
	if found, err = w.collect(ctx); err != nil {
		return nil, err
	}
	var costs []cost
	for range s.repeat {
		requests, begin := s.requests.Count(), time.Now()
		if found, err = w.collect(ctx); err != nil {
			return nil, err
		}
		costs = append(costs, cost{How: w.how, Searched: cmp.Or(w.goes, len(found)), Requests: s.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))})
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
	*middle = costs[len(costs)/2]
	return found, nil
}

func (w way[T]) collect(ctx context.Context) ([]*T, error) {
	found, err := collect(w.sequence(ctx))
	if err != nil {
		return nil, err
	}
	if w.less != nil {
		slices.SortFunc(found, w.less)
	}
	if w.first > 0 {
		found = found[:min(w.first, len(found))]
	}
	if w.projection != nil {
		for _, v := range found {
			w.projection(v)
		}
	}
	return found, nil
}

// sameAnswers compares answer by answer, in order.
func sameAnswers[T any](with, without []*T) error {
	if len(with) == 0 {
		return fmt.Errorf("nothing was found, and the data has an answer to every question")
	}
	if len(with) != len(without) {
		return fmt.Errorf("%d answers with the patterns, %d without", len(with), len(without))
	}
	for i := range with {
		if a, b := fresh(with[i]), fresh(without[i]); !reflect.DeepEqual(a, b) {
			return fmt.Errorf("answer %d is %+v with the patterns, %+v without", i+1, *a, *b)
		}
	}
	return nil
}

// concat reads one sequence after another.
func concat[T any](all ...func(context.Context) iter.Seq2[*T, error]) func(context.Context) iter.Seq2[*T, error] {
	return func(ctx context.Context) iter.Seq2[*T, error] {
		return func(yield func(*T, error) bool) {
			for _, part := range all {
				for v, err := range part(ctx) {
					if !yield(v, err) {
						return
					}
				}
			}
		}
	}
}

// mapped yields what to makes of each value.
func mapped[T, U any](all iter.Seq2[T, error], to func(T) (*U, error)) iter.Seq2[*U, error] {
	return func(yield func(*U, error) bool) {
		for v, err := range all {
			var u *U
			if err == nil {
				u, err = to(v)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}
