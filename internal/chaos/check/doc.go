// Package check compares the stored rows of an entity type with the rows that its primary rows require, using
// the Azure SDK alone. It shares no code with the packages that write the rows, nor with
// patterns.Repository.Verify. This package and the library both follow docs/reference/storage-format.md, so a
// mistake in one of them shows as a difference.
//
// A [Model] says where the rows are and which keys a primary row requires. [Model.Check] reads all tables and
// blobs once, and reports what is missing, spurious, different or unreadable: copies in the entities'
// partition, copies outside of it, and blobs. Call it only when
// no writer and no worker is running and the queues are empty.
package check
