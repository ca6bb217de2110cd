// Package carry is the one door into package entity: it finds the field in which a Meta or an Entity carries what the library knows
// about its row from a read to the next write. Programs cannot import it, and so cannot change what is carried.
package carry

// find is set once, while package entity is initialised.
var find func(holder any) *any

// Define sets how Of finds the field. Only package entity calls it.
func Define(of func(holder any) *any) bool {
	find = of
	return true
}

// Of returns a pointer to the field of a *entity.Meta or a *entity.Entity; the field is nil if nothing is carried.
func Of(holder any) *any { return find(holder) }
