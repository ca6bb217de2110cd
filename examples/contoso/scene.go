package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scenario is one part of the run, about one section of the guide.
type scenario struct {
	title string
	guide string // the section of the guide
	plain string // what the questions are asked without the patterns; empty is one row an employee
	shows []show // what the summary has of it
	// open makes the repositories and patterns of the scenario. It sends nothing: Store.Create makes the tables of all scenarios at once.
	open func(s *scene) (run func(ctx context.Context))
}

// scene is what a scenario works with: the company, and its section of the report. All scenarios are told in these words:
//
//	set up    must, try
//	act       s.act, s.write, s.refused
//	measure   ask(get or query or sequence, with the pattern and without)
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

// attempt returns the error that has ended do.
func attempt(do func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ours := r.(failure)
			if !ours {
				panic(r)
			}
			err = f.error
		}
	}()
	do()
	return nil
}

// act does something, measures it, and reports it with its outcome.
func (s *scene) act(what, outcome string, do func() error) *action {
	requests, begin := s.requests.Count(), time.Now()
	if err := do(); err != nil {
		panic(failure{fmt.Errorf("%s: %w", what, err)})
	}
	a := &action{What: what, Outcome: outcome, Requests: s.requests.Count() - requests, Milliseconds: milliseconds(time.Since(begin))}
	s.Actions = append(s.Actions, a)
	return a
}

// says sets an outcome that is known only after the action.
func (a *action) says(format string, args ...any) { a.Outcome = fmt.Sprintf(format, args...) }

// write is act for what -chaos has calls go wrong in.
func (s *scene) write(what, outcome string, do func() error) *action {
	if s.network != nil {
		s.network.bad.Set(true)
		defer s.network.bad.Set(false)
	}
	return s.act(what, outcome, do)
}

// refused is act for what has to fail with this error.
func (s *scene) refused(what string, want error, do func() error) {
	s.act(what, "refused: "+want.Error(), func() error {
		if err := do(); !errors.Is(err, want) {
			return fmt.Errorf("it was not refused with %q: %w", want, err)
		}
		return nil
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
func (s *scene) explain(title string, x *patterns.Explanation, err error) {
	try(err)
	s.tell(title)
	s.tell(strings.Split(strings.TrimSpace(x.String()), "\n")...)
}

// importing writes entities that are there for comparison, unmeasured.
func importing[T any](ctx context.Context, repo *patterns.Repository[T], all []*T) {
	must(repo.BulkNonAtomic(ctx, each(all), nil))
}

// drain has a worker empty a queue, also of messages that are hidden since a call went wrong. None may be given up.
func (s *scene) drain(ctx context.Context, queue *eventual.Queue, worker *eventual.Worker) error {
	const pause, limit = 100 * time.Millisecond, 2 * time.Minute
	for waited := time.Duration(0); ; waited += pause {
		if _, err := worker.Drain(ctx); err != nil {
			return err
		}
		left, err := queue.Length(ctx)
		switch {
		case err != nil:
			return err
		case left == 0:
			return checkPoison(ctx, queue)
		case waited >= limit || ctx.Err() != nil:
			return fmt.Errorf("%s on queue %s", counted(left, "message"), queue.Name())
		}
		s.place.pass(pause)
	}
}

// drainIntents finishes what changes have left to do outside of their partitions: nothing, unless calls went wrong.
func (s *scene) drainIntents(ctx context.Context) error {
	worker, err := eventual.NewWorker(s.store.Intents(), nil, nil)
	if err != nil {
		return err
	}
	return s.drain(ctx, s.store.Intents(), worker)
}

// checkPoison is an error if a message was given up.
func checkPoison(ctx context.Context, queue *eventual.Queue) error {
	entries, err := queue.Poison().Peek(ctx, 1)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("poison queue %s is not empty: %s", queue.Poison().Name(), entries[0].Reason)
	}
	return err
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

// collect returns what is yielded, up to the first error.
func collect[T any](all iter.Seq2[T, error]) ([]T, error) {
	var found []T
	for v, err := range all {
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, nil
}

// together does something with each value, eight at a time. After a failure, no more are begun.
func together[T any](ctx context.Context, all []*T, do func(context.Context, *T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, 8)
	var running sync.WaitGroup
	for _, v := range all {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, v); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// again does something idempotent once more, for as long as it is unknown whether it was done, or it surely was not.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if ctx.Err() != nil || !errors.Is(err, tables.ErrUnknownOutcome) && !errors.Is(err, tables.ErrUnavailable) {
			return err
		}
	}
}

// insert inserts an entity whose key nobody else takes. So one that is there after an attempt with unknown outcome is our own.
func insert[T any](ctx context.Context, repo *patterns.Repository[T], v *T) error {
	unknown := false
	err := again(ctx, func() error {
		err := repo.Insert(ctx, v)
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

// inserting is insert, for together.
func inserting[T any](repo *patterns.Repository[T]) func(context.Context, *T) error {
	return func(ctx context.Context, v *T) error { return insert(ctx, repo, v) }
}
