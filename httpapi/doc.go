// Package httpapi has what an HTTP service over the library's repositories needs at its edge: the status and
// a safe text for an error, entity tags and their preconditions in requests and responses, and page tokens
// that callers can neither read nor change.
//
// No function of this package makes a request or starts a goroutine.
package httpapi
