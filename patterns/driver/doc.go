// Package driver defines what the author of a pattern implements. Programs that only use patterns do not import it.
//
// A pattern is a type with one method, Attach, which returns an Implementation: a struct of functions, of which the
// author sets those that the pattern needs. A function of a wrong type does not compile. Package patterns calls the
// functions to plan each change, and commits the plan.
package driver
