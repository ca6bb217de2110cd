// Package inspect reports what a table contains, before a program adopts it, by one parallel scan that writes nothing.
//
//	report, err := inspect.Table(ctx, account.Table("Orders"), nil) // rows, partitions, properties, sizes
//	report.WriteText(os.Stdout)
//	fmt.Println(report.Struct("orders"))                            // a struct for the rows
//
// [As] also reports the rows that a struct could not read. [Repository] also reports which rows are entities of a repository, which index keys two
// rows want, for which it may scan twice, and what Rebuild costs in requests and money.
//
// A report shows keys and names of properties, quoted, never a value. Memory is bounded: a table beyond the limits in Options gets bounds instead
// of counts.
package inspect
