// Package holder is a model of how package denormalization copies a source's content into a holder. It does no I/O. A test
// explores every order of requests and crashes in small worlds, and drops each rule of the protocol in turn; without the rule of
// the lease, a request of a dead process may arrive late.
//
// # What is stored
//
//	source   a version that changes with each write, and its content; it may be absent, or exist without naming a holder
//	holder   an ETag, the source that it refers to, the copy, and whether an index contains it
//	message  the intent of each change (package eventual): its holder carries it out, and after a crash another process does
//
// # The holder is in another partition than its source
//
// A change of a source puts the message, writes the source, then handles the message: it finds the holder, writes the copy
// under the holder's ETag, reads the source again, starts over if it has changed, and deletes the message.
//
// A change of a holder that needs a copy reads the source, puts the message, which names that source, and writes the holder
// with the copy. Then it handles the message: it writes the index row and reads the source again. If the holder is not as
// that source requires, it reads the holder and the source, writes the copy under the holder's ETag, and starts over. It reads
// the holder again, starts over if it has changed, and deletes the message.
//
// # The holder is in its source's partition
//
// A change of a source reads the source and the holder and writes both in one transaction under both ETags. A change of a
// holder that needs a copy reads the source, which must exist, and writes the holder together with the source, unchanged,
// under the source's ETag. There are no messages.
//
// # What every final state must meet
//
// When all changes are carried out, the holder has the current content of its source. It refers to the source that its last
// writer set or, if sources name their holders, to the source that names it. It exists unless it was deleted.
//
// # Not modelled
//
// Several holders of one source; two sources that name one holder; lost responses; clocks. Within a partition: an insert of a
// source that waits while others insert the same source and a holder, and delete that source. There is no ETag for the absence
// of a row, so the service accepts the insert, and the holder has no copy until the source is written again.
package holder
