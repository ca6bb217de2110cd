// Package indexentities keeps, for each value of a property that many entities share, the list of their keys: the guide's
// "Index entities pattern", with its three places for the lists.
//
//	NewInBlobs      option 1: a blob for each value, kept by intents
//	NewInPartition  option 2: rows in the entities' own partition, kept by the entity group transaction
//	NewInTable      option 3: rows in other partitions or another table, kept by intents
//
// All three are declared and read alike. The value function returns one value of an entity or several,
// or the zero compoundkey.Part for none.
//
// # Stored lists
//
// Employees 000152 and 000223 of department Sales, both named Jones, with an index "lastname":
//
//	in     PartitionKey    RowKey          properties
//	2      Sales           lastname_Jones  Count=2 Keys="empid_000152\nempid_000223"               _tpShared=lastname _tpWrite
//	3      lastname_Sales  Jones           Count=2 Keys="Sales\tempid_000152\nSales\tempid_000223" _tpShared=lastname _tpWrite
//	1      blob lastname/Sales/Jones       Sales\tempid_000152\nSales\tempid_000223\n              metadata tpcount=2
//
// Keys are sorted, as the service sorts them. In a partition of its own a list is named by the index and the group, which is
// the entity's partition, what Options.Group returns, or Organisation: then by the index alone. Values, and groups, are written
// as compoundkey writes them.
//
// A property holds at most 30,000 UTF-16 units (the service takes 32,768), and further ones, Keys1 to Keys14, what goes beyond.
// A row of 15 such properties takes 900,000 of its 1,048,576 bytes. A list that goes beyond goes on in rows "Jones!0001",
// "Jones!0002" and so on, which one range query finds, and which no other value's rows come between: compoundkey writes
// no '!' before a digit. A key that is added goes into the first row with room. A row, or blob, whose last key leaves is
// deleted. No part of a blob's name is empty or ends with a dot: a '!' follows it then.
//
// # Guarantee
//
// In the partition a list and its entities are never seen to differ: each write of an entity also writes the rows that hold
// its key, or hold it no longer, under the ETags that it has read them with. A rival who changed one meanwhile makes the
// change start over, at most Schema.MaxAttempts times; then it is tables.ErrConflict with the index's name in
// Error.Pattern, and nothing was written. The default of 10 lasts for some ten writers of one value at a time; for n of
// them, set 2 n.
//
// Outside, after every change of an entity its lists agree with it sooner or later, whatever crashes, is repeated or comes
// between; package eventual says how. Meanwhile a list may name an entity that has the value no longer, or not yet name
// one that has it: for some milliseconds with a plain queue as the runner, for the queue's visibility timeout after a
// crash of the writer, and until a worker comes to it with the queue's Async. What changes no value writes no list.
//
// Find reads the entities themselves, and leaves out those that are gone or have another value by now, so what it yields has
// the value in all three. Outside, it can miss one that was not entered yet.
//
// # Crashes
//
// In the partition a crash leaves nothing behind: a transaction is applied whole or not at all. Outside it leaves an intent on
// the queue, which a worker carries out. What programs without the index write is found, and mended, by a check of the
// repository; in the partition a missing key is entered with the entity's next write, too. An index that is attached to a
// table with data holds an entity from that write on; outside, from the next change of its value on, or a rebuild.
//
// # Requests
//
//	                          in the partition                 outside, and in blobs
//	Insert, Delete            1 transaction, 1 for each value  1 transaction, 2 of the queue, 2 for each value, 1 to read again
//	Replace, same values      1 transaction, 1 for each value  1 transaction
//	Replace, a value changes  1 transaction, 2 for the value   1 transaction, 2 of the queue, 4 for the value, 1 to read again
//	Merge                     1 more                           1 more
//	with Async                                                 1 transaction, 2 of the queue; the rest is the worker's
//	Keys                      1                                1
//	Find                      1, and 1 for each key, 8 at once the same
//	Page                      1, and 1 for each key of the page, 8 at once
//	Values                    1 for each page of 1,000 rows    the same; 1 for each 5,000 blobs
//	a rival for a list        2 more                           2 more
//
// A list of several rows is still read with 1 request, while the service answers it in one page.
//
// # When not to use it
//
// In the partition each write of an entity reads the lists of its values, and writes those that it enters or leaves, whole
// rows of them. That is cheap while lists are short, and up to some thousand keys; it makes the entities of one value rivals of each other; and a change of
// values that rewrites more than 100 rows or 4 MiB is tables.ErrTooLarge. Two entities of one value cannot be staged in
// one transaction. From there on, or where the entities of a value are in many partitions, use NewInTable: only a change of
// the value writes its list, and writers do not wait for each other. Where lists grow beyond some 25,000 keys, a row's worth,
// use NewInBlobs: one request reads a list of any length. But it writes the whole blob with each change of it.
//
// When the entities' properties are wanted, and not their keys only, copies are read with one request for a thousand:
// intrapartition and interpartition, with the entity's id at the end of the index key.
package indexentities
