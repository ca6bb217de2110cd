// Package inspect reports what a table contains, before a program adopts it, by one parallel scan that writes nothing. [Repository] scans a
// second time if two rows may want one index key.
//
//	report, err := inspect.Table(ctx, account.Table("Orders"), nil) // rows, partitions, properties, sizes
//	report.WriteText(os.Stdout)
//	fmt.Println(report.Struct("orders"))                            // a struct for the rows
//
// [As] also reports the rows that a struct could not read. [Repository] also reports which rows are entities
// of a repository, which index keys two rows want, and what Rebuild costs in requests and money.
//
// A report shows keys and names of properties, quoted, and never a value. The memory of a run is bounded for
// every table: if a table exceeds the limits in Options, the report has bounds instead of counts, and says
// so.
package inspect
