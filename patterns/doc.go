// Package patterns is the core that every pattern of the Azure Storage table design guide builds on: accounts and
// tables, values and their types, queries with their plans, transactions, bulk writes, and the Repository, which keeps
// entities of one type in step with all their index copies and outside effects.
//
// # Layers
//
//	Account      the SDK's clients for one storage account, made from any credential
//	Table        create and drop; NewTransaction
//	TypedTable   rows as values of T, or as property bags (Entity): point operations, Query, BulkNonAtomic
//	Repository   entities of T with their patterns: the same verbs, each planned whole and written at once
//
// # Stored rows
//
// A row holds the properties that T's fields stand for (see Codec) and, of the library's own,
//
//	_tpWrite        the id of the write that left the row; left out where the row is full without it
//	_tpIncarnation  on rows of a Repository: the id of the insert that began this life of the entity
//	_tpCopies       on rows of an entity with indexes: the names of the indexes that were written with it
//	_tpLayout       on rows of an entity that a Layout has spread over several: the layout's directory, or "further"
//	_tpPrimary      on copies and further rows: the row key of the entity's own row
//	_tpShared       on a row that belongs to no one entity: the name of its pattern
//	_tpPartition    on copies in other partitions: the partition key of the entity's own row
//	_tpVersion      on such copies: the ETag of the entity's own row that they were made of
//	_tpReserved     on a reserved key, and its claim: the id of the change that will fill it
//	_tpTerm         on a reserved key: the seconds after which that change can no longer be committed
//	_tpClaim        on a claim: the row key of the copy that it claims
//
// They count among the 252 properties and the 1 MiB of an entity, and are not seen by T or in a property bag.
//
// # Guarantee
//
// Every row goes through one write path. Input is checked against the service's limits before any request. A write
// has three outcomes, and they are never mixed up: nil (applied), an error (not applied), ErrUnknownOutcome (nobody can
// tell). An answer that was lost is looked for: the SDK repeats requests, and the 409 or 412 to a repetition may be the
// echo of a first attempt that was applied; the write id in the row tells. What is read equals what was written.
//
// A Repository writes an entity with all its rows in one entity group transaction, under the ETag the entity was read
// with. Effects outside of the partition are named in an intent that outlives the process before anything is written.
//
// # Crashes
//
// A transaction is applied whole or not at all. A process that dies between the intent and its end leaves outside
// effects undone until a worker calls Repository.Reconcile with the intent. BulkNonAtomic leaves any part of the rows
// behind its Resume mark.
//
// # Requests
//
//	Get                                             1
//	Insert, Replace, Delete, with any in-partition patterns   1
//	Merge                                           1, with patterns 2
//	Upsert, ReplaceUnconditional, DeleteUnconditional, Update   2 with a Repository, 1 with a TypedTable (no Update)
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
