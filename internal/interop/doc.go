// Package interop tests that this library and other clients read what the other has written: @azure/data-tables, the client for JavaScript,
// and aztables used alone.
package interop
