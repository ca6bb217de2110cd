// Package rangescan reads a table, or parts of it, with several readers over ranges of keys that are split while they are read.
//
// # Ranges
//
// A [Point] is a position between rows. A [Range] has the rows between two points. The scan keeps its ranges in the
// order of their keys. Each range has one reader, which reads it page by page; the reader's position moves on with each
// page.
//
// A reader without a range takes the upper part of another reader's range: it lowers the end of that range to
// a new point and reads from there. At that time the first reader may have requested a page that reaches
// beyond the new end. So a reader checks every row against the end of its range before it uses the row: it
// drops rows at or beyond the end and stops. While a reader uses the rows of a page, its range cannot be
// split. So each row is used exactly once, wherever the ranges are divided; the points of division only
// decide how the readers share the work.
//
// # Requests
//
// [Leg.Filter] has no "or": Azure Tables answers "PartitionKey gt p or (PartitionKey eq p and RowKey gt r)"
// by a scan of the whole table. A range is read in up to three legs instead, each with a filter that the
// service turns into one range of keys: the rest of the first partition, whole partitions, the beginning of
// the last partition. Within a leg the scan follows the service's own continuation tokens; they are opaque on
// Azure, so the scan never makes one itself. A leg keeps its filter and token after its range was split.
// There is one exception: if a page had no row, the reader's position is unknown, and the reader begins a new
// leg that stops at the lowered end.
//
// # The point of division
//
// To find the middle of a range, the scan maps keys to numbers. The digits at an offset of the key are the
// characters that the scan has seen at this offset, completed to whole classes (all digits, all letters). So
// a key such as "000123" becomes a decimal number. The distance between the first and the last key of a
// reader's last page is the density. The number of remaining pages is estimated as the length of the rest of
// the range divided by that distance; the range with the most remaining pages is divided in the middle. In a
// range of several partitions the middle lies between partition keys. If a whole page lay in one partition,
// that partition is split off first, and then divided by row keys.
//
// The first page of the upper part tests the guess. If the guess was bad, that page is the only one, so a bad
// guess costs one request. After a bad guess, the distance of the next point is the geometric mean of the
// extent of a page and of the rest of the range. So few guesses are needed even if all rows are at the
// beginning of the range. A range is divided only after its second page, so that short ranges cost no further
// request.
//
// # Order, memory, resumption
//
// [Scan.Work] processes a page in its reader before the page is delivered. While Work runs, the range can be divided.
//
// The scan holds at most [Options.Buffer] pages, and a few more with Options.Ordered (see below). With Options.Ordered,
// an idle reader takes the range after the next Buffer/Readers pages of another reader instead of half of the rest, so
// that all readers stay near the pages that are due. The reader of the range whose pages are delivered next may exceed
// the buffer, so that delivery never waits for the memory of later pages. Without order, pages are delivered as they
// arrive.
//
// [Scan.Rest] returns the ranges of the rows that the caller has not received. With Options.Ordered it is one
// range for each initial range in progress; without, at most as many ranges as readers and pages in the
// buffer. For initial ranges that have not begun, the result has only the index of the first.
//
// An error ends the scan and is yielded once; the rest then includes every page that was not delivered. Azure Cosmos DB for Table
// returns rows in no order of keys: there, use one reader, without this package.
package rangescan
