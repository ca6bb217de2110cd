// Package logtail stores entries so that the newest of a partition come first, and follows them as they come: the guide's
// "Log tail pattern".
//
// # Stored rows
//
// An expense claim of employee 000223, made at 2014-08-22T00:50:32Z:
//
//	PartitionKey  RowKey                                              properties
//	000223        log_2519936321679999999_7ZQ3GTLDVYMV5W2KHJ5T6XKX4E  LoggedAt=2014-08-22T00:50:32Z LogID=7ZQ3... Amount ...
//
// The row key is a prefix, the guide's "inverted ticks" (19 digits: 3155378975999999999 less the 100 ns since 0001-01-01 UTC), and the
// entry's id, by which two entries of one tick both live. The package keeps no other rows; the entries are kept by a
// patterns.Repository, which Repository hands back, so that indexes and other patterns can be attached to it. The prefix
// keeps the rows of indexes apart.
//
// # Guarantee
//
// An entry has its time and id from its first Stamp or Append on, and keeps them: whoever repeats an Append with the same value,
// or with one that was stamped, stored and read again by another process, never makes a second entry. What one Log stamps
// rises with every entry, also within one tick.
//
// Latest and Between are in the order of the keys, newest first, and checked to be. Where queries have no order, on Azure
// Cosmos DB, New is refused.
//
// A Follower yields each entry once, oldest first, and goes on from its Cursor in another process. The difficulty is entries
// that become visible behind newer ones: stamped by a slower clock, or held up on their way. Append is therefore bounded: an
// entry is sent within half of Schema.Window of its time by the writer's clock, or is ErrOutsideWindow. The other half is for
// what nobody can bound: the difference of clocks, and a request that is already on its way (the service itself gives up
// after 30 s; half of the default is as long). A Follower reads the last Window again with each Poll, and leaves out what it has
// yielded. So nothing is missed as long as clocks differ by less than half of Window, less the time that a request takes
// to be served after the writer gave up on it. What is written by other means, such as an import through the repository with
// older times, is missed by followers that have gone beyond it; Latest and Between see it.
//
// An entry that is yielded late comes behind newer ones, with the next Poll. A change of an entry is not yielded again.
//
// # Crashes
//
// An entry with the rows of its indexes is one transaction, applied whole or not at all. After ErrUnknownOutcome, or when the
// process died, Append of the same stamped value finds out: it returns nil for an entry that is there. A follower that dies
// goes on from the last Cursor it saved, and yields again what it had yielded since.
//
// # Requests
//
//	Append                            1
//	Append of an entry that is there  2
//	Latest of up to 1,000             1, whatever the size of the partition
//	Between                           1 for each page of at most 1,000
//	Poll                              1 for each 1,000 entries of the window and behind it
//	Poll of a backlog of n entries    2 for each 1,000: keys first, then from the oldest on
//	Stamp, Cursor, New, Follower      0
//
// On Azure an answer may be cut short and cost one more. Each Poll reads the entries of the window again, until nothing new has
// come for as long as the window is.
//
// # When not to use it
//
// All new entries of a partition go to one place, which takes some 2,000 a second: have a partition for each user or device, not
// one for all. To delete old entries by the table, use highvolumedelete. Oldest first is what Followers are for; a table that is
// only read so is better keyed by compoundkey.Time. A cursor has some 20 characters for each entry in the window: with hundreds of
// entries a second, choose a shorter window.
package logtail
