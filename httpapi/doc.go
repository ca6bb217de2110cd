// Package httpapi has what an HTTP service over the library's repositories needs at its edge: the status and a safe text for an error, entity tags
// with their preconditions, and page tokens that callers can neither read nor change. It makes no requests.
package httpapi
