// Package interpartition keeps copies of an entity in other partitions or in another table, so that it can be found by
// other properties wherever it is: the guide's "Inter-partition secondary index pattern".
//
// # Stored rows
//
// An employee of department Sales with an index "email" is a row in its own partition, and two in the index's:
//
//	PartitionKey  RowKey              properties
//	Sales         empid_000223        FirstName LastName Age Email  _tpIncarnation _tpWrite
//	email_Sales   jonesj@contoso.com  FirstName LastName Age Email  _tpIncarnation _tpWrite _tpPartition=Sales _tpPrimary=empid_000223 _tpVersion=W/"..."
//	email_Sales   U+FFFC MFRGG...     _tpWrite _tpPartition=Sales _tpPrimary=empid_000223 _tpClaim=jonesj@contoso.com
//
// The partition key of a copy is the index's name and the group, the row key the index key, both as compoundkey writes
// them. The group is the entity's partition, what Options.Group returns, or Organisation: then the partition key is the name alone.
// Options.Table puts the same rows into another table. A copy holds all of the entity's properties, or those that Options.Project names;
// _tpPartition and _tpPrimary are the entity's own key, _tpVersion the ETag of the row that the copy was made of.
//
// The third row is the copy's claim: it says whose the copy is, and is named by a hash of the copy's row key and the
// entity's key. Copy and claim are always written in one transaction, which the service refuses when the claim is
// not there: so a write that comes late cannot touch a copy that has become another entity's. Claims sort behind all copies.
//
// # Guarantee
//
// After every change of an entity the index agrees with it sooner or later, whatever crashes, is repeated, or comes in
// between; package eventual says how. A read through the index can be stale meanwhile:
// it may find an entity as it was before, under a key that it had before, or not yet under its new key. With a plain queue
// as the runner, that is the time from the transaction to the copy's write, some milliseconds; after a crash of the
// writer it is the queue's visibility timeout, and until a worker comes to it. With the queue's Async it is until a
// worker comes to it: milliseconds for a busy one or one in the same process, up to its MaxPoll for one that was idle. A
// read through Verified is never stale, though it does not find what was not entered yet.
//
// An index key belongs to one entity of its group. Without Options.Unique, a second entity that takes the key is written, does not
// appear in the index, and its intent ends on the poison queue, with the owner's key as the reason; requeue it when the
// conflict is resolved. With Unique its write is refused with tables.ErrDuplicate.
//
// # Crashes
//
// The intent message is put before anything is written, so a crash at any point leaves it on the queue. It appears when its
// visibility timeout is over, and a worker makes the keys that it names agree with the entity as it is then: after a crash
// before the transaction that removes reserved keys, after it that enters and removes copies. Copies that programs without
// the index leave behind are found by a check only.
//
// # Requests
//
//	Insert, Delete             1 transaction, 2 of the queue, 1 for each copy, 1 to read again
//	Replace                    the same; a copy whose key changes counts as two
//	Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional   1 more, to read first
//	the same with Unique       1 more for each new key, 2 more for each that goes
//	the same with Async        1 transaction, 2 of the queue, what is read first and reserved; the rest is the worker's
//	a worker, for a message    1 to get up to 32, 2 to read, 1 for each copy that stays or goes, 2 for a new one, 1 to delete; with Unique 3 for one that goes
//	Replace, Delete of what was read through an index   1 more (it is compared with the entity's own row first)
//	Get                        1
//	Range, Query               1 for each page of at most 1,000
//	GetFull, Verified.Get      2
//	Verified.Range             1 for each page and 1 for each entity
//
// # Limits
//
// A copy is one row, with the limits of an entity and 6 properties of the library's among its 252; an entity that is spread
// over rows needs Options.Project. Each write of an entity is a write of two rows in each of its indexes' partitions, whose target is
// 2,000 rows a second: one partition for the organisation takes at most 1,000 changes a second. Patterns with effects outside
// of the partition cannot be staged in a transaction of the caller's.
//
// # When not to use it
//
// When the entities to find are in one partition: intrapartition, which is never stale and costs no further request. When
// many entities share an index key and only their keys are wanted: indexentities.
package interpartition
