package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// asked is a question about T that is asked in two ways, which must give the same answer.
type asked[T any, R comparable] struct {
	text          string
	with, without wayTo[T]
	record        func(*T) R // what must be the same
}

// wayTo is one way to an answer.
type wayTo[T any] struct {
	class    tables.QueryClass
	how      string // in place of the class where no table is asked
	searched int    // rows that the service has to go through; 0 for those it finds
	ask      func(context.Context) iter.Seq2[*T, error]
	sort     func(a, b *T) int // sorts in the client; nil where the rows come in order
	top      int               // keeps the first ones in the client; 0 for all
}

// A question about employees has no record where all of an employee must be the same.
type (
	question = asked[Employee, record]
	way      = wayTo[Employee]
)

// answering is the way of a query.
func answering[T any](q tables.Query[T]) (wayTo[T], error) {
	plan, err := q.Plan()
	return wayTo[T]{class: plan.Class, ask: q.All}, err
}

// reading is the way of reading one thing by key.
func reading[T any](get func(context.Context) (*T, error)) wayTo[T] {
	return wayTo[T]{class: tables.PointQuery, searched: 1, ask: func(ctx context.Context) iter.Seq2[*T, error] {
		return func(yield func(*T, error) bool) { yield(get(ctx)) }
	}}
}

// repetitions is how often each way is measured; the report has the middle one.
const repetitions = 5

// ask asks a question about employees.
func (c *company) ask(ctx context.Context, s *section, q question) error {
	if q.record == nil {
		q.record = (*Employee).record
	}
	return ask(ctx, c, s, q)
}

// ask asks a question both ways. Each way is asked once unmeasured, so that neither pays for cold connections.
func ask[T any, R comparable](ctx context.Context, c *company, s *section, q asked[T, R]) error {
	for _, w := range []wayTo[T]{q.with, q.without} {
		if _, err := w.collect(ctx); err != nil {
			return fmt.Errorf("%s: %w", q.text, err)
		}
	}
	with, withCost, err := measured(ctx, c, q.with)
	if err != nil {
		return fmt.Errorf("%s: %w", q.text, err)
	}
	without, withoutCost, err := measured(ctx, c, q.without)
	if err != nil {
		return fmt.Errorf("%s, without patterns: %w", q.text, err)
	}
	if err := sameAnswers(with, without, q.record); err != nil {
		return fmt.Errorf("%s: %w", q.text, err)
	}
	s.Lookups = append(s.Lookups, &lookup{Question: q.text, Found: len(with), With: withCost, Without: withoutCost})
	return nil
}

// measured asks one way several times, and returns the cost in the middle.
func measured[T any](ctx context.Context, c *company, w wayTo[T]) (found []*T, _ cost, err error) {
	var costs []cost
	for range repetitions {
		requests, begin := c.requests.Count(), time.Now()
		if found, err = w.collect(ctx); err != nil {
			return nil, cost{}, err
		}
		spent := cost{How: cmp.Or(w.how, w.class.String()), Searched: w.searched, Requests: c.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))}
		if spent.Searched == 0 {
			spent.Searched = len(found)
		}
		costs = append(costs, spent)
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
	return found, costs[len(costs)/2], nil
}

func (w wayTo[T]) collect(ctx context.Context) ([]*T, error) {
	found, err := collect(w.ask(ctx))
	if err != nil {
		return nil, err
	}
	if w.sort != nil {
		slices.SortFunc(found, w.sort)
	}
	if w.top > 0 {
		found = found[:min(w.top, len(found))]
	}
	return found, nil
}

// sameAnswers compares answer by answer, in order.
func sameAnswers[T any, R comparable](with, without []*T, of func(*T) R) error {
	if len(with) == 0 {
		return fmt.Errorf("nothing was found, and the data has an answer to every question")
	}
	if len(with) != len(without) {
		return fmt.Errorf("%d answers with the patterns, %d without", len(with), len(without))
	}
	for i := range with {
		if a, b := of(with[i]), of(without[i]); a != b {
			return fmt.Errorf("answer %d is %+v with the patterns, %+v without", i+1, a, b)
		}
	}
	return nil
}

// act does something, measures it and adds it to the section.
func (c *company) act(s *section, what string, do func() (outcome string, err error)) error {
	requests, begin := c.requests.Count(), time.Now()
	outcome, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.Actions = append(s.Actions, &action{What: what, Outcome: outcome,
		Requests: c.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))})
	return nil
}
