// Package driver is what the author of a pattern implements. Programs that use patterns do not import it.
//
// A pattern is a type with one method for package patterns, Attach, which returns an Implementation: a struct of functions, of which
// the author sets those that the pattern needs. A function of a wrong type does not compile; one that is nil is a part that the
// pattern does not have. Package patterns plans each change with what the functions return, and writes the plan.
package driver
