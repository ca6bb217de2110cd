// Package fanout is a model of package denormalization's writes of holders that lie in one partition: they are read together and written
// in one transaction. It does no I/O. A test explores every order of requests, crashes and late requests in small worlds, and drops
// each rule of the protocol in turn.
//
// # The writer of a source
//
//  1. Read the source. Put a message, hidden: the holders that it named and those that it will name; the latter are marked as new.
//  2. Commit the source under its ETag.
//  3. Read the source, whose content the next steps write to the holders.
//  4. Read the named holders of a partition.
//  5. If a holder that the source names has the copy of another source: read that source, then the own
//     source, each once for all holders that were read. The own source takes the holder over if the other
//     source no longer names it, or was written earlier.
//  6. Write the holders that differ, and all new holders, in one transaction under the ETag of each. Refused:
//     write the transaction again without the holder that has changed, then do 4 to 6 for that holder alone,
//     until it is written.
//  7. Read the source again. If it has changed, go round from 4.
//  8. Delete the message.
//
// After an unknown outcome of 2 or 6 the actor sends nothing more, and leaves the message until its time is over. A worker does 3 to 8.
// A holder's own writer changes another property under the holder's ETag.
//
// # What a crash leaves
//
// A crash before 2 leaves a message without work. A crash after 2 leaves holders with a stale copy, which a
// worker writes. A crash after 6 leaves only the message.
//
// # Without a rule
//
//	ETags    a change of the holder's own writer is lost
//	Alone    a holder that has changed keeps a stale copy
//	Again    a stale copy: another change of the source came in between
//	New      the late write of another source, which had read the holder before, is not refused
//	Takes    a delayed message gives the holder to the earlier source
//	After    the same: what was read of a source is older than the holder
//	Lease    a late transaction overwrites what a worker has written
//	Unsure   a late transaction arrives after the message was deleted, and its copy stays
//
// # Not modelled
//
// Link.Find, whose holders name their source, so that no other source writes them; changes of holders that need a copy (package
// holder); holders with intents of their own.
package fanout
