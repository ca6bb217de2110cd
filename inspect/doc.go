// Package inspect tells what is in a table, before a program adopts it: one parallel scan, and no write. [Repository]
// scans a second time if two rows may want one index key.
//
//	report, err := inspect.Table(ctx, account.Table("Orders"), nil) // rows, partitions, properties, sizes
//	report.WriteText(os.Stdout)
//	fmt.Println(report.Struct("orders"))                            // a struct for the rows
//
// [As] also tells what a struct would not read, and [Repository] what a repository would: which rows are its own, which index keys two
// rows want, and what Rebuild costs in requests and money.
//
// A report shows keys and names of properties, quoted, and never a value. The memory of a run is bounded, whatever the table holds:
// beyond the limits in Options, the report has bounds in place of counts, and says so.
package inspect
