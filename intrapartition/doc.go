// Package intrapartition keeps copies of an entity under other row keys of its partition, so that it can be found and
// sorted by other properties: the guide's "Intra-partition secondary index pattern".
//
// # Stored rows
//
// An employee of department Sales with an index "email" is two rows of one partition:
//
//	PartitionKey  RowKey                      properties
//	Sales         empid_000223                FirstName LastName Age Email  _tpIncarnation _tpCopies=email _tpWrite
//	Sales         email_jonesj@contoso.com    FirstName LastName Age Email  _tpIncarnation _tpCopies=email _tpWrite _tpPrimary=empid_000223
//
// The row key of a copy is the index's name, "_" and the index key as compoundkey writes it. A copy holds all of the
// entity's properties, or those that Options.Project names. _tpPrimary is the row key of the entity's own row, _tpCopies
// the names of the indexes that were written with it.
//
// # Guarantee
//
// A copy and its entity are never seen to differ: every write of the repository writes all rows of the entity in one
// entity group transaction. An index key belongs to one entity at most; a taken one is tables.ErrDuplicate naming
// the index, and nothing is written. An entity without an index key (the zero compoundkey.Part) has no copy.
//
// # Crashes
//
// A transaction is applied whole or not at all, so a crash leaves nothing to repair. Rows that other programs wrote or
// deleted behind the repository's back are mended when the entity is written next: a missing copy is written again,
// and one that was to be deleted may be gone. A program that writes the entities without the index leaves copies behind;
// one that is in the way of a write is taken over, after a look at its owner. An index that is attached to a table with
// data holds each entity from its next write on.
//
// # Requests
//
//	Insert, Replace, Delete with any number of indexes   1
//	Replace, Delete of what was read through an index    2 (it is compared with the entity's own row first)
//	Merge                                                2 (what the copies hold follows from the whole entity)
//	Get, by index key                                    1
//	Range, Query                                         1 for each page of at most 1,000
//	GetFull, through an index with Options.Project       2
//
// # Limits
//
// All rows of an entity go into one transaction of at most 100 operations and 4 MiB: at most 99 copies. A copy whose
// index key changes costs one delete and one insert, so that only 49 can all change at once. Each copy has the
// limits of an entity and 4 properties of the library's among its 252. An entity and its copies share the partition's
// target of 2,000 entities a second, so a write with three indexes counts as four.
//
// # When not to use it
//
// When an index must find entities in any partition: interpartition. When many entities share an index key and only
// their keys are wanted: indexentities.
package intrapartition
