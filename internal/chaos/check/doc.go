// Package check compares what is stored for an entity type with what its primary rows ask for, by the Azure SDK alone. It shares
// no code with the packages that write the rows and with patterns.Repository.Verify: docs/reference/storage-format.md is what
// both follow, so a mistake in one of them shows as a difference.
//
// A [Model] says where the rows are and which keys a primary row asks for. [Model.Check] reads all tables and blobs once, and
// reports what is missing, spurious, different or unreadable: copies in the entities' partition, copies outside of it with their
// claims, entries in outside lists, and blobs. It is for a store at rest: no writer, no worker and no message is left.
package check
