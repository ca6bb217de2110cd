package patterns

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Async returns a pattern that leaves its effects outside of the partition to the workers (see Store.Run): a
// write does not wait for the effects, and rows of the pattern are stale until a worker has applied them.
// Without Async, the writer applies them before it returns. Each pattern of a repository can be attached
// either way, such as a unique email at once and copied names later. The keys of a Unique index are reserved
// before the entity is written in either case, so a write with a taken key returns ErrDuplicate at once.
// NewRepository returns ErrWiring for a pattern without such effects. Give the result of Async to
// NewRepository, and read through the original pattern.
func Async[T any](pattern Pattern[T]) Pattern[T] { return asyncPattern[T]{pattern} }

type asyncPattern[T any] struct{ pattern Pattern[T] }

// Attach implements Pattern.
func (a asyncPattern[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	if fields.IsNil(a.pattern) {
		return driver.Implementation[T]{}, errors.New("Async was given nil; give it a pattern")
	}
	implementation, err := a.pattern.Attach(host)
	if err == nil && implementation.Outside == nil && implementation.OutsideKeys == nil {
		err = errors.New("the pattern has no effects outside of the partition that could be left to workers; attach it without Async")
	}
	implementation.Async = true
	return implementation, err
}
