package edm

import "slices"

// Access returns pointers to the name and the value of a property of type P. The packages that use edm have
// property types of their own, whose values are based on Value.
type Access[P any] func(*P) (name *string, value *Value)

// Append appends a property. A P has no other fields, so writing both overwrites an old element of a reused array completely.
func (a Access[P]) Append(properties []P, name string, v Value) []P {
	properties = slices.Grow(properties, 1)[:len(properties)+1]
	n, value := a(&properties[len(properties)-1])
	*n, *value = name, v
	return properties
}
