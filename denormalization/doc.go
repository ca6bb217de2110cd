// Package denormalization keeps a copy of one entity's properties in other entities, so that both are read in one request: the
// guide's "Denormalization pattern". The copied entity is the source; each entity with a copy is a holder.
//
// # Stored rows
//
// A department with the details of its manager, in the partition of its employees:
//
//	PartitionKey  RowKey        properties
//	Sales         empid_000223  Name Email IsManager ...                       the source
//	Sales         dept_Sales    Name ManagerID=223 ManagerName ManagerEmail    the holder
//
// A Link says which properties of the holder are the copy, which holders a source has, and what it writes into them. There
// are no other rows and no properties but these; both entities are kept by their own repositories, each with its own
// patterns, so an index of the holder follows. A link has two patterns: Copies.Source is given to the repository of the sources,
// Copies.Holder to that of the holders. All programs that write either need both.
//
// Who says what belongs together: the source, with Link.Holders, as an employee who is a manager does; or the holder, with
// Link.Find, as all employees do who name a department. Find is for one source with many holders.
//
// # Guarantee
//
// NewInPartition: the source and its holders are written in one transaction, so no reader sees them differ. A change of a
// source reads each holder and writes it under its ETag. A holder that is inserted, or whose change touches the source that it
// refers to or its copy, reads the source, gets the copy and is written together with the source, unchanged, under the source's
// ETag. A conflict starts the change again, up to Schema.MaxAttempts times. The source must exist: a transaction cannot hold that a
// row does not.
//
// New: the copy agrees with the source once the intents of both are carried out, whatever crashes, is repeated or comes in between;
// package eventual says how. Until then, some milliseconds with a plain queue as the runner, a holder has the copy as it was
// before. A change of a holder that touches the source that it refers to or its copy reads the source, writes the holder with the
// copy under an intent that names the source, and reads the source again. So a holder that is inserted after its source, or while
// that changes, has the copy as well. internal/models/holder is the model of this protocol.
//
// What a writer of a holder puts into Properties does not count: it gets the source's copy. With Holders it can say there which
// source it wants; a source that does not name the holder leaves it without a copy.
//
// A holder has the copy of one source. Where two sources name it, it has that of the one written last, however late an intent of
// the other is carried out; one that stops naming it never clears the other's. So a new manager may start before or after the old
// one stops. When the one written last stops while the other still names the holder, it has none until the other is written
// again: Verify tells.
//
// The service's Timestamps say which source was written last; of two with one Timestamp, as rows of one transaction have, it is
// the one with the greater key. Different clocks of the service stamp inserts, updates and the rows of different partitions:
// of two writes that are a few tenths of a second apart, the earlier one may count as the last.
//
// A holder that does not exist is no error. With Holders, one that is inserted without saying its source has no copy until the
// source is written again: Verify tells. In a partition there is one such case more: an insert of a source that waits while others
// insert the same source and the holder, and delete that source.
//
// # Crashes
//
// One transaction is applied whole or not at all. Otherwise the intent is put before anything is written and names the holders or
// stands for all that Find yields, or names the source of a holder; a worker brings them into agreement as both are then. Holders
// that are right already are passed over, so a fan-out that was interrupted does only what is left. A holder that cannot be
// written does not hold up the others; the intent ends on the poison queue in time, with the reason. What programs without the
// link change is found by Repository.Verify of the sources and repaired by Repair, which also fills a new link.
//
// # Requests
//
//	NewInPartition, a write of a source            1 transaction, 1 for each holder
//	  a write of a holder that needs the copy      1 transaction, 1 for the source
//	New, a write of a source                       1 transaction, 2 of the queue, 2 for each holder, 1 to read again
//	  with Find                                    the same, 1 for each page of Find, and 2 for each holder that is not right
//	  a write of a holder that needs the copy      1, 2 of the queue, 2 for the source, 1 to read again
//	  with Async                                   2 of the queue and the write; for a holder 1 for the source; the rest is the worker's
//	  a holder that has another source's copy      2 more
//	  a holder that is right already               1 less
//	  a holder with effects of its own             2 of the queue, 1 for each copy and 1 to read again more
//	a write of a source without holders            1
//	any other write of a holder                    1
//	reading a holder with its copy                 1
//
// # Limits
//
// A transaction has 100 operations: a source and 99 holders without indexes. Two links in the partition cannot write one entity in
// the same transaction; make one link of them. With New a source has Options.Limit holders, 10,000 by default: with Find, more
// are tables.ErrTooLarge once the source is written, and the intent goes to the poison queue. A fan-out takes time in proportion
// to its holders. A source that changes more often than its holders can be written keeps its intents busy, not wrong.
//
// # When not to use it
//
// Where the copied properties change often and have many holders: each change writes all of them. Read the source then, or
// join in the client. Where a holder needs the details of many sources: store keys, and read those.
package denormalization
