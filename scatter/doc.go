// Package scatter spreads entities with rising keys over n partitions, so that no partition gets all the writes: the answer to the
// guide's "Prepend/append anti-pattern". See the Example.
//
//	PartitionKey     RowKey                          properties
//	event_007        event_0635443206000000000_a17   User Resource ...  _tpIncarnation _tpWrite
//	scatter_event    epochs                          Version=1 Order=time Horizon=635443206600000000 Epochs="0 8"
//
// The partition of an entity is Schema.Name, "_" and [Bucket] of its row key, and never changes: a row key is unique, a point read
// queries one partition, and [Spread.Range] merges queries of as many partitions as the largest n of the range.
//
// # How n changes
//
// The record (scatter_event) stores n for all row keys below the horizon, a position in the order of row keys; that part never changes.
// Each line of Epochs holds a position (the number in a row key, or its time in ticks of 100 ns) and the n from there on. A program that
// writes at or above the horizon first moves it up, under the record's ETag. [Spread.Resize] adds a line at the horizon. An old version
// of the record is still correct below its horizon, and above it programs read the record again: no clocks are compared, no program waits
// for another, and no entity moves.
//
// With [ByTime] a new n applies at most a minute later if clocks are synchronized, and up to Options.Ahead later if an entity has a time
// that far in the future. With [ByNumber] it applies above the horizon.
//
// A crash leaves at most a horizon without entities, which needs no repair. Do not delete the record while there are entities: without it
// they cannot be found. To start again, drop the whole table and open a new Spread.
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
// n is 1,000 at most, and changes 999 times at most. Each partition of a Range holds up to 3 pages in memory; Range is not a snapshot. A
// [Meter] shows which n is enough: the service's target is 2,000 entities a second for a partition, and 20,000 for an account.
// Transactions and indexes within the partition cover only one of the n partitions.
//
// Use a Repository alone if the writes stay well below 2,000 a second, or if keys do not rise (with Bucket of the ID in Schema.Key and a
// fixed n). Use [Natural], which needs no record, if most reads name a natural key. Use package logdata if rows are only appended and
// read in bulk. On Cosmos DB for Table, Range is refused.
package scatter
