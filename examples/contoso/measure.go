package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// question is asked in two ways that must give the same answer.
type question struct {
	text          string
	with, without way
	record        func(*Employee) record // what must be the same; nil for all
}

// way is one way to an answer.
type way struct {
	class    patterns.QueryClass
	searched int // rows that the service has to go through; 0 for those it finds
	ask      func(context.Context) iter.Seq2[*Employee, error]
	sort     func(a, b *Employee) int // sorts in the client; nil where the rows come in order
	top      int                      // keeps the first ones in the client; 0 for all
}

// answering is the way of a query.
func answering(q patterns.Query[Employee]) (way, error) {
	plan, err := q.Plan()
	return way{class: plan.Class, ask: q.All}, err
}

// reading is the way of reading one employee by key.
func reading(get func(context.Context) (*Employee, error)) way {
	return way{class: patterns.PointQuery, searched: 1, ask: func(ctx context.Context) iter.Seq2[*Employee, error] {
		return func(yield func(*Employee, error) bool) { yield(get(ctx)) }
	}}
}

// repetitions is how often each way is measured; the report has the middle one.
const repetitions = 5

// ask asks a question both ways. Each way is asked once unmeasured, so that neither pays for cold connections.
func (c *company) ask(ctx context.Context, s *section, q question) error {
	if q.record == nil {
		q.record = (*Employee).record
	}
	for _, w := range []way{q.with, q.without} {
		if _, err := w.collect(ctx); err != nil {
			return fmt.Errorf("%s: %w", q.text, err)
		}
	}
	with, withCost, err := c.measured(ctx, q.with)
	if err != nil {
		return fmt.Errorf("%s: %w", q.text, err)
	}
	without, withoutCost, err := c.measured(ctx, q.without)
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
func (c *company) measured(ctx context.Context, w way) (found []*Employee, _ cost, err error) {
	var costs []cost
	for range repetitions {
		requests, begin := c.requests.Count(), time.Now()
		if found, err = w.collect(ctx); err != nil {
			return nil, cost{}, err
		}
		spent := cost{How: w.class.String(), Searched: w.searched, Requests: c.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))}
		if spent.Searched == 0 {
			spent.Searched = len(found)
		}
		costs = append(costs, spent)
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
	return found, costs[len(costs)/2], nil
}

func (w way) collect(ctx context.Context) ([]*Employee, error) {
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

func collect[T any](all iter.Seq2[*T, error]) ([]*T, error) {
	var found []*T
	for v, err := range all {
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, nil
}

// sameAnswers compares employee by employee, in order.
func sameAnswers(with, without []*Employee, of func(*Employee) record) error {
	if len(with) == 0 {
		return fmt.Errorf("nobody was found, and the data has somebody for every question")
	}
	if len(with) != len(without) {
		return fmt.Errorf("%d employees with the patterns, %d without", len(with), len(without))
	}
	for i := range with {
		if of(with[i]) != of(without[i]) {
			return fmt.Errorf("answer %d is employee %d with the patterns, %d without, or they differ in a property", i+1, with[i].ID, without[i].ID)
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
