// Package rangescan reads a table, or parts of it, with several readers over ranges of keys that are split while they are read.
//
// # Ranges
//
// A [Point] is a place between rows. A [Range] has the rows from one point up to, and without, another one. The scan keeps its
// ranges in the order of their keys; one reader reads each, page by page, and its position moves on with each page.
//
// A reader without a range takes the upper part of another one: it lowers that range's end to a new point and reads from there.
// A page of the first reader may be in flight then, and may reach beyond the new end. So every row asks for its place before it is
// used: the reader drops rows at or beyond its end and stops. While the rows of a page are being used the range cannot be split.
// Each row is therefore used exactly once, whatever the points of division are; they only decide how the work is shared.
//
// # Requests
//
// [Leg.Filter] has no "or": Azure Tables answers "PartitionKey gt p or (PartitionKey eq p and RowKey gt r)" by a scan of the whole
// table. A range is read in up to three legs instead, each with a filter that the service turns into one range of keys: the rest of
// the first partition, whole partitions, the beginning of the last partition. Within a leg the service's own continuation
// token leads on; it is opaque on Azure, so no token is ever made up. A leg goes on with its filter and token after its range was
// split. Only if a page had no row, so that the reader's position is unknown, does it begin a new leg with the lower end.
//
// # The point of division
//
// Keys become numbers: at each offset the digits are the characters that the scan has seen there, with their class (digits,
// letters) filled up. So "000123" counts in tens. The extent of a reader's last page is the density; the rest of the range divided by
// it estimates how many pages are left, and the range with the most is divided in the middle. In a range of several partitions
// the middle is between partition keys; if a whole page lay in one partition, that partition is cut off first, and then divided by
// row keys.
//
// The first page of the upper part is the probe: it is not followed by a second one if the guess was bad, so a bad guess costs
// one request. The next point then is the geometric mean of the page's extent and the rest, which reaches a dense beginning in few
// steps. Ranges are divided after their second page only, so that short ones cost nothing more.
//
// # Order, memory, resumption
//
// [Scan.Work] processes a page in its reader before the page is delivered. The range can be divided meanwhile.
//
// At most [Options.Buffer] pages are held. In order, an idle reader takes the next Buffer/Readers pages behind a reader instead of
// half of the rest, so that all readers stay near the pages that are due; the range that is due is never kept waiting for
// memory. Without order, pages are delivered as they arrive.
//
// [Scan.Rest] has the rows that the caller has not been given. In order it is one range for each initial range in progress;
// without order there are at most as many ranges as readers and pages in the buffer. Initial ranges that have not begun are a number.
//
// An error ends the scan and is yielded once; the rest then includes every page that was not delivered. Azure Cosmos DB for Table
// returns rows in no order of keys: there, use one reader, without this package.
package rangescan
