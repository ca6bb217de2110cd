// Package logdata stores log records in append blobs, to be read by time: the solution that the guide
// recommends in place of its "Log data anti-pattern", in which records are rows of a table.
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
// The name has the period (Options.Period) in which the records' times lie, and a number. A record is the byte 0x1E,
// its time, the length of its data, the CRC-32C of time, length and data, the data including their line feeds, and a
// line feed. In data 0x1E is stored as 0x10 'r' and 0x10 as 0x10 'e', so that 0x1E only begins records: after damaged
// bytes the reader finds the next record, and never mistakes quoted data for a record.
//
// tplast and tprecords are set after the last append. Before that, tpfirst is a time before which the blob has no
// record: two seconds before the first one, or the start of the period. A record more than two seconds older than the
// latest record of a blob goes to another blob, so that each blob can be read in order with little memory.
//
// # Several writers
//
// Any number of writers, in any number of processes, write under one prefix. They never share a blob: each creates its own, and tries
// another number if a blob with that number exists. So a writer knows where its blob ends, and sends each append with that position and
// ETag. The append fails if another writer has deleted and recreated the blob.
//
// # Guarantee
//
// A record is stored once, or not at all. If the response to an append is lost, the writer sends it again for the
// same position: the service applies it if the first attempt was not applied, and otherwise refuses it, and the
// writer compares the stored bytes. While the outcome is unknown, Write returns tables.ErrUnknownOutcome, and the
// writer sends nothing else. From then on the writer itself sends these records until they are stored; Flush and
// Close do not return nil before that.
//
// A crash loses these of the acknowledged records:
//
//	durable     nothing
//	buffered    what is in memory: WriterOptions.BufferRecords records and BufferBytes bytes at most (10,000 and 8 MiB); and while the service
//	            keeps up, those of the last Interval (a second) and those that came while the request under way runs
//
// A Writer is durable unless WriterOptions.Buffered is set. Concurrent Writes share an append. The next Write
// returns the error of a failed background flush, unless its records have been stored meanwhile; until then they stay
// in memory. Flush and Close try to store them once more.
//
// Query yields all records that were stored when it began, in the order of time.
//
// # Crashes
//
// A writer makes its requests in this order: create the blob; append; set the metadata, after the response to the
// last append. A process that dies between two of these requests leaves
//
//	an empty blob, which readers skip
//	a blob without tplast, which is read whenever it may hold a record: from tpfirst to the end of its period
//
// Neither needs repair. The service appends a block whole or not at all. If a blob nevertheless ends in half
// a record, because it was copied or another program wrote it, readers skip that half and call
// QueryOptions.Damaged. A writer that finds another program's bytes in its blob continues in a new one.
//
// # Requests
//
//	New, NewWriter, Stats                0
//	the first record of a blob           1 to create the blob; 2 more each time another writer has the number
//	Write, durable                       1 for all waiting records of one blob, BlockBytes (4 MiB) at most
//	Write, buffered                      0; 1 for each blob and Interval, or half of a full buffer, BlockBytes at most
//	a blob's end, or Close               1 for each blob
//	an append whose response was lost    2 more: the same append again, and a read of what the blob has there, 1 for each MiB
//	Blobs                                1 for each hour of the range, or whole day, month or year in it; 1 more for each 5,000 blobs
//	Query                                those of Blobs, and at most 1 for each started MiB of each blob that can hold a record of the range
//
// # Limits
//
// A record has at most 4 MiB in its stored form (WriterOptions.BlockBytes sets another limit, at most 100 MiB, which
// the service accepts from version 2022-11-02 on, and so does Azurite), and never more than WriterOptions.BufferBytes
// (default 8 MiB): for larger records raise both. A writer begins another blob after 64 MiB
// (WriterOptions.BlobBytes) or 50,000 appends, the service's limit. Records may be written in any order of time, but a
// record that is more than two seconds late may need another blob: write records as they happen. Delete only blobs of
// past periods, for example by a lifecycle rule for the prefix.
//
// # When not to use it
//
// To find entries by something other than time, such as a user: keep an index, or store rows. To read the
// last entries of one key in one fast request: use the guide's log tail pattern (package logtail). If a
// single goroutine writes durable records one after the other, each is a request: compare the prices of a
// write to a blob and to a table.
package logdata
