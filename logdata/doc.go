// Package logdata stores log records in append blobs, to be read by time: the solution that the guide recommends in place of its "Log data
// anti-pattern", in which records are rows of a table.
//
// A blob such as web/2026/11/20/1500/000001.log has the records of one writer in one Options.Period. docs/reference/logdata.md describes the
// format.
//
// # Guarantee
//
// A record is stored once, or not at all. If the response to an append is lost, the writer sends it again for the same position: the service
// applies it only if the first attempt was not applied, and otherwise the writer compares the stored bytes. While the outcome is unknown, Write
// returns tables.ErrUnknownOutcome, and the writer sends nothing else until these records are stored; Flush and Close do not return nil before
// that.
//
// Any number of writers, in any number of processes, write under one prefix. They never share a blob.
//
// A crash loses these of the acknowledged records:
//
//	durable     nothing
//	buffered    what is in memory: WriterOptions.BufferRecords records and BufferBytes bytes at most (10,000 and 8 MiB); and while the service
//	            keeps up, those of the last Interval (a second) and those that came while the request under way runs
//
// A Writer is durable unless WriterOptions.Buffered is set. Concurrent Writes share an append. The next Write returns the error of a failed
// background flush, unless its records have been stored meanwhile; until then they stay in memory. Flush and Close try to store them once more.
//
// Query yields all records that were stored when it began, in the order of time. A crash leaves at most an empty blob, which readers skip, or a
// blob without final metadata, which is read whenever it may hold a record. Half a record, as another program may leave it, is skipped and given to
// QueryOptions.Damaged.
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
// A stored record has at most 4 MiB (WriterOptions.BlockBytes), and never more than WriterOptions.BufferBytes. A writer begins another blob after
// 64 MiB (WriterOptions.BlobBytes) or 50,000 appends. Records may come in any order of time, but one that is more than two seconds late may need
// another blob: write records as they happen. Delete only blobs of past periods, for example by a lifecycle rule for the prefix.
//
// # When not to use it
//
// To find entries by something other than time, keep an index, or store rows. To read the last entries of one key in one fast request, use package
// logtail. If a single goroutine writes durable records one after the other, each is a request: compare the prices of a write to a blob and to a
// table.
package logdata
