// Package indexentities stores, for each value of a property that many entities share, the list of these entities' keys: the
// guide's "Index Entities Pattern". Its two constructors are two of the guide's three options for where the lists are stored:
//
//	NewInPartition  option 2: rows in the entities' own partition, written by the entity group transaction
//	NewInTable      option 3: rows in other partitions or another table, one for each value and entity
//
// Both are declared and read in the same way. NewMultiInPartition and NewMultiInTable are for entities with several values. An
// entity whose value is empty, such as the empty string, is in no list.
//
// The guide's option 1, a blob for each list, is left out: the writers of a blob contend for its ETag, and need a queue and a worker that the rows of
// NewInTable do without. A list of rows has no limit, and one request reads 1,000 keys of it.
//
// # Stored lists
//
// Employees 000152 and 000223 of department Sales, both named Jones, with an index "lastname":
//
//	option  PartitionKey    RowKey                            properties
//	2       Sales           lastname_Jones                    Count=2 Keys="empid_000152\nempid_000223" _tpShared=lastname _tpWrite
//	3       lastname_Sales  Jones!_Sales!_empid^1000152       _tpIncarnation _tpPartition=Sales _tpPrimary=empid_000152 _tpWrite
//	        lastname_Sales  Jones!_Sales!_empid^1000223       _tpIncarnation _tpPartition=Sales _tpPrimary=empid_000223 _tpWrite
//
// Option 3 is shown with Options.ByPartition: the partition key contains the index's name and the group. Without groups it is only the index's name.
// The row key is the value and the entity's own keys. compoundkey encodes all of them.
//
// Keys of option 2 are sorted in the service's order. A property holds at most 30,000 UTF-16 units (the service allows 32,768); further keys are in the
// properties Keys1 to Keys14. A row with 15 such properties has 900,000 of the 1,048,576 bytes that the service allows. A longer list continues in rows
// "Jones!0001", "Jones!0002" and so on. One range query finds all of them and no row of another value, since
// compoundkey never writes '!' before a digit. A new key goes into the first row with room. A
// row without keys is deleted.
//
// # Guarantee
//
// NewInPartition: lists and entities of a partition never differ. Each write of an entity also writes the rows to
// which it adds its key or from which it removes it, under the ETags with which it read them. If a concurrent writer has
// changed such a row, the library reads it again and repeats the change, at most Schema.MaxAttempts times (default 10). Then
// the change returns tables.ErrConflict, with the index's name in Error.Pattern, and has written nothing. Ten attempts are
// enough for about ten concurrent writers of one value; for n writers set 2 n.
//
// NewInTable: a read is never stale. A change marks the rows of the keys that it adds and removes before it writes the entity, and settles them
// afterwards; a read follows a marked row to the entity. Writers of one value do not meet. A change that changes no value writes no row.
//
// Find reads the entities and skips those that were deleted or have another value by now, so each entity that it yields has the
// value.
//
// # Crashes
//
// NewInPartition: a crash leaves nothing to repair, since the service applies all of a transaction or none. NewInTable: a crash leaves marked rows, which
// cost a read 1 request more until a read or Repository.Repair settles them. If programs without the index change
// entities, Repository.Verify finds the wrong lists and Repair corrects them; in the partition, the entity's next write also
// adds its missing key. If you add an index to a table with data, an entity gets into its lists with its next write
// (NewInPartition), with the next change of its value (NewInTable), or by Repository.Rebuild.
//
// # Requests
//
//	                          NewInPartition                   NewInTable
//	Insert, Delete            1 transaction, 1 for each value  3, one of them in the background
//	Replace, same values      1 transaction, 1 for each value  1
//	Replace, a value changes  1 transaction, 2 for the value   3, one of them in the background
//	Merge                     1 more                           1 more
//	Keys                      1                                1 for each 1,000 keys
//	Find                      1, and 1 for each key, 8 in parallel   the same
//	Page                      1, and 1 for each key of the page, 8 in parallel
//	Values                    1 for each page of 1,000 rows    1 for each 1,000 keys
//	each conflict in a list   2 more                           -
//	each marked row           -                                1 more for a read
//
// In NewInPartition, a list of several rows is read with 1 request, unless the service splits the response into pages. In NewInTable, all values of an
// entity are in one partition of the index, so their number does not matter.
//
// # When not to use it
//
// If you need the entities' properties and not only their keys, use an Index of intrapartition or interpartition: one request
// reads a thousand copies.
//
// NewInPartition is for lists of up to some thousand keys, because each write of an entity reads the lists of all its
// values, and rewrites the rows whose keys change. Concurrent writers of one value conflict. A change that rewrites
// more than 99 rows of lists or 4 MiB returns tables.ErrTooLarge. A transaction of several entities of one value
// writes its list once. For longer lists, or if the entities of a value are in many partitions, use NewInTable: value and entity's keys
// together have at most 510 UTF-16 units there, and Values reads a row for each key. If some values are tuples of more parts than others, Values may yield
// one of fewer parts several times, with a part of its Count each time.
package indexentities
