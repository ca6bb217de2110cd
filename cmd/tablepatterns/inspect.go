package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"image/color"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

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
			table, err := p.table(p.connection, args[0])
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
				if err := writePage(page, overwrite, report); err != nil {
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

//go:embed page.html
var pageText string

// writePage writes a report as an HTML page.
func writePage(file string, overwrite bool, r *inspect.Report) error {
	page, err := htmlPage(r)
	if err != nil {
		return err
	}
	return writeFile(file, overwrite, page)
}

// htmlPage returns a report as an HTML page without scripts, and without references to other files.
func htmlPage(r *inspect.Report) ([]byte, error) {
	page, err := template.New("page").Funcs(template.FuncMap{
		"count": func(n int64) string { return humanize.Comma(n) },
		"size":  func(n int64) string { return humanize.IBytes(uint64(max(n, 0))) },
		"quote": quote,
		"share": func(n, of int64) string { return fmt.Sprintf("%.2f", 100*float64(n)/float64(max(of, 1))) },
		"date":  func(r *inspect.Report) string { return r.Began.Format("2006-01-02 15:04 UTC") },
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	data := struct {
		*inspect.Report
		RowsBySize, PartitionsByRows template.HTML
	}{Report: r}
	if data.RowsBySize, err = bars(r.RowSizes, func(n int64) string { return strings.Replace(humanize.IBytes(uint64(n)), ".0", "", 1) }, "size of a row, from", "rows"); err != nil {
		return nil, err
	}
	if data.PartitionsByRows, err = bars(r.Partitions.Rows, humanize.Comma, "rows of a partition, from", "partitions"); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, data)
	return b.Bytes(), err
}

// quote returns a key or a name in quotes, shortened.
func quote(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		return fmt.Sprintf("%q...", string(runes[:80]))
	}
	return fmt.Sprintf("%q", text)
}

// The size of a plot, chosen so that its texts are legible on a phone.
const (
	plotWidth  = 12 * vg.Centimeter
	plotHeight = 7 * vg.Centimeter
	mostLabels = 8
)

// bars plots a distribution as SVG; it returns "" for an empty distribution.
func bars(all []inspect.Bucket, unit func(int64) string, x, y string) (template.HTML, error) {
	if len(all) == 0 {
		return "", nil
	}
	p := plot.New()
	style := func(s *draw.TextStyle, size vg.Length) {
		s.Font.Variant, s.Font.Size, s.Font.Weight = "Sans", size, font.WeightNormal
	}
	style(&p.X.Label.TextStyle, 11)
	style(&p.Y.Label.TextStyle, 11)
	style(&p.X.Tick.Label, 10)
	style(&p.Y.Tick.Label, 10)
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Y.Min = 0
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(low, high)
		for i, t := range ticks {
			if ticks[i].Label = ""; !t.IsMinor() && t.Value == float64(int64(t.Value)) {
				ticks[i].Label = humanize.Comma(int64(t.Value))
			}
		}
		return ticks
	})
	values, labels := make(plotter.Values, len(all)), make([]string, len(all))
	every := (len(all) + mostLabels - 1) / mostLabels
	for i, b := range all {
		values[i] = float64(b.Count)
		if i%every == 0 {
			labels[i] = unit(b.From)
		}
	}
	chart, err := plotter.NewBarChart(values, plotWidth*3/4/vg.Length(len(all)+1))
	if err != nil {
		return "", err
	}
	chart.LineStyle.Width = 0
	chart.Color = color.RGBA{R: 0x1f, G: 0x6f, B: 0xb2, A: 0xff}
	p.Add(chart)
	p.NominalX(labels...)
	p.X.Min, p.X.Max, p.Y.Max = -0.7, float64(len(all))-0.3, p.Y.Max*1.05 // room for the labels at the ends
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	text := b.String()
	at := strings.Index(text, "<svg")
	if at < 0 {
		return "", fmt.Errorf("the plot has no svg element")
	}
	return template.HTML(text[at:]), nil // it is safe: its texts are numbers and units, and the plotting library escapes them
}
