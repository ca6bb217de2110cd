// Package interop has the tests that other clients read what this library writes, and that it reads what they write: @azure/data-tables, the
// client for JavaScript, and aztables used alone.
package interop
