package edm

import "slices"

// Access says where a property of type P has its name and its value: packages above have a property type of their own, whose value
// is a type made of Value.
type Access[P any] func(*P) (name *string, value *Value)

// Append appends a property. Name and value are all that a P holds, so what a reused array had at this index is overwritten whole.
func (a Access[P]) Append(properties []P, name string, v Value) []P {
	properties = slices.Grow(properties, 1)[:len(properties)+1]
	n, value := a(&properties[len(properties)-1])
	*n, *value = name, v
	return properties
}
