// Package patterns stores entities with their patterns. A Repository plans every change of an entity with its index
// copies, shared rows and effects in other partitions, and commits all rows of the entity's partition in one
// transaction. It is built on package tables; the pattern packages are built on it.
//
// # Stored rows
//
// Beside the properties of T's fields and _tpWrite (see package tables), a row has these properties of the library:
//
//	_tpIncarnation  the ID of the insert that created the entity; a new one after a delete and insert
//	_tpCopies       on rows of an entity with indexes: the names of the indexes that were written with it
//	_tpLayout       on rows of an entity that a Layout spreads over several: the layout's directory, or "further"
//	_tpPrimary      on copies and further rows: the row key of the entity's own row
//	_tpShared       on a row that several entities share: the name of its pattern
//	_tpPartition    on copies in other partitions: the partition key of the entity's own row
//	_tpVersion      on such copies with all properties: the ETag of the entity's own row that they were made of
//	_tpMark         on a marked copy, whose content is not to be believed: the ID of the change or job that has marked it
//	_tpAcquirer     on a key that a change takes for an entity: the ID of that change
//	_tpBase         on such a key: the ETag of the entity from which that change started
//	_tpNext         on a key that passes from one entity to another: the keys of the other
//
// # Guarantee
//
// A Repository writes an entity with all the rows in its partition in one entity group transaction, under the
// ETag with which the entity was read. Before that, it marks the copies in other partitions that the change makes wrong, and readers of
// a marked copy follow it to the entity, so that they never see an old state. After that, it settles these copies. Before it makes a
// change that has other effects outside of the partition, it stores an intent that names what the change can touch there.
//
// # Crashes
//
// A transaction is applied completely or not at all. If a process dies after it has marked copies, they stay marked until the next change
// of the entity, or until 35 seconds later a reader or Repair settles them. If it dies after it stored an intent, a worker
// completes the outside effects. After a crash of BulkNonAtomic, any of the entities after the last
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
// When entities in several partitions must change atomically: Azure Tables has no such transaction. Indexes over partitions are never
// stale; the other pattern packages for other partitions are eventually consistent.
package patterns
