// Package logdata keeps log records in append blobs, to be read by time: the guide's answer to its "Log data anti-pattern",
// in which they are rows of a table.
//
// # Stored blobs
//
// The records of ten minutes, by one writer:
//
//	name      web/2026/11/20/1500/000001.log
//	content   0x1E 2026-11-20T15:04:05.123456789Z 11 9d217103 hello LF
//	          world LF
//	          0x1E 2026-11-20T15:04:05.200000000Z 3 ...
//	metadata  tpfirst=2026-11-20T15:04:05.123456789Z tplast=2026-11-20T15:09:59.000000000Z tprecords=5211
//	          tpperiod=10 (minutes) tpdisorder=2000 (milliseconds) tpformat=1 tpwriter=...
//
// The name has the period (Options.Period) that the records' times are in, and a number. A record is the byte 0x1E, its
// time, the length of its data, CRC-32C of all three, the data as they are, line feeds too, and a line feed. In data 0x1E
// is stored as 0x10 'r' and 0x10 as 0x10 'e', so that 0x1E begins a record and is nowhere else: behind any damage the next
// record is found, and what a record quotes is never taken for one.
//
// tplast and tprecords are there once nothing is appended any more. Before that, tpfirst is a time before which the blob
// has no record: two seconds before the first one. A record that is further behind the latest of a blob goes to another
// one, so that each is read in order with a little memory.
//
// # Several writers
//
// Any number of writers, in any number of processes, write under one prefix. They never share a blob: each creates its own,
// if there is none of that number, and tries another number if there is. So a writer knows where its blob ends, and an
// append is sent for that position and ETag only: not for a blob that was deleted, and made again by another writer.
//
// # Guarantee
//
// A record is stored once, or not at all. An append whose answer was lost is sent again for the same position: it is
// applied there if it was not before, and refused if it was, and then the bytes are compared. While nobody can tell, the
// error is tables.ErrUnknownOutcome, and nothing else is sent. The records are the writer's from then on, who sends them
// until they are stored, also where it turns out that they were not; Flush and Close have no nil before that.
//
// What a crash loses of what Write had acknowledged:
//
//	durable     nothing
//	buffered    what is in memory: WriterOptions.BufferRecords records and BufferBytes bytes at most (10,000 and 8 MiB); and while the service
//	            answers, those of the last Interval (a second) and of the request under way
//
// Durable is what a Writer is if WriterOptions does not say Buffered. Writes that wait at the same time share an append.
// Errors of flushes in the background are returned by the next Write, Flush or Close, and the records kept.
//
// Query yields all records that were stored when it began, in the order of time.
//
// # Crashes
//
// A writer makes its requests in this order: create the blob; append; set the metadata, after the last append was answered.
// A process that dies between them leaves
//
//	an empty blob, which nobody reads
//	a blob without tplast, which is read whenever it may hold a record: from tpfirst to the end of its period
//
// and nothing to repair. A block is appended whole or not at all; should a blob end in half a record all the same, since it
// was copied or another program wrote it, the half is passed over, and QueryOptions.Damaged told. A writer that finds bytes
// in its blob that are not its own leaves it for another one.
//
// # Requests
//
//	New, NewWriter, Stats                0
//	the first record of a period         1 to create the blob; 2 more if another writer has the number
//	Write, durable                       1 for all that wait at the same time
//	Write, buffered                      0; 1 for each Interval, or half of a full buffer, 4 MiB at most
//	a blob's end, or Close               1 for each blob
//	an append whose answer was lost      2 more: the same again, and a look into the blob
//	Blobs                                1 for each hour of the range, or whole day, month or year in it; 1 more for each 5,000 blobs
//	Query                                those of Blobs, and 1 for each MiB of the blobs that can hold a record of the range
//
// # Limits
//
// A record has 4 MiB at most, as it is stored (WriterOptions.BlockBytes; 100 MiB with version 2022-11-02 of the service and
// later, which is also what Azurite takes). A blob is followed by another one at 64 MiB or 50,000 appends, the service's
// limit. Records in any order of time are stored and read, but one that is more than two seconds behind may need a blob of
// its own: write them as they happen. Delete blobs of periods that are over only; a lifecycle rule for the prefix does.
//
// # When not to use it
//
// To find entries by anything but time, such as a user: keep an index, or rows. For the last entries of one key, where one
// request of milliseconds is wanted: that is the guide's log tail pattern. Where one durable record after the other is
// written by a single goroutine, each is a request: compare the prices of a write to a blob and to a table.
package logdata
