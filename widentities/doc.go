// Package widentities keeps entities that are too large for one row: more than 252 properties, values over 64 KiB, or more
// than 1 MiB. It is the wide entities pattern of the guide.
//
//	wide := widentities.New(&widentities.Options{FirstRow: []string{"Email"}})
//	profiles, err := patterns.NewRepository(table, schema, wide, byEmail)
//
// Everything else is as with any repository: the entity has one ETag, and every index that is attached keeps whole copies.
//
// # Stored rows
//
// An entity that has room in one row (244 properties, 1 MiB less 32 KiB, 64 KiB a value) is stored as it is, as without this
// package. A larger one is stored as
//
//	empid_000223           the properties of FirstRow; _tpLayout: the directory
//	empid_000223 U+FFFB U+FFFB 01 Pack00, Pack01 ...: records of the other properties, in the order of their names
//	empid_000223 U+FFFB U+FFFB 02 and so on
//
// A record is name, colon, letter of the type, number of bytes, colon, value, such as LastName:s5:Jones. A further row holds up
// to 15 pieces of 64 KiB, mostly an eighth of the entity; a record larger than that goes on in the next. The directory names each further row's first
// property and the digest of what the row holds. Copies of an index are spread in the same way. Every row has the service's
// own properties, and those of package patterns; docs/reference/storage-format.md has them all.
//
// # Guarantee
//
// All rows are written in one entity group transaction, so that an entity is there whole or not at all, and its ETag guards all
// of them. A read compares each further row with the directory and reads again when a write has come between: it never returns
// parts of two versions. Rows that a smaller entity does not need any more are removed in the same transaction.
//
// # Crashes
//
// A transaction is applied whole or not at all: nothing is left to repair.
//
// # Requests
//
//	Get                          1 for an entity in one row, else 2, and 1 for each further 1,000 rows or 5 seconds of the answer
//	Insert, Replace, Delete      1
//	Merge                        what Get takes, and 1; it writes the first row and the further rows that change, mostly one
//	Query                        1 more for each entity that is spread over rows
//	Select of FirstRow           none more
//	Select of others             1 more: only the rows that hold them are read
//
// # Limits
//
// One transaction: 100 rows with all copies, and 4 MiB as sent; 4.18 million ASCII characters of text without copies, or
// 3.1 million bytes of binary values, which are sent in base64. What is larger is tables.ErrTooLarge before any request. Copies in other
// partitions (interpartition) are one row always: keep few properties in them.
//
// # When not to use it
//
// When the size comes of a few large values: largeentities keeps them in blobs. When conditions on many properties are needed:
// only those of FirstRow can have them. For a series of numbers dataseries is smaller.
package widentities
