// Package rangescan reads a table, or parts of it, with several readers over ranges of keys that are split while they are read.
//
// # Ranges
//
// A [Point] is a position between rows. A [Range] has the rows between two points. The scan keeps its ranges in the order of their keys;
// one reader reads each, page by page, and its position moves on with each page.
//
// A reader without a range takes the upper part of another reader's range: it lowers the end of that range to a new point and reads from
// there. A page of the first reader may be in flight then, and may reach beyond the new end. So a reader checks every row against the end
// of its range before it uses the row: it drops rows at or beyond the end and stops. While a reader uses the rows of a page, its range
// cannot be split. Each row is therefore used exactly once, whatever the points of division are; they only decide how the work is shared.
//
// # Requests
//
// [Leg.Filter] has no "or": Azure Tables answers "PartitionKey gt p or (PartitionKey eq p and RowKey gt r)" by a scan of the whole table. A
// range is read in up to three legs instead, each with a filter that the service turns into one range of keys: the rest of the first
// partition, whole partitions, the beginning of the last partition. Within a leg the scan follows the service's own continuation tokens;
// they are opaque on Azure, so the scan never makes one itself. A leg keeps its filter and token after its range was split. Only if a page
// had no row, so that the reader's position is unknown, the reader begins a new leg with the lower end.
//
// # The point of division
//
// To find the middle of a range, the scan maps keys to numbers: the digits at each offset are the characters that it has seen there, filled
// up to whole classes (digits, letters). So "000123" counts in tens. The distance between the first and the last key of a reader's last
// page is the density. The rest of the range divided by it estimates how many pages remain; the range with the most is divided in the
// middle. In a range of several partitions the middle lies between partition keys. If a whole page lay in one partition, that partition is
// split off first, and then divided by row keys.
//
// The first page of the upper part tests the guess. If the guess was bad, that page is the only one, so a bad guess costs one request.
// After a bad guess, the next point is the geometric mean of the page's extent and the rest, which reaches a densely filled beginning in
// few steps. A range is divided only after its second page, so that short ranges cost no further request.
//
// # Order, memory, resumption
//
// [Scan.Work] processes a page in its reader before the page is delivered. While Work runs, the range can be divided.
//
// The scan holds at most [Options.Buffer] pages. With Options.Ordered, an idle reader takes the range after the next Buffer/Readers pages
// of another reader instead of half of the rest, so that all readers stay near the pages that are due. The range that is due never waits
// for memory. Without order, pages are delivered as they arrive.
//
// [Scan.Rest] returns the ranges of the rows that the caller has not received. With Options.Ordered it is one range for each initial range
// in progress; without, at most as many ranges as readers and pages in the buffer. Initial ranges that have not begun are represented by
// the index of the first.
//
// An error ends the scan and is yielded once; the rest then includes every page that was not delivered. Azure Cosmos DB for Table
// returns rows in no order of keys: there, use one reader, without this package.
package rangescan
