// Package logtail stores entries so that the newest of a partition come first, and follows a partition as entries
// arrive: the guide's "Log tail pattern".
//
// # Stored rows
//
// An expense claim of employee 000223, made at 2014-08-22T00:50:32Z:
//
//	PartitionKey  RowKey                                              properties
//	000223        log_2519936321679999999_7ZQ3GTLDVYMV5W2KHJ5T6XKX4E  LoggedAt=2014-08-22T00:50:32Z LogID=7ZQ3... Amount ...
//
// The row key is a prefix, the guide's "inverted ticks" (19 digits: 3155378975999999999 minus the number of 100 ns
// ticks since 0001-01-01 UTC), and the entry's id, which distinguishes entries of the same tick. The package stores no
// other rows. A patterns.Repository stores the entries; Repository returns it, so that you can attach indexes and other
// patterns. The prefix separates the entries from the rows of indexes.
//
// # Guarantee
//
// An entry gets its time and id from its first Stamp or Append, and keeps them. If you repeat an Append with the same
// value, or with one that was stamped, saved and read again by another process, it never makes a second entry. The
// stamps of one Log increase, also within one tick, unless its clock is set back by a second or more.
//
// Latest and Between return entries in the order of their keys, newest first, and check that order. New refuses a table
// of Azure Cosmos DB, whose queries have no order.
//
// A Follower yields each entry once, oldest first, and continues from its Cursor in another process. An entry
// can become visible after newer ones if a slower clock stamped it or its request was delayed. To limit this
// delay, Append sends an entry within half of Schema.Window of its time by the writer's clock, or returns
// ErrOutsideWindow. The other half covers the differences between clocks, and requests that are already on
// their way: the service gives up a request after 30 s, which is half of the default Window. At each Poll, a
// Follower reads the last Window again and skips the entries that it has yielded. So it misses nothing as
// long as clocks differ by less than half of Window, minus the time that the service takes to serve a request
// after the writer gave up on it. An entry that is written with an older time by other means, such as an
// import through the repository, is missed by followers that have passed that time; Latest and Between return
// it.
//
// An entry that arrives late is yielded after newer ones, at the next Poll. A changed entry is not yielded again.
//
// # Crashes
//
// An entry and the rows of its indexes are written in one transaction, completely or not at all. After
// ErrUnknownOutcome, or if the process died, Append the same stamped value again: it returns nil if the entry
// exists. After a crash, a follower that continues from a saved Cursor yields again the entries that
// were yielded after the Cursor was saved.
//
// # Requests
//
//	Append                            1
//	Append of an entry that exists    2
//	Latest of up to 1,000             1, whatever the size of the partition
//	Between                           1 for each page of at most 1,000
//	Poll                              1 for up to 1,000 entries since the start of the window
//	Poll of more                      2 for each 1,000: first the keys, then the entries from the oldest on
//	Stamp, Cursor, New, Follower      0
//
// Azure may cut a response short, which costs one more request. Each Poll reads the entries of the window again, until
// no new entry has arrived for the length of the window.
//
// # When not to use it
//
// All new entries of a partition go to one partition server, which accepts about 2,000 a second: use a
// partition for each user or device, and not one partition for all. To delete old entries by dropping tables,
// use highvolumedelete. Followers read oldest first; if you only read in that order, use keys made by
// compoundkey.Time instead. A cursor has about 20 characters for each entry in the window: with hundreds of
// entries a second, choose a shorter window.
package logtail
