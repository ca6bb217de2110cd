// Package interpartition stores copies of an entity in other partitions or in another table, so that the entity can be found
// by other properties without knowing its partition: the guide's "Inter-partition secondary index pattern".
//
// # Stored rows
//
// An employee of department Sales with an index "email" that is divided by partition (Options.ByPartition) and
// unique (NewUnique) is one row in its own partition and one in the index's partition:
//
//	PartitionKey  RowKey              properties
//	Sales         empid_000223        FirstName LastName Age Email  _tpIncarnation _tpWrite _tpCopies
//	email_Sales   jonesj@contoso.com  FirstName LastName Age Email  _tpIncarnation _tpWrite _tpCopies _tpPartition=Sales _tpPrimary=empid_000223 _tpVersion=W/"..."
//
// The row key of a copy is the index key. In an Index, which is not unique, the entity's partition key and row key follow as two
// String parts: jonesj@contoso.com!_Sales!_empid^1000223. The partition key is the index's name and, in an index with groups,
// the group; an index without groups has one partition, "email". With Options.Spread a number of two digits follows, such as
// email_Sales!_07: the 64-bit FNV-1a hash of the index key as text, its upper half XORed to its lower half, modulo Spread. compoundkey encodes all of them.
// Options.Table puts these rows into another table. A copy contains all of the entity's properties, or those that Options.Project
// names. _tpPartition and _tpPrimary are the entity's own key, and _tpVersion is the ETag of the entity's row from which
// the copy was made; a projection has none.
//
// While an entity is changed, those of its copies that the change makes wrong are marked: _tpMark is the ID of the change.
// A copy of a key that the change takes is inserted with the mark, without content; _tpAcquirer and _tpBase then say which change takes
// it, and from which version of the entity. If a transaction passes a key from one entity to another, _tpNext is
// the key of the second. What stands beside a mark may be old.
//
// # Guarantee
//
// A read through the index is never stale: it finds the entities that have the key at that moment, with the properties that they have.
// The library marks the copies of an entity before it writes the entity, and settles them afterwards, each under its ETag. A read follows a
// marked copy to the entity, and a query evaluates its conditions on that. So a read is right whatever other processes
// do, and wherever they die. What is read through an index with all properties has the entity's own ETag.
//
// In a Unique, a key belongs to one entity of its group: a write that needs another entity's key is refused with
// tables.ErrDuplicate, and writes nothing. One transaction can pass a key from one entity to another, or exchange two.
//
// All processes that write the entities must know the index. Schema.OtherBuilds is for a deployment in which some do not yet, and Repository.Rebuild
// fills an index that is new.
//
// # Crashes
//
// There is no queue and no worker. A process that dies leaves copies that are marked, which costs their readers one request
// more, and nothing that is wrong. The next change of the entity settles them. Besides, a copy that is marked for longer
// than any change can take, 35 seconds, is settled by a read that has followed it (unless StoreOptions.ReadOnly is set), by Repository.Repair,
// and by the process itself if it lives. Until then, a key that a dead process was about to take is refused to other entities, and an insert
// of the same entity with ErrConflict.
//
// A change must send its transaction within 25 seconds after it began to mark; otherwise it fails with ErrUnavailable and writes nothing.
//
// # Requests
//
//	Insert, Replace, Delete    1 transaction; to mark and to settle, 2 for each partition of an index whose copies change
//	Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional   1 more, to read first
//	Merge, Delete of an entity read through a projection   1 more, to compare it with the entity's own row
//	a key that another entity has had lately, or that passes   1 more to read the copy, and 1 for each entity that it names
//	Get, All                   1 for each page of at most 1,000
//	GetFull                    2
//	Range, Query               1 for each page of at most 1,000; with Options.Spread, Range 1 for each page of each partition
//	a marked copy that is read 1 more, and 1 more again if no entity has the key
//
// Partitions of indexes are written at the same time, and the copies are settled in the background (StoreOptions.MaxOpen). So a change of one
// entity or of a set of 50, with one index or with several, waits for two requests, one after the other. A change that keeps the key and
// the properties of a projection writes 1 request.
//
// # Limits
//
// A copy is one row, with the limits of an entity; the library's own properties are at most 9 of its 252. An entity that
// widentities stores in several rows needs Options.Project. Each change of an entity writes one row of each of its indexes'
// partitions twice. The service's target is 2,000 rows a second for a partition, so an index without groups takes at most 1,000 changes a second, and
// Options.Spread multiplies that.
//
// # When not to use it
//
// If readers know the entities' partition, use intrapartition, whose copies are written with the entity, without a further request.
package interpartition
