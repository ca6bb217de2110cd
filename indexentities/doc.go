// Package indexentities stores, for each value of a property that many entities share, the list of these entities' keys: the
// guide's "Index Entities Pattern". Its three constructors are the guide's three options for where the lists are stored:
//
//	NewInBlobs      option 1: a blob for each value, written by intents
//	NewInPartition  option 2: rows in the entities' own partition, written by the entity group transaction
//	NewInTable      option 3: rows in other partitions or another table, written by intents
//
// All three are declared and read in the same way. The value function returns one value of an entity, several values, or the
// zero compoundkey.Part if the entity is in no list.
//
// # Stored lists
//
// Employees 000152 and 000223 of department Sales, both named Jones, with an index "lastname":
//
//	option  PartitionKey    RowKey          properties
//	2       Sales           lastname_Jones  Count=2 Keys="empid_000152\nempid_000223"               _tpShared=lastname _tpWrite
//	3       lastname_Sales  Jones           Count=2 Keys="Sales\tempid_000152\nSales\tempid_000223" _tpShared=lastname _tpWrite
//	1       blob lastname/Sales/Jones       Sales\tempid_000152\nSales\tempid_000223\n              metadata tpcount=2
//
// Keys are sorted in the service's order. Options 1 and 3 are shown with Options.ByPartition: a list's name contains the index's
// name and the group. Without groups it contains only the index's name, as in blob lastname/Jones. compoundkey encodes values and
// groups.
//
// A property holds at most 30,000 UTF-16 units (the service allows 32,768); further keys are in the properties Keys1 to Keys14.
// A row with 15 such properties has 900,000 of the 1,048,576 bytes that the service allows. A longer list continues in rows
// "Jones!0001", "Jones!0002" and so on. One range query finds all of them and no row of another value, because compoundkey
// never writes '!' before a digit. A new key goes into the first row with room. A row or blob without keys is deleted. If a part
// of a blob's name would be empty or end with a dot, '!' is appended to it.
//
// # Guarantee
//
// NewInPartition: lists and entities of a partition never differ. Each write of an entity also writes the rows to
// which it adds its key or from which it removes it, under the ETags with which it read them. If a concurrent writer has
// changed such a row, the library reads it again and repeats the change, at most Schema.MaxAttempts times (default 10). Then
// the change returns tables.ErrConflict, with the index's name in Error.Pattern, and has written nothing. Ten attempts are
// enough for about ten concurrent writers of one value; for n writers set 2 n.
//
// NewInTable and NewInBlobs: after each change of an entity its lists converge to it, even if a process
// crashes, a message is delivered twice, or other writers change the lists at the same time; package eventual
// describes the protocol. Until then a list may name an entity that no longer has the value, or lack an
// entity that has it. This lasts some milliseconds without Async, after a crash of the writer the queue's
// visibility timeout (default 1 minute), and with Async until a worker gets the message. A change that
// changes no value writes no list.
//
// Find reads the entities and skips those that were deleted or have another value by now, so each entity that it yields has the
// value. With NewInTable and NewInBlobs it can miss an entity that is not in the list yet.
//
// # Crashes
//
// NewInPartition: a crash leaves nothing to repair, since the service applies all of a transaction or none. NewInTable and
// NewInBlobs: a crash leaves an intent on the queue, which a worker carries out. If programs without the index change
// entities, Repository.Verify finds the wrong lists and Repair corrects them; in the partition, the entity's next write also
// adds its missing key. If you add an index to a table with data, an entity gets into its lists with its next write
// (NewInPartition), with the next change of its value (the others), or by Repository.Rebuild.
//
// # Requests
//
//	                          NewInPartition                   NewInTable, NewInBlobs
//	Insert, Delete            1 transaction, 1 for each value  1 transaction, 2 of the queue, 2 for each value, 1 to read again
//	Replace, same values      1 transaction, 1 for each value  1 transaction
//	Replace, a value changes  1 transaction, 2 for the value   1 transaction, 2 of the queue, 4 for the value, 1 to read again
//	Merge                     1 more                           1 more
//	with Async                                                 1 transaction, 2 of the queue; a worker does the rest
//	Keys                      1                                1
//	Find                      1, and 1 for each key, 8 in parallel   the same
//	Page                      1, and 1 for each key of the page, 8 in parallel
//	Values                    1 for each page of 1,000 rows    the same; 1 for each 5,000 blobs
//	each conflict in a list   2 more                           2 more
//
// A list of several rows is read with 1 request, unless the service splits the response into pages.
//
// # When not to use it
//
// If you need the entities' properties and not only their keys, use intrapartition or interpartition with the entity's id at the
// end of the index key: one request reads a thousand copies.
//
// NewInPartition is for lists of up to some thousand keys, because each write of an entity reads the lists of all its
// values, and rewrites the rows whose keys change. Concurrent writers of one value conflict. A change that rewrites
// more than 99 rows of lists or 4 MiB returns tables.ErrTooLarge. A transaction of several entities of one value
// writes its list once. For longer lists, or if the entities of a value are in many partitions, use NewInTable: only
// a change of the value writes its list. If lists have more than about 25,000 keys, which fill a row, use NewInBlobs:
// one request reads a list of any length, but each change writes the whole blob.
package indexentities
