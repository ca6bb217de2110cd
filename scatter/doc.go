// Package scatter spreads entities whose keys rise over n partitions, so that no partition takes all the writes: the answer
// to the guide's "Prepend/append anti-pattern".
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
// key in UTF-8, as a big-endian number, modulo n, in three digits. The rows of n are one small row, the record. Other rows of an
// entity, such as an index's, are in its partition. [Natural] spreads by a natural key in place of a hash, as the guide does
// (department and employee id), and has no record.
//
// # How n changes
//
// The record says for each row key below the horizon over how many partitions it is spread, and what it says of them never
// changes. A line of Epochs is a position and the n from there on; a position is what a row key begins with, in ticks of
// 100 ns or as a number. A program that writes an entity at the horizon or behind it first moves the horizon, under the
// record's ETag: to the end of the minute, say ([ByTime]). [Spread.Resize] adds a line at the horizon, so that the new n
// holds from there on.
//
// So a program that has an old record is harmless: all that it says is still so, and what it does not say the program has to
// look up. No clocks are compared, nobody waits for others to look again, and no entity ever moves.
//
// # Guarantee
//
// A row key has one partition for ever, for all programs. That forbids two entities of one row key: an insert by a program
// with the old record and one by a program with the new one go to the same place, and the service refuses the second
// (tables.ErrExists). A change meets the entity where it is. A point read asks one partition, not one for each n there ever was.
//
// [Spread.Range] yields every entity that was inserted before it began, and not deleted, once and in the order of row keys:
// it reads the record unless it knows it as far as the range goes, and merges queries of as many partitions as the largest n
// of the range. What is inserted while it runs may be in it. As with every query, it is no snapshot.
//
// A new n begins behind the horizon: with ByTime a minute later at most, if clocks agree, and up to Options.Ahead more if
// an entity has a time that far in the future. Entities further ahead cannot move the horizon and are refused. With [ByNumber] an
// entity may jump, and the next n begins behind it.
//
// # Crashes
//
// The horizon moves before the entity is written, so a crash leaves a horizon without entities, which is nothing to repair.
// Each change of the record is one conditional write; after a lost answer the record is read again. The record must not be
// deleted while there are entities: without it there is nothing to find. Drop the whole table, and open a new Spread then.
//
// # Requests
//
//	Insert, Replace, Delete                 1, as the Repository's
//	Get                                     1
//	GetMany                                 1 for each row, and 1 for the record if some are behind the horizon that is known
//	Update, Upsert                          2
//	the first insert behind the horizon     2 more by the program that moves it (read, write), 1 by every other
//	the first read behind it                1 more
//	Range                                   1 for each partition and page, and 1 for the record unless it ends below the horizon
//	Range with Limit up to 1,000            1 for each partition, and 1 for the record
//	Resize, Sync                            2, 1
//
// A rival that writes the record at the same time costs 2 more.
//
// # Limits
//
// n is 1,000 at most, and each partition of a Range holds up to 3 pages in memory. The record holds 1,000 changes of n. A
// [Meter] tells what n is good for: the service's target is 2,000 entities a second for a partition, and 20,000 for an account,
// which no n changes. Transactions and indexes within the partition reach as far as one of the n partitions.
//
// # When not to use it
//
// Where the writes of one partition stay well below 2,000 a second: reading costs n requests in place of one. Where
// the keys do not rise, a random id for example: they have no horizon; a Repository with the id's Bucket in Schema.Key and an n for
// life does. Where there is a natural key that most reads name: Natural. Where rows are only appended and read in bulk: blobs
// (package logdata). On Cosmos DB for Table, whose queries come back in no order: Range is refused.
package scatter
