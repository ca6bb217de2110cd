package edm

import "slices"

// Access returns where a property of type P stores its name and its value: packages above have a property type of their own, whose value
// type is based on Value.
type Access[P any] func(*P) (name *string, value *Value)

// Append appends a property. A P has no other fields, so writing both overwrites an old element of a reused array completely.
func (a Access[P]) Append(properties []P, name string, v Value) []P {
	properties = slices.Grow(properties, 1)[:len(properties)+1]
	n, value := a(&properties[len(properties)-1])
	*n, *value = name, v
	return properties
}
