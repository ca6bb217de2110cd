// Package dataseries keeps a series of values in the properties of one entity, so that all of it is read in one request: the
// guide's "Data series pattern".
//
// # Stored rows
//
// The messages that employee 223 has sent on a day, hour by hour, declared with the prefix "Count_" and 24 slots:
//
//	PartitionKey  RowKey             properties
//	empid_000223  20261120           Count_00=3 Count_09=5 ... Count_23=1                      the series
//	empid_000223  U+FFFC once_GEZD.. Series=20261120 Slot=Count_09 Operation Delta=1 Call=...  a marker of AddOnce
//
// A slot that was never set is no property: a gap. More than MaxSlotsPerRow slots are declared as rows or as a blob:
//
//	Options.SlotsPerRow=200   empid_000223  2026        Day_000 ... Day_199
//	                          empid_000223  2026!0001   Day_200 ... Day_364
//	Options.Container         blob messages/Day_/empid^1000223/2026   {"v":1,"write":ID,"slots":{...},"marks":[...]}
//
// Slot n is in row n / SlotsPerRow, whatever is set. In a blob, named by table, prefix and keys, slots are written as the
// table service writes them, and the marks of AddOnce are beside them. A series has its rows to itself; properties that
// other programs add to them are left alone, as are other rows of the partition.
//
// # Guarantee
//
// Set and SetMany write the slots that they are given and no others: all or none, whatever is there. Of two writers of one slot
// the later wins.
//
// Counter.Add adds under the ETag of the slot's row: no rival's addition is lost. When an answer is lost, it tries again only while
// the two attempts exclude each other; when it cannot tell what became of them, it is tables.ErrUnknownOutcome, and the sum
// has the delta, or gets it, once or not at all. Counter.AddOnce counts an operation by its name once, however often it is repeated, by whom, and after what
// crash, until its marker is swept. Integers do not wrap: a sum that does not fit is ErrOverflow, and the slot is as it was.
//
// A row, or blob, is read as it was at one moment. The rows of a series are read one after the other: each slot is right, and
// two in different rows may be of different moments, also where SetMany has set them together.
//
// # Crashes
//
// Every change is one request, or one transaction, that is applied whole or not at all, so that a crash leaves nothing half
// done. What it leaves is a caller that does not know: it repeats a Set, or an AddOnce. Markers stay until SweepMarkers
// removes those of a certain age, which somebody has to run; it can be interrupted anywhere.
//
// # Requests
//
//	                 in rows                                        in a blob
//	Set, SetMany     1                                              2, and 2 for each rival
//	  of a Counter   1 for each row and 1, and so much a rival      2, and 2 for each rival
//	Add              2, and 2 for each rival                        the same
//	AddOnce          2, and 2 for each rival; counted before: 3     the same; counted before: 1
//	StageAddOnce     2                                              not possible
//	Read             1                                              1
//	ReadMany         1 for each page of 1,000 rows                  1 for each 5,000 blobs, and 1 for each series
//	Delete           1; several rows 2, and 2 for each rival        1
//	SweepMarkers     1, 1 for each page of 1,000 old markers, and   1 for each 5,000 blobs, 1 for each series, and 1
//	                 1 for each 100 of a partition                  for each with old marks
//
// Each repetition waits longer, with full jitter: ten rivals of one slot, each of whom adds again as soon as it has added, take
// some 5 requests for an addition. docs/reference/dataseries.md has the figures.
//
// # When not to use it
//
// Where rivals add to the slots of one row more than some 50 times a second: only one of them gets on at a time. Give each
// writer a series of its own, and add them up when they are read. Where all properties of an entity of several rows must be
// of one version, or a value is larger than a property: package widentities. Where slots are found by their values: a query
// cannot. Where most slots are empty, or there is no fixed number of them: rows of their own.
package dataseries
