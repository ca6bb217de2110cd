package patterns

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attachment is a pattern as NewRepository and RemoveUnattached got it, without its type of entity.
type attachment struct {
	pattern any
	attach  func(driver.Host) (driver.Implementation, error)
}

func attachments[T any](patterns []Pattern[T]) []attachment {
	all := make([]attachment, len(patterns))
	for i, p := range patterns {
		all[i] = attachment{p, func(host driver.Host) (driver.Implementation, error) { return p.Attach(host, nil) }}
	}
	return all
}

// implementation attaches pattern number i, from 0, which must be free, and returns what the engine uses of it.
func (a *attachment) implementation(r *engine.Engine, i int) (*driver.Implementation, error) {
	if fields.IsNil(a.pattern) {
		return nil, fmt.Errorf("pattern number %d is nil; leave it out", i+1)
	}
	p, err := a.attach(host{r})
	if err == nil && p.Binding != nil {
		err = fill(p.Binding, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", a.name(p.Name, i), err)
	}
	if p.Outside != nil {
		outside := *p.Outside // the engine changes its own copy
		outside.Table = cmp.Or(outside.Table, (*tables.Table)(r.Table))
		p.Outside = &outside
	}
	return &p, nil
}

// name returns a pattern's name for an error, or its position and type if it has no name yet.
func (a *attachment) name(name string, i int) string {
	if name == "" {
		return fmt.Sprintf("%d of type %T", i+1, a.pattern)
	}
	return strconv.Quote(name)
}

// attach attaches patterns to an engine.
func attach(r *engine.Engine, attached []attachment) error {
	for i := range attached {
		p, err := attached[i].implementation(r, i)
		if err != nil {
			return err
		}
		r.Patterns = append(r.Patterns, p)
	}
	for _, p := range r.Patterns {
		if p.Fits != nil {
			if err := p.Fits(r.Patterns); err != nil {
				return fmt.Errorf("pattern %q: %w", p.Name, err)
			}
		}
	}
	return nil
}

// bind binds all patterns to their repository. If one of them is already bound, it binds none and returns an
// error.
func bind(r *engine.Engine) error {
	for i, p := range r.Patterns {
		if p.Binding == nil {
			continue
		}
		if err := fill(p.Binding, host{r}); err != nil {
			release(r.Patterns[:i])
			return fmt.Errorf("pattern %q: %w", p.Name, err)
		}
	}
	return nil
}

// fill binds a pattern to its repository; with a nil host it only checks that the pattern is free.
func fill(b *driver.Binding, to driver.Host) error {
	slot, next := (*handle.Slot[driver.Host])(b), &to
	if to == nil {
		next = nil
	}
	if !slot.Fill(next) {
		return fmt.Errorf("the pattern already belongs to a repository on table %s; make another pattern for this one", (*slot.Get()).Table().Name())
	}
	return nil
}

// release frees patterns for use by another repository.
func release(patterns []*driver.Implementation) {
	for _, p := range patterns {
		if p.Binding != nil {
			(*handle.Slot[driver.Host])(p.Binding).Empty()
		}
	}
}

// Async returns a pattern that leaves its effects outside of the partition to the workers (see Store.Start): a
// write does not wait for the effects, and rows of the pattern are stale until a worker has applied them.
// Without Async, the writer applies the effects before it returns. Some patterns of a repository can have Async
// and others not. NewRepository returns ErrWiring for a pattern without such
// effects, such as an index over partitions, which is always current. Give the result of Async to NewRepository, and read through the original pattern.
func Async[T any](pattern Pattern[T]) Pattern[T] { return asyncPattern[T]{pattern} }

type asyncPattern[T any] struct{ pattern Pattern[T] }

// Attach implements Pattern.
func (a asyncPattern[T]) Attach(host driver.Host, of *T) (driver.Implementation, error) {
	if fields.IsNil(a.pattern) {
		return driver.Implementation{}, errors.New("Async was given nil; give it a pattern")
	}
	return leftToWorkers(a.pattern.Attach(host, of))
}

func leftToWorkers(implementation driver.Implementation, err error) (driver.Implementation, error) {
	if err == nil && implementation.Effect.OutsideKeys == nil {
		err = errors.New("the pattern has no effects that could be left to workers; attach it without Async")
	}
	implementation.Effect.Async = true
	return implementation, err
}
