// Package driver defines what the author of a pattern implements. Programs that only use patterns do not import it.
//
// A pattern is a type with one method, Attach, which returns an Implementation: a struct of functions, of which the
// author sets those that the pattern needs. Package patterns calls the functions to plan each change, and commits the plan.
// The functions get an entity as a pointer to the repository's type T: Of makes such a function out of one that takes a *T,
// and As converts one entity.
package driver
