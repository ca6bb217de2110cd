package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablepatterns/tablepatterns/inspect"
)

// inspectCommand returns the command tablepatterns inspect.
func (p *program) inspectCommand() *cobra.Command {
	var asJSON, asStruct, overwrite bool
	var page, pkg string
	c := &cobra.Command{
		Use:   "inspect TABLE",
		Short: "Tell what is in a table: rows by partition, properties, sizes",
		Long: `Tell what is in a table: rows by partition, properties with their types, sizes. It reads the whole table once, and writes nothing.

The report shows keys and names of properties, and no values.`,
		Example: `  tablepatterns inspect Orders
  tablepatterns inspect Orders --html orders.html
  tablepatterns inspect Orders --struct --package orders > order.go
  tablepatterns inspect Orders --json | jq '.properties[].name'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			table, err := p.table(args[0])
			if err != nil {
				return err
			}
			if err := free(page, overwrite); err != nil {
				return err
			}
			show, end := p.progress("read")
			report, failed := inspect.Table(c.Context(), table, &inspect.Options{Partitions: p.partitions, Concurrency: p.concurrency, RowsPerSecond: p.rowsPerSecond, Progress: show})
			end()
			if report == nil || report.Rows == 0 && failed != nil {
				return failed
			}
			if page != "" {
				if err := writeFile(page, overwrite, func() ([]byte, error) { return htmlPage(report) }); err != nil {
					return err
				}
			}
			switch {
			case asStruct:
				_, err = fmt.Fprint(p.stdout, report.Struct(pkg))
			case asJSON:
				encoder := json.NewEncoder(p.stdout)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(report)
			default:
				err = report.WriteText(p.stdout)
			}
			if err != nil {
				return err
			}
			return failed
		},
	}
	flags := c.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON in place of text")
	flags.BoolVar(&asStruct, "struct", false, "print a Go struct for the rows in place of text")
	flags.StringVar(&pkg, "package", "main", "`NAME` of the struct's package")
	flags.StringVar(&page, "html", "", "also write a page of HTML with plots to a new `FILE`")
	flags.BoolVar(&overwrite, "overwrite", false, "overwrite the file if it exists")
	c.MarkFlagsMutuallyExclusive("json", "struct")
	return c
}
