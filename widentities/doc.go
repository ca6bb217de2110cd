// Package widentities stores entities that are too large for one row: more than 250 properties, texts over
// 32,768 UTF-16 units, binary values over 64 KiB, or more than 1 MiB. It is the guide's "Wide entities pattern".
//
//	wide := widentities.New[Profile](&widentities.Options{FirstRow: []string{"Email"}})
//	profiles, err := patterns.NewRepository(table, schema, wide, byEmail)
//
// The repository works like any other: the entity has one ETag, and each index stores complete copies.
//
// # Stored rows
//
// An entity that fits into one row (244 properties, 1 MiB less 32 KiB, a text of 32,768 UTF-16 units, a binary value of
// 64 KiB) is stored as without this package. A larger entity is stored as
//
//	empid_000223           the properties of FirstRow; _tpLayout: the directory
//	empid_000223 U+FFFB U+FFFB 01 Pack00, Pack01 ...: records of the other properties, in the order of their names
//	empid_000223 U+FFFB U+FFFB 02 and so on
//
// A record consists of name, colon, letter of the type, number of bytes, colon and value, such as LastName:s5:Jones. A further
// row has at most 15 properties of 64 KiB and usually an eighth of the entity; a record that does not fit continues in the next
// row. The directory contains, for each further row, the name of its first property and a digest of its records. Copies of an
// index are stored in the same way. docs/reference/storage-format.md lists the library's own properties of each row.
//
// # Guarantee
//
// One entity group transaction writes all rows of an entity, under one ETag, so an entity is stored
// completely or not at all. A read compares each further row with its digest in the directory. If a
// concurrent write has changed rows between the requests of the read, the library reads all rows again, so a
// read never returns parts of two versions. The transaction that makes an entity smaller also deletes the
// rows that it no longer needs.
//
// # Crashes
//
// The service applies all of a transaction or none, so a crash leaves nothing to repair.
//
// # Requests
//
//	Get                          1 for an entity in one row, else 2, and 1 for each further 1,000 rows or 5 seconds of the response
//	Insert, Replace, Delete      1
//	Merge                        those of Get, and 1; it writes the first row and the further rows that change, usually one
//	Query                        1 more for each entity in several rows
//	Select of FirstRow           none more
//	Select of others             1 more if the rows that hold them are adjacent, else 1 for each of these rows
//
// # Limits
//
// One transaction: 100 rows with all copies, and 4 MiB as sent. Without copies that is 4.18 million ASCII
// characters of text, or 3.1 million bytes of binary values, which are sent in base64. For a larger entity a
// write returns tables.ErrTooLarge before any request. A copy in another partition (interpartition) is always
// one row: give that index few properties with its Options.Project.
//
// # When not to use it
//
// If a few large values make the entity large: largeentities stores them in blobs. If you need conditions on
// many properties: only properties in FirstRow can be used in conditions. For a series of numbers: dataseries
// is smaller.
package widentities
