// Package patterns stores entities with their patterns. A Repository plans every change of an entity with its index
// copies, shared rows and effects in other partitions, and commits all rows of the entity's partition in one
// transaction. It is built on package tables; the pattern packages are built on it.
//
// # Stored rows
//
// Beside the properties of T's fields and _tpWrite (see package tables), a row has these properties of the library:
//
//	_tpIncarnation  the ID of the insert that created the entity; a new one after a delete and insert
//	_tpCopies       on rows of an entity with indexes: their names, with '>' before that of one over partitions
//	_tpLayout       on rows of an entity that a Layout spreads over several: the layout's directory, or "further"
//	_tpPrimary      on copies and further rows: the row key of the entity's own row
//	_tpShared       on a row that several entities share: the name of its pattern
//	_tpPartition    on copies in other partitions: the partition key of the entity's own row
//	_tpVersion      on such copies with all properties: the ETag of the entity's own row that they were made of
//	_tpMark         on such a copy that is marked: the ID of the change that marked it. Whatever else it holds, read the entity
//	_tpAcquirer     on a marked copy whose key a change takes: the ID of that change
//	_tpBase         on such a copy: the ETag of the entity from which that change started, none for an insert
//	_tpNext         on a marked copy whose key passes to another entity: the key of that entity
//
// # Guarantee
//
// A Repository writes an entity with all the rows in its partition in one entity group transaction, under the
// ETag with which the entity was read. Before it makes a change that concerns copies in other partitions, it marks them, so that
// their readers read the entity; afterwards it settles them. Before a change that has other effects in other partitions, it stores
// an intent that names what the change can touch there.
//
// # Crashes
//
// A transaction is applied completely or not at all. Copies that a dead process has left marked cost their readers 1 more request. If a
// process dies after it stored an intent, a worker completes the outside effects. After a crash of BulkNonAtomic, any of the entities after the last
// Report.Resume may already be changed.
//
// # Requests
//
//	Get                                             1
//	Insert, Replace, Delete, with or without indexes in the partition   1
//	Merge                                           1, with patterns 2
//	Upsert, ReplaceUnconditional, DeleteUnconditional, Update   2 with a Repository, 1 with tables.Rows (no Update)
//	Query                                           1 for each page of at most 1,000; 1 for a point query
//	Transaction                                     1, and the requests of its entities' patterns: see StageInsert
//	after a lost response                           1 more for each row, to read the outcome
//
// The packages of other patterns say what these add. The SDK's retries are not included;
// AccountOptions.ClientOptions.Retry configures them.
//
// # When not to use it
//
// When entities in several partitions must change atomically: Azure Tables has no such transaction. Indexes over
// partitions are always current all the same; copies in other entities are eventually consistent.
package patterns
