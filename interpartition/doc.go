// Package interpartition stores copies of an entity in other partitions or in another table, so that the entity can be found
// by other properties without knowing its partition: the guide's "Inter-partition secondary index pattern".
//
// # Stored rows
//
// An employee of department Sales with an index "email" that is divided by partition (Options.ByPartition) is one row in its
// own partition and two in the index's partition:
//
//	PartitionKey  RowKey              properties
//	Sales         empid_000223        FirstName LastName Age Email  _tpIncarnation _tpWrite
//	email_Sales   jonesj@contoso.com  FirstName LastName Age Email  _tpIncarnation _tpWrite _tpPartition=Sales _tpPrimary=empid_000223 _tpVersion=W/"..."
//	email_Sales   U+FFFC MFRGG...     _tpWrite _tpPartition=Sales _tpPrimary=empid_000223 _tpClaim=jonesj@contoso.com
//
// The row key of a copy is the index key. Its partition key is the index's name and, in an index with groups, the
// group; an index without groups has one partition, "email". compoundkey encodes both. Options.Table puts these rows
// into another table. A copy contains all of the entity's properties, or those that Options.Project names.
// _tpPartition and _tpPrimary are the entity's own key, and _tpVersion is the ETag of the entity's row from which the
// copy was made.
//
// The third row is the copy's claim: it names the entity to which the copy belongs. Its row key is a hash of
// the copy's row key and the entity's key. The library writes a copy and its claim in one transaction, which
// the service refuses if the claim does not exist. So a delayed write cannot change a copy that meanwhile
// belongs to another entity. Claims sort after all copies.
//
// # Guarantee
//
// After each change of an entity the index converges to it, even if a process crashes, a message is delivered
// twice, or other writers change the entity at the same time; package eventual describes the protocol. Until
// then a read through the index can be stale: it may return an entity as it was before, under a key that it
// had before, or not find it under its new key. An index entry is stale for
//
//   - some milliseconds, from the transaction to the write of the copy, without Async;
//   - the queue's visibility timeout (default 1 minute) and the time until a worker gets the message, if the writer crashes;
//   - until a worker gets the message, with Async: milliseconds if a worker is busy or runs in the same process,
//     and up to WorkerOptions.MaxPoll if all workers are idle.
//
// A read through Verified never returns a stale entity, but it does not find an entity that is not in the index yet.
//
// An index key belongs to one entity of its group. Without Options.Unique, a second entity with the same key is written but
// does not appear in the index, and its intent ends on the poison queue with the owner's key in the reason; requeue it when
// the owner has released the key. With Unique the write is refused with tables.ErrDuplicate.
//
// # Crashes
//
// The writer puts the intent message on the queue before it writes anything, so after a crash at any point
// the message still exists. When its visibility timeout is over, a worker reads the entity and reconciles the
// keys that the message names: it releases the reservations of a change that was not committed, and writes
// and removes the copies of a change that was committed. A program without the index leaves orphaned copies
// behind, which only Repository.Verify finds.
//
// # Requests
//
//	Insert, Delete             1 transaction, 2 of the queue, 1 for each copy, 1 to read again
//	Replace                    the same; a copy whose key changes counts as two
//	Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional   1 more, to read first
//	the same with Unique       1 more for each new key, 2 more for each removed key
//	the same with Async        1 transaction, 2 of the queue, the reads before the change, the reservations; a worker does the rest
//	a worker, for a message    1 to get up to 32, 2 to read, 1 for each copy that stays or is removed (with Unique 3 for a removed one), 2 for a new one, 1 to delete the message
//	Replace, Delete of an entity read through an index   1 more, to compare it with the entity's own row
//	Get                        1
//	Range, Query               1 for each page of at most 1,000
//	GetFull, Verified.Get      2
//	Verified.Range             1 for each page and 1 for each entity
//
// # Limits
//
// A copy is one row, with the limits of an entity; 5 of its 252 properties are the library's. An entity that widentities stores
// in several rows needs Options.Project. Each write of an entity writes two rows in each of its indexes' partitions. The
// service's target is 2,000 rows a second for a partition, so an index without groups takes at most 1,000 changes a second. A
// transaction of several entities has one intent for all of them; a Unique key cannot pass from one of them to another.
//
// # When not to use it
//
// If readers know the entities' partition, use intrapartition, which is never stale and costs no further request. If many
// entities share an index key and you need only their keys, use indexentities.
package interpartition
