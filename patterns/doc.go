// Package patterns keeps entities with their patterns: a Repository plans every change of an entity whole, with its index copies,
// shared rows and effects in other partitions, and writes it at once. It is built on package tables; the packages of the patterns
// are built on it.
//
// # Stored rows
//
// Beside the properties that T's fields stand for, and _tpWrite (see package tables), a row holds of the library's own
//
//	_tpIncarnation  the ID of the insert that began this life of the entity
//	_tpCopies       on rows of an entity with indexes: the names of the indexes that were written with it
//	_tpLayout       on rows of an entity that a Layout spreads over several: the layout's directory, or "further"
//	_tpPrimary      on copies and further rows: the row key of the entity's own row
//	_tpShared       on a row that several entities share: the name of its pattern
//	_tpPartition    on copies in other partitions: the partition key of the entity's own row
//	_tpVersion      on such copies: the ETag of the entity's own row that they were made of
//	_tpReserved     on a reserved key, and its claim: the ID of the change that will fill it
//	_tpTerm         on a reserved key: the seconds after which that change can no longer be committed
//	_tpClaim        on a claim: the row key of the copy that it claims
//
// # Guarantee
//
// A Repository writes an entity with all its rows in one entity group transaction, under the ETag the entity was read
// with. Effects outside of the partition are named in an intent that outlives the process before anything is written.
//
// # Crashes
//
// A transaction is applied whole or not at all. A process that dies between the intent and its end leaves outside
// effects undone until a worker carries out the intent. BulkNonAtomic leaves any part of the rows
// behind its Resume mark.
//
// # Requests
//
//	Get                                             1
//	Insert, Replace, Delete, with any in-partition patterns   1
//	Merge                                           1, with patterns 2
//	Upsert, ReplaceUnconditional, DeleteUnconditional, Update   2 with a Repository, 1 with tables.Rows (no Update)
//	Query                                           1 for each page of at most 1,000; 1 for a point query
//	Transaction                                     1
//	after a lost answer                             1 more for each row, to find out
//
// The SDK's repetitions come on top; AccountOptions.ClientOptions.Retry is the one retry rule for all of them.
//
// # When not to use it
//
// When entities must change together across partitions in one step: Azure Tables has no such transaction, and the
// packages built on this one make it eventually so.
package patterns

import "github.com/tablepatterns/tablepatterns/internal/rows"

// pass opens the raw surface of package tables.
const pass = rows.Open
