// Package denormalization keeps a copy of one entity's properties in another entity, so that both are read in one request: the
// guide's "Denormalization pattern".
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
// patterns, so that an index of the holder follows. The link is attached to the repository of the sources.
//
// Who says what belongs together: the source, with Link.Holders, as an employee who is a manager does; or the holder, with
// Link.Find, as all employees do who name a department. Find is for one source with many holders.
//
// # Guarantee
//
// NewInPartition: the source and its holders are written in one transaction, so that nobody ever sees them differ. The
// holder is read, changed, and written under its ETag; what its own writers change meanwhile is not lost, the change starts
// over then, up to Schema.MaxAttempts of the sources.
//
// New: so it is for holders beside their source, unless their changes have effects outside of the partition. All others are in
// step sooner or later, whatever crashes, is repeated or comes in between; package eventual says how. Until then, some
// milliseconds with a plain queue as the runner, a holder has the details as they were before.
//
// A holder has the copy of one source. Where two name it, it has that of the one written last, however late an intent of
// the other is carried out; one that stops naming it never clears the other's. So a new manager may start before or after the old
// one stops. When the one written last stops while the other still names the holder, it has none until the other is written
// again: Verify tells.
//
// A holder that is not there is no error: whoever inserts it later writes the source again, or calls Refresh, which is also
// for a holder that begins to refer to another source by a change of its own. The holders' own writers must leave Properties alone;
// a Replace of what they read does.
//
// # Crashes
//
// One transaction is applied whole or not at all. Otherwise the intent is put before anything is written and names the
// holders, or stands for all that Find yields; a worker brings them into agreement with the source as it is then. Holders that
// are right already are passed over, so that a fan-out which was cut off goes on where it ended. A holder that cannot be written
// does not hold up the others; the intent ends on the poison queue in time, with the reason. What other programs
// change behind its back is found by Repository.Verify of the sources and mended by Repair, which also fills a new link.
//
// # Requests
//
//	a write of a source with holders beside it     1 transaction, 1 for each holder
//	  with holders elsewhere                       1 transaction, 2 of the queue, 2 for each holder, 1 to read again
//	  with Find                                    the same, 1 for each page of Find, and 2 for each holder that is not right
//	  with Async                                   1 transaction, 2 of the queue; the rest is the worker's, with 1 to read and 2 of the queue
//	  without holders                              1
//	a holder elsewhere that has another's copy     2 more
//	a holder elsewhere that is right already       1 less
//	a holder with effects of its own               2 of the queue, 1 for each copy and 1 to read again more
//	Refresh                                        2, and a write of the source that names this one holder
//	reading a holder with its copy                 1
//
// # Limits
//
// A transaction has 100 operations: a source beside 99 holders without indexes. Two links of one source cannot write one holder
// beside it in the same transaction; make one link of them. Elsewhere a source has Link.Limit holders, 10,000 if it does not say:
// with Find, more are patterns.ErrTooLarge once the source is written, and the intent goes to the poison queue. A
// source that changes more often than its holders can be written keeps its intents busy, not wrong.
//
// # When not to use it
//
// Where the copied properties change often and have many holders: each change writes all of them. Read the source then, or
// join in the client. Where a holder needs the details of many sources: store keys, and read those.
package denormalization
