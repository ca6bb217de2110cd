// Package intrapartition stores copies of an entity under other row keys of its partition, so that the entity can be found
// and sorted by other properties: the guide's "Intra-partition secondary index pattern".
//
// # Stored rows
//
// An employee of department Sales with an index "email" is two rows of one partition:
//
//	PartitionKey  RowKey                      properties
//	Sales         empid_000223                FirstName LastName Age Email  _tpIncarnation _tpCopies=email _tpWrite
//	Sales         email_jonesj@contoso.com    FirstName LastName Age Email  _tpIncarnation _tpCopies=email _tpWrite _tpPrimary=empid_000223
//
// The row key of a copy is the index's name, "_" and the index key, encoded by compoundkey; if several entities can have a
// key (NewIndex, NewMulti), the entity's row key follows as a String part: lastname_Jones!_empid^1000223. A copy contains all of the
// entity's properties, or those that Options.Project names. _tpPrimary is the row key of the entity's own row; _tpCopies
// lists the indexes whose copies were written with the entity.
//
// # Guarantee
//
// A reader never sees a copy that differs from its entity: each write of the repository writes all rows of the entity in
// one entity group transaction. A key of a Unique belongs to at most one entity. A write that needs another
// entity's key returns tables.ErrDuplicate, which names the index, and writes nothing. An entity without a key, such as one
// whose key is the empty string, has no copy.
//
// # Crashes
//
// The service applies all of a transaction or none, so a crash leaves nothing to repair. If another program
// has written or deleted rows without this index, the entity's next write corrects them: it writes a missing
// copy, and it does not fail if a copy that it must remove does not exist. A program without the index also
// leaves orphaned copies. If an orphaned copy occupies a key that a write needs, the library reads the copy's
// owner and claims the copy. If you add an index to a table with data, each entity gets its copy with its
// next write, or by Repository.Rebuild.
//
// # Requests
//
//	Insert, Replace, Delete with any number of indexes   1
//	Replace, Delete of an entity read through an index   2 (1 to compare it with the entity's own row)
//	Merge                                                2 (1 to read the entity, from which the copies are made)
//	Get, by index key                                    1
//	All, Range, Query                                    1 for each page of at most 1,000
//	GetFull, through an index with Options.Project       2
//
// # Limits
//
// One transaction of at most 100 operations and 4 MiB writes all rows of an entity: at most 99 copies. A copy whose index
// key changes takes one delete and one insert, so at most 49 copies can change their keys in one write. Each copy has the
// limits of an entity; 4 of its 252 properties are the library's. The service's target for a partition is 2,000 rows a
// second, and a write with three indexes counts as four rows.
//
// # When not to use it
//
// If an index must find entities in any partition, use interpartition. If many entities share a key and you need only
// their keys, use indexentities.
package intrapartition
