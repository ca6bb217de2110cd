// Package holder models how a copy of a source's content gets into a holder, for package denormalization. It has no I/O: a
// test walks through every order of requests, deaths and late requests of small worlds, and drops each rule in turn.
//
// # What is stored
//
//	source   a version that changes with each write, and its content; it may be absent, or silent: it names no holder
//	holder   an ETag, the source that it refers to, the copy, and whether an index has a row of it
//	message  one for each change, as package eventual keeps it: whoever holds it carries it out, after a death somebody else
//
// # Elsewhere: the holder is in another partition than its source
//
// A change of a source: put the message, write the source, then handle the message: find the holder, write the copy under
// the holder's ETag, read the source again, begin again if it has changed, delete the message.
//
// A change of a holder that needs a copy: read the source, put the message, which names that source, write the holder with the
// copy, then handle the message: write the index row, read the source again; where the holder is not as that source asks, read
// the holder, read the source, write the copy under the holder's ETag and begin again; read the holder again, begin again if it
// has changed, delete the message.
//
// # Inside: the holder is in its source's partition
//
// A change of a source: read the source and the holder, write both in one transaction under both ETags. A change of a holder that
// needs a copy: read the source, which must be there, and write the holder together with the source, unchanged, under the
// source's ETag. There are no messages.
//
// # What must hold in the end
//
// Once all changes are carried out: the holder has the content of its source as it is; it refers to the source that its last
// writer gave it (where the source names its holders: to the source that names it); and it is there if it was not deleted.
//
// # Not modelled
//
// Several holders of one source; two sources that name one holder; lost answers; clocks. Inside a partition: an insert of a
// source that waits while others insert the same source and a holder, and delete that source. That a row is absent has no ETag, so
// nothing refuses the insert, and the holder stays without the copy until the source is written again.
package holder
