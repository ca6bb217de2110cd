// Package denormalization stores a copy of one entity's properties in other entities, so that one request reads both: the
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
// A Link says which properties of the holder make up the copy, which holders a source has, and how to write the
// copy. The package stores no other rows and no other properties. Sources and holders have repositories of
// their own, each with its own patterns, so an index of the holders follows a change of the copy. A link has
// two patterns: give Copies.Source to the repository of the sources and Copies.Holder to the repository of the
// holders. Every program that writes sources or holders needs both repositories.
//
// Either the source or the holder determines which of them belong together. With Link.Holders the source does,
// for example an employee who manages a department. With Link.Find the holder does, for example each employee
// names a department; use Find for sources with many holders.
//
// # Guarantee of NewInPartition
//
// Source and holders are written in one transaction, so no reader sees a source and a holder that do not match.
// A change of a source reads each holder and writes it under the holder's ETag. A change of a holder that
// concerns its copy or its source (an insert, another source, other values of the copied properties) reads the
// source and writes the holder with the copy, together with the source, unchanged, under the source's ETag.
// After a conflict the change starts again, at most Schema.MaxAttempts times (default 10). The source must
// exist, because a transaction cannot require that a row does not exist.
//
// # Guarantee of New
//
// The copy equals the source's properties once the intents of both are carried out, even if a process crashes,
// a message is delivered twice, or other writers change either of them; package eventual describes the
// protocol. Until then the holder has its former copy; without Async this takes some milliseconds. A change of
// a holder that concerns its copy or its source reads the source, writes the holder with the copy under an
// intent that names the source, and reads the source again. So a holder also gets the right copy if it is
// inserted after its source, or while its source changes. internal/models/holder is a model of this protocol.
//
// # Guarantee of both
//
// A writer of a holder cannot set the properties in Link.Properties: the library replaces their values by those
// of the source. The exception is the reference that SourceOf returns: with Holders, the writer of a holder may
// set it to request the copy of that source. If that source does not name the holder, the holder has no copy,
// or keeps the copy of its previous source if the previous source still names it.
//
// A holder has the copy of one source. If two sources name it, it has the copy of the source that was written
// last, even if a worker carries out the intent of the other source later. A source that stops naming a holder
// never clears the copy of another source. So when one manager succeeds another, the two can be written in
// either order. If the source that was written last stops naming the holder while another source still names
// it, the holder has no copy until that other source is written again; Verify reports the missing copy.
//
// The service's Timestamps decide which source was written last. If they are equal, as for rows of one
// transaction, the source with the greater key counts as the last. The service stamps inserts, updates and
// rows of different partitions by different clocks, so of two writes that are a few tenths of a second apart
// the earlier one may count as the last.
//
// A holder that does not exist is skipped. With Holders, a holder that is inserted without a reference to its
// source has no copy until the source is written again; Verify reports the missing copy. With NewInPartition
// the same can happen in one rare case: while the insert of a source is under way, other writers insert the
// same source and the holder, and delete the source.
//
// # Crashes
//
// NewInPartition: nothing is left to repair, since the service applies all of a transaction or none. New: the
// intent is on the queue before anything is written. It names the holders, or says that Find yields them, or
// names the source of a holder. A worker writes the source's current properties into each holder of the source
// as it is now. It skips holders that are already correct, so it only completes the interrupted work. If one
// holder cannot be written, the worker still writes the others. After MaxDequeues failed deliveries (default 5)
// the intent goes to the poison queue with the reason. If programs without the link change sources or holders,
// Verify of the sources' repository finds the differences, and Repair corrects them. Repair also fills in the
// copies of a new link.
//
// # Requests
//
//	NewInPartition, a write of a source            1 transaction, 1 for each holder
//	  a write of a holder that needs the copy      1 transaction, 1 for the source, 1 more for its previous source
//	New, a write of a source                       1 transaction, 2 of the queue, 1 to read the source again; and for each 50 holders
//	                                               of a partition 1 to read them (if there are three or more and their keys lie close
//	                                               together, else 1 for each) and 1 to write those that differ; for a single holder 2
//	  with Find                                    the same, but 1 for each page of Find in place of the reads of holders; if Find uses an
//	                                               index, also 1 for each holder, and 1 more if it differs
//	  another writer changes a holder meanwhile    3 more: the transaction is repeated without the holder, which is read and written alone
//	  a write of a holder that needs the copy      1, 2 of the queue, 2 for the source, with Holders 2 more for its previous
//	                                               source, 1 to read the holder again
//	  with Async                                   2 of the queue and 1 transaction; for a holder 1 to read the source; a worker does the rest
//	  holders that have another source's copy      for each 50 of a partition 1 more, and 1 for each other source
//	  a single holder that is already correct      1 less
//	  a holder with copies outside its partition   2 of the queue, 1 for each copy and 1 to read the holder again, in addition
//	with Holders, a write of a source without one  1
//	any other write of a holder                    1
//	reading a holder with its copy                 1
//
// # Limits
//
// NewInPartition: a transaction has 100 operations, enough for a source and 99 holders without indexes. Two
// links cannot write one entity in the same transaction; declare one link instead. New: a source has at most
// Options.Limit holders (default 10,000). If Holders returns more, the write is refused with
// tables.ErrTooLarge. If Find yields more, the source is written, but its intent fails with tables.ErrTooLarge
// and ends on the poison queue. The time until all holders have the copy is proportional to their number. If a
// source changes faster than its holders can be written, their copies stay outdated until the changes pause.
//
// # When not to use it
//
// If the copied properties change often and a source has many holders, since each change writes all holders:
// read the source instead, or join in the client. If a holder needs details of many sources: store the keys of
// the sources in the holder, and read the sources.
package denormalization
