package edm

// Access says where a property of type P has its name and its value: packages above have a property type of their own, whose value
// is a type made of Value.
type Access[P any] func(*P) (name *string, value *Value)

// Append appends a property.
func (a Access[P]) Append(properties []P, name string, v Value) []P {
	var p P
	properties = append(properties, p)
	n, value := a(&properties[len(properties)-1])
	*n, *value = name, v
	return properties
}
