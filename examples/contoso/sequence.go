package main

import (
	"context"
	"iter"
	"sync"
)

// each yields the values of a slice, without errors.
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

// together does something with each value, some at a time. After a failure, no more are begun.
func together[T any](ctx context.Context, all []*T, do func(context.Context, *T) error) error {
	const atOnce = 8
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
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

// failing yields an error.
func failing[T any](err error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) { yield(nil, err) }
}
