package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scene is what a scenario works with: the company, and its section of the report. All scenarios are told in these words:
//
//	set up    must, try, collect
//	act       s.act, s.write, s.refused
//	measure   ask(get or query or list, with the pattern and without)
//	check     s.check
//
// A step that fails ends its scenario, as t.Fatal ends a test, so that a scenario shows calls of the library and not what to do
// about each error. Programs return errors instead.
type scene struct {
	*company
	*section
}

// failure is what ends a scenario.
type failure struct{ error }

// try ends the scenario if there is an error.
func try(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the scenario.
func must[T any](v T, err error) T {
	try(err)
	return v
}

// collect returns the values of a sequence, or ends the scenario at its first error.
func collect[T any](all iter.Seq2[T, error]) []T {
	var found []T
	for v, err := range all {
		found = append(found, must(v, err))
	}
	return found
}

// attempt returns the error that has ended do, with what was attempted.
func attempt(what string, do func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ours := r.(failure)
			if !ours {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", what, f.error)
		}
	}()
	do()
	return nil
}

// spend does something and measures it.
func (s *scene) spend(what string, do func()) spent {
	requests, begin := s.requests.Count(), time.Now()
	try(attempt(what, do))
	return spent{Requests: s.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))}
}

// act does something, measures it, and reports it with its outcome.
func (s *scene) act(what, outcome string, do func()) *action {
	a := &action{What: what, Outcome: outcome, spent: s.spend(what, do)}
	s.Actions = append(s.Actions, a)
	return a
}

// says sets an outcome that is known only after the action.
func (a *action) says(format string, args ...any) { a.Outcome = fmt.Sprintf(format, args...) }

// write is act for an action during which -chaos makes calls fail.
func (s *scene) write(what, outcome string, do func()) *action {
	if s.network != nil {
		s.network.bad.Set(true)
		defer s.network.bad.Set(false)
	}
	return s.act(what, outcome, do)
}

// refused is act for an action that has to fail with this error.
func (s *scene) refused(what string, want error, do func()) {
	s.act(what, "refused: "+want.Error(), func() {
		err := attempt("the error is", do)
		s.check(errors.Is(err, want), "it should be refused with %q; %v", want, err)
	})
}

// check ends the scenario unless something holds.
func (s *scene) check(holds bool, format string, args ...any) {
	if !holds {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

// tell adds lines to the section.
func (s *scene) tell(lines ...string) { s.Text = append(s.Text, lines...) }

// explain adds what Repository.Explain says a change would write.
func (s *scene) explain(title string, x *patterns.Explanation) {
	s.tell(title)
	s.tell(strings.Split(strings.TrimSpace(x.String()), "\n")...)
}

// load writes entities, many in a transaction.
func load[T any](ctx context.Context, repo *patterns.Repository[T], all []*T) tables.Report {
	return must(repo.BulkNonAtomic(ctx, each(all), nil))
}

// drain has a worker empty a queue, including messages that are hidden since a call failed. A message on the poison queue ends the scenario.
func (s *scene) drain(ctx context.Context, queue *eventual.Queue, worker *eventual.Worker) {
	const pause, limit = 100 * time.Millisecond, 2 * time.Minute
	for waited := time.Duration(0); ; waited += pause {
		must(worker.Drain(ctx))
		left := must(queue.Length(ctx))
		if left == 0 {
			s.checkPoison(ctx, queue)
			return
		}
		s.check(waited < limit && ctx.Err() == nil, "%s on queue %s", counted(left, "message"), queue.Name())
		s.place.pass(pause)
	}
}

// checkPoison ends the scenario if a worker has moved a message to the poison queue.
func (s *scene) checkPoison(ctx context.Context, queue *eventual.Queue) {
	for _, entry := range must(queue.Poison().Peek(ctx, 1)) {
		s.check(false, "poison queue %s is not empty: %s", queue.Poison().Name(), entry.Reason)
	}
}

// each yields the values of a slice.
func each[T any](all []*T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// together does something with each value, eight at a time. The first failure ends the others, and the scenario.
func together[T any](ctx context.Context, all []T, do func(context.Context, T) error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, v := range all {
		group.Go(func() error { return do(ctx, v) })
	}
	try(group.Wait())
}

// again repeats something idempotent, for as long as its outcome is unknown or the service is unavailable.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if ctx.Err() != nil || !errors.Is(err, tables.ErrUnknownOutcome) && !errors.Is(err, tables.ErrUnavailable) {
			return err
		}
	}
}

// inserting returns a function that inserts an entity whose key no other writer uses. So one that exists after an attempt with unknown
// outcome is our own.
func inserting[T any](repo *patterns.Repository[T]) func(context.Context, *T) error {
	return func(ctx context.Context, v *T) error {
		unknown := false
		err := again(ctx, func() error {
			err := repo.Insert(ctx, v)
			for unknown && errors.Is(err, tables.ErrConflict) && ctx.Err() == nil { // the attempt before may still arrive, so that this one has to wait
				time.Sleep(time.Second)
				err = repo.Insert(ctx, v)
			}
			unknown = unknown || errors.Is(err, tables.ErrUnknownOutcome)
			return err
		})
		if !unknown || !errors.Is(err, tables.ErrExists) {
			return err
		}
		found, err := repo.Get(ctx, repo.KeyOf(v))
		if err == nil {
			*v = *found
		}
		return err
	}
}
