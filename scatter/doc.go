// Package scatter spreads entities with rising keys over n partitions, so that no partition gets all the
// writes. It avoids the guide's "Prepend/append anti-pattern".
//
// # Stored rows
//
// Events named by their time, over 8 partitions:
//
//	PartitionKey     RowKey                          properties
//	event_007        event_0635443206000000000_a17   User Resource ...  _tpIncarnation _tpWrite
//	event_002        event_0635443206010000000_b02   User Resource ...  _tpIncarnation _tpWrite
//	scatter_event    epochs                          Version=1 Order=time Horizon=635443206600000000 Epochs="0 8"
//
// The partition of an entity is Schema.Name, "_" and [Bucket] of its row key: the first 8 bytes of SHA-256 of the row
// key in UTF-8, as a big-endian number, modulo n, in three digits. The history of n is stored in one small row, the
// record. Other rows of an entity, such as an index's, are in its partition. [Natural] spreads by a natural key in
// place of a hash, as the guide does (department and employee id), and has no record.
//
// # How n changes
//
// The record stores n for all row keys below the horizon, a position in the order of row keys. That part
// never changes. Each line of Epochs holds a position and the n that applies from this position on. A
// position is the number in a row key, or the time in ticks of 100 ns. A program that writes an entity at or
// above the horizon first moves the horizon up, under the record's ETag: with [ByTime], to the end of the
// minute. [Spread.Resize] adds a line at the horizon, so the new n applies from the horizon on.
//
// So a program with an old version of the record does no harm: that version is still correct below its
// horizon, and for row keys above its horizon the program reads the record again. No clocks are compared, no
// program waits for another to reload, and no entity ever moves.
//
// # Guarantee
//
// A row key always has the same partition, in all programs. So a row key is unique: an insert by a program with the
// old record and one with the new record go to the same partition, and the service refuses the second
// (tables.ErrExists). A change finds the entity where it was inserted. A point read queries one partition, whatever
// values n has had.
//
// [Spread.Range] yields every entity that was inserted before it began, and not deleted, once and in the
// order of row keys: it merges queries of as many partitions as the largest n of the range. It first reads
// the record, unless the known horizon is above the range. Entities inserted while it runs may be included.
// As with every query, the result is not a snapshot.
//
// A new n applies from the horizon on: with ByTime at most a minute later if clocks are synchronized, and up to
// Options.Ahead later if an entity has a time that far in the future. Entities further ahead cannot move the horizon
// and are refused. With [ByNumber] an entity may have a far higher number, and the next n applies above it.
//
// # Crashes
//
// The horizon moves before the entity is written, so a crash leaves at most a horizon without entities, which needs
// no repair. Each change of the record is one conditional write; after a lost response the record is read again. Do
// not delete the record while there are entities: without it they cannot be found. To start again, drop the whole
// table and open a new Spread.
//
// # Requests
//
//	Insert, Replace, Delete                 1, as the Repository's
//	Get                                     1
//	GetMany                                 1 for each row, and 1 for the record if a row is at or above the known horizon
//	Update, Upsert                          2
//	the first insert above the horizon      2 more by the program that moves it (read, write), 1 by every other
//	the first read above the known horizon  1 more, of the record
//	Range                                   1 for each partition and page, and 1 for the record unless it ends below the horizon
//	Range with Limit up to 1,000            1 for each partition, and 1 for the record unless it ends below the horizon
//	Resize                                  2
//	Sync                                    1
//
// For each concurrent write of the record, 2 requests are added.
//
// # Limits
//
// n is 1,000 at most, and each partition of a Range holds up to 3 pages in memory. The record holds 1,000 values
// of n, so 999 changes. A [Meter] shows which n is enough: the service's target is 2,000 entities a second for a partition, and 20,000
// for an account, whatever n is. Transactions and indexes within the partition cover only one of the n partitions.
//
// # When not to use it
//
// If the writes stay well below 2,000 a second: reading would cost n requests instead of one. If the keys do not
// rise, such as random IDs: use a Repository with Bucket of the ID in Schema.Key and a fixed n. If most reads name a
// natural key: use Natural. If rows are only appended and read in bulk: use blobs (package logdata). On Cosmos DB for
// Table, whose queries return rows in no order: Range is refused.
package scatter
