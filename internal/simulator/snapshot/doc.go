// Package snapshot helps services to copy and compare their states. Writer turns equal states into equal sums, and Cloned
// copies a map together with the values to which it points.
//
// It takes only values of Go's own types and imports no other package of this project: each service writes its own state.
package snapshot
