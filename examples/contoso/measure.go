package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// repetitions is how often each way to an answer is measured; the report has the one with the middle time.
const repetitions = 5

// way is one way to the answer of a question about T.
type way[T any] struct {
	how  string // the class of the query, or what is read in place of a table
	goes int    // how many rows the service goes through; 0 means those that are found
	read func() []*T
}

// get is the way of reading one thing by its key.
func get[T any](read func() *T) way[T] {
	return way[T]{tables.PointQuery.String(), 1, func() []*T { return []*T{read()} }}
}

// query is the way of a query.
func query[T any](ctx context.Context, q tables.Query[T]) way[T] {
	return way[T]{must(q.Plan()).Class.String(), 0, func() []*T { return collect(q.All(ctx)) }}
}

// list is the way of reading a list by other means. how is the class of its queries, or says what is read in place of a table.
func list[T any](how any, read func() []*T) way[T] { return way[T]{fmt.Sprint(how), 0, read} }

// through sets how many rows the service goes through, if those are not the rows it finds.
func (w way[T]) through(rows int) way[T] { w.goes = rows; return w }

// then changes an answer in the client.
func (w way[T]) then(change func([]*T) []*T) way[T] {
	read := w.read
	w.read = func() []*T { return change(read()) }
	return w
}

// sorted sorts in the client, where the rows come in another order.
func (w way[T]) sorted(order func(a, b *T) int) way[T] {
	return w.then(func(all []*T) []*T { return slices.SortedFunc(slices.Values(all), order) })
}

// top keeps the first ones in the client.
func (w way[T]) top(n int) way[T] {
	return w.then(func(all []*T) []*T { return all[:min(n, len(all))] })
}

// without drops what the other way does not read.
func (w way[T]) without(drop func(*T)) way[T] {
	return w.then(func(all []*T) []*T {
		for _, v := range all {
			drop(v)
		}
		return all
	})
}

// ask asks a question with the pattern and without it. Both answers must be the same. Each way is asked once unmeasured, so that
// neither pays for new connections.
func ask[T any](s *scene, question string, with, without way[T]) {
	l := &lookup{Question: question}
	var answer, other []*T
	answer, l.With = measured(s, question, with)
	other, l.Without = measured(s, question, without)
	try(attempt(question, func() { try(sameAnswers(answer, other)) }))
	l.Found = len(answer)
	s.Lookups = append(s.Lookups, l)
}

// measured asks one way several times, and returns the cost with the middle time.
func measured[T any](s *scene, question string, w way[T]) (found []*T, middle cost) {
	read := func() { found = w.read() }
	s.spend(question, read)
	var costs []spent
	for range s.repeat {
		costs = append(costs, s.spend(question, read))
	}
	slices.SortFunc(costs, func(a, b spent) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
	middle = cost{w.how, costs[len(costs)/2]}
	middle.Searched = cmp.Or(w.goes, len(found))
	return found, middle
}

// sameAnswers compares two lists in their order.
func sameAnswers[T any](with, without []*T) error {
	if len(with) == 0 {
		return fmt.Errorf("nothing was found, and the data has an answer to every question")
	}
	if len(with) != len(without) {
		return fmt.Errorf("%d entities, and %d to compare them with", len(with), len(without))
	}
	for i := range with {
		if err := same(with[i], without[i]); err != nil {
			return fmt.Errorf("number %d: %w", i+1, err)
		}
	}
	return nil
}
