// Package dataseries keeps a series of values in the properties of one entity, so that all of it is read in one
// request: the guide's "Data series pattern".
//
// # Stored rows
//
// The messages that employee 223 has sent on a day, hour by hour, declared with the prefix "Count_" and 24 slots:
//
//	PartitionKey  RowKey             properties
//	empid_000223  20261120           Count_00=3 Count_09=5 ... Count_23=1                      the series
//	empid_000223  U+FFFC once_GEZD.. Series=20261120 Slot=Count_09 Operation Delta=1 Call=...  a marker of AddOnce
//
// A slot that was never set has no property: it is a gap. More than MaxSlotsPerRow slots are declared as rows or as a
// blob:
//
//	Options.SlotsPerRow=200   empid_000223  2026        Day_000 ... Day_199
//	                          empid_000223  2026!0001   Day_200 ... Day_364
//	Options.Container         blob messages/Day_/empid^1000223/2026   {"v":1,"write":ID,"slots":{...},"marks":[...]}
//
// Slot n is always in row n / SlotsPerRow, rounded down. In a blob, named by table, prefix and keys, slots are written as
// the table service writes them, and beside them the markers of AddOnce (in marks). Use a series' rows for nothing else; the
// library does not change properties that other programs add to them, nor other rows of the partition.
//
// # Guarantee
//
// Set and SetMany write only the given slots: all or none, without a check of their old values. Of two writers of one
// slot the later wins. For a Counter, or a series in a blob, Set and SetMany read first, and write under the ETags of
// what they have read.
//
// Counter.Add adds under the ETag of the slot's row, so that no concurrent addition is lost. After a lost
// response it retries only if at most one of the two attempts can be applied. If it cannot find out whether
// one was applied, it returns tables.ErrUnknownOutcome, and the delta is counted once or not at all.
// Counter.AddOnce counts an operation ID once, however often the call is repeated and whatever crashes, until
// the marker is swept. Integers do not wrap: for a sum that does not fit, the result is an error with the
// cause ErrOverflow, and the slot is unchanged.
//
// A row or blob is read as of one moment. The rows of a series are read one after the other: slots in different rows
// may be of different moments, even if one SetMany has set them.
//
// # Crashes
//
// Every change is one request, or one transaction, that is applied whole or not at all, so that a crash
// leaves nothing half done. After a crash the caller does not know the outcome, and repeats the Set or
// AddOnce. Markers stay until you run SweepMarkers, which removes old ones and can be interrupted anywhere.
//
// # Requests
//
//	                 in rows                                        in a blob
//	Set, SetMany     1                                              2, and 2 for each conflict
//	  of a Counter   1, 1 for each row; again for each conflict     2, and 2 for each conflict
//	Add              2, and 2 for each conflict                     the same
//	AddOnce          2, and 2 for each conflict; counted before: 3  the same; counted before: 1
//	StageAddOnce     2; counted before: 1                           not possible
//	Read             1                                              1
//	ReadMany         1 for each page of 1,000 rows                  1 for each 5,000 blobs, and 1 for each series
//	Delete           1; several rows 2, and 2 for each conflict     1
//	SweepMarkers     1, 1 for each page of 1,000 old markers, and   1 for each 5,000 blobs, 1 for each series, and 1
//	                 1 for each 100 of a partition                  for each with old markers
//
// Each retry waits longer, with full jitter: ten writers that add to one slot without pause need about 5 requests for
// an addition. docs/reference/dataseries.md has the figures.
//
// # When not to use it
//
// For more than about 50 additions a second to the slots of one row, since only one succeeds at a time: give
// each writer its own series, and add them up when you read. If all rows must always be of the same version,
// or a value is larger than a property can be: use package widentities. If you need to find slots by their
// values: queries cannot. If most slots are empty, or their number is not fixed: use a row for each value.
package dataseries
