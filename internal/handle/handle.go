// Package handle has the contents of opaque types: a type of a public package is defined as one of these, so that the packages of this
// module convert it and use its contents, and programs cannot.
package handle

import "sync/atomic"

// Any holds a value of any type.
type Any struct{ v any }

// New returns an Any that holds v.
func New(v any) Any { return Any{v} }

// Value returns the value, nil for the zero Any.
func (a Any) Value() any { return a.v }

// Slot holds a T that is set once, and can be emptied. It is safe for concurrent use; the zero Slot is empty.
type Slot[T any] struct{ held atomic.Pointer[T] }

// Get returns what the slot holds, nil if it is empty.
func (s *Slot[T]) Get() *T { return s.held.Load() }

// Fill sets what an empty slot holds, and reports whether the slot was empty. With nil it only reports that.
func (s *Slot[T]) Fill(v *T) bool { return s.held.CompareAndSwap(nil, v) }

// Empty empties the slot.
func (s *Slot[T]) Empty() { s.held.Store(nil) }
