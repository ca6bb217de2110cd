// Package driver is what the author of a pattern implements. Programs that use patterns do not import it.
//
// A pattern is a type with the methods of Pattern, and of one or more of the interfaces beside it, which say what it contributes to the
// plan of each change. Package patterns carries the plan out; patterns do not write.
package driver
