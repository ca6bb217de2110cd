package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"slices"
)

//go:embed page.html
var pageText string

//go:embed chart.umd.min.js
var chartLibrary string // Chart.js 4.6.1, chart.umd.min.js of the npm package chart.js without its source map, under the MIT License

// chart is one plot of the page and the table below it, which has the same numbers.
type chart struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Note   string   `json:"-"`
	Lines  bool     `json:"lines"` // else bars
	Log    bool     `json:"log"`   // scale of the numbers
	First  string   `json:"first"` // what the labels are
	Unit   string   `json:"unit"`  // what the numbers are
	Labels []string `json:"labels"`
	Detail []string `json:"detail"` // of each label, in the table
	Series []series `json:"series"`
}

// series is the numbers of one way or design, a number or nil for each label.
type series struct {
	Name   string `json:"name"`
	Color  int    `json:"color"`
	Dashed bool   `json:"dashed"`
	Values []*int `json:"values"`
}

// byPattern is a chart of the summary: of what was spent with each pattern, and without it, where both are known.
func (r *report) byPattern(id, title, unit string, of func(*spent) int) *chart {
	c := &chart{ID: id, Title: title, Log: true, First: "pattern", Unit: unit, Series: []series{{Name: "with the pattern"}, {Name: "without", Color: 1}}}
	for _, row := range r.Patterns {
		if row.Without == nil || of(&row.With) == 0 || of(row.Without) == 0 {
			continue
		}
		c.Labels, c.Detail = append(c.Labels, row.Pattern), append(c.Detail, row.What)
		for i, x := range []*spent{&row.With, row.Without} {
			c.Series[i].Values = append(c.Series[i].Values, new(of(x)))
		}
	}
	return c
}

// byEmployees is the chart of growth, of those questions that the summary has.
func (r *report) byEmployees() *chart {
	c := &chart{ID: "growth", Title: "Rows searched as the company grows", Lines: true, Log: true, First: "employees", Unit: "rows",
		Note: "The same questions with more and more employees, measured on a simulator. What has a pattern for it, a line, is answered from the rows that are found; without it, dashed, the service goes through the department or the table."}
	for _, row := range r.Patterns {
		for _, g := range r.Growth {
			if g.Question != row.What {
				continue
			}
			color := len(c.Series) / 2
			with, without := series{Name: row.Pattern, Color: color}, series{Name: row.Pattern + ", without", Color: color, Dashed: true}
			c.Labels = nil
			for _, point := range g.Points {
				c.Labels = append(c.Labels, grouped(point.Employees))
				with.Values, without.Values = append(with.Values, new(point.With.Searched)), append(without.Values, new(point.Without.Searched))
			}
			c.Series = append(c.Series, with, without)
		}
	}
	return c
}

// byPartition is the chart of hot partitions: the busiest ones of each design.
func (r *report) byPartition() *chart {
	c := &chart{ID: "partitions", Title: "Writes to the busiest partitions", First: "partition", Unit: "writes in the busiest second",
		Note: "Rows whose keys rise in time, all written in one second. A partition an hour, the prepend/append anti-pattern, takes them all."}
	for _, s := range r.Sections {
		shown := map[string]int{}
		for _, load := range s.Loads {
			if shown[load.Design]++; shown[load.Design] > partitions {
				continue
			}
			if shown[load.Design] == 1 {
				c.Series = append(c.Series, series{Name: load.Design, Color: len(c.Series), Values: make([]*int, len(c.Labels))})
			}
			c.Labels, c.Detail = append(c.Labels, load.Partition), append(c.Detail, fmt.Sprintf("%s, %.1f %% of the target", load.Design, 100*load.Share))
			for i := range c.Series {
				var writes *int
				if i == len(c.Series)-1 {
					writes = new(load.Writes)
				}
				c.Series[i].Values = append(c.Series[i].Values, writes)
			}
		}
		for design, n := range shown {
			if n > partitions {
				c.Note += fmt.Sprintf(" Of the %d partitions %s, %d are shown.", n, design, partitions)
			}
		}
	}
	return c
}

// charts are those for which the run has numbers.
func (r *report) charts() []*chart {
	rows := r.byPattern("rows", "Rows searched, with each pattern and without", "rows", func(x *spent) int { return x.Searched })
	rows.Note = "The rows that Azure goes through to answer a question. The scale is logarithmic: each step to the right is ten times as many."
	requests := r.byPattern("requests", "Requests, with each pattern and without", "requests", func(x *spent) int { return x.Requests })
	requests.Note = "Some patterns pay for fewer rows with more requests, and some the other way round."
	all := []*chart{rows, requests, r.byEmployees(), r.byPartition()}
	return slices.DeleteFunc(all, func(c *chart) bool { return len(c.Labels) == 0 })
}

// save writes the report to the file, as one page of HTML which loads nothing, and closes the file.
func (r *report) save(f *os.File) error {
	page := template.Must(template.New("page").Funcs(template.FuncMap{
		"grouped": grouped,
		"seconds": func(ms float64) string { return tenths(ms / 1000) },
		"service": func() string { return cmp.Or(r.Emulator, "an account") },
	}).Parse(pageText))
	err := page.Execute(f, struct {
		*report
		Charts  []*chart
		Library template.JS // ours, of a file without "</script"; everything else is escaped
	}{r, r.charts(), template.JS(chartLibrary)})
	return errors.Join(err, f.Close())
}

// newPage creates the file of the page. Before a run, so that a name that cannot be written does not cost the run's result.
func newPage(name string) (*os.File, error) {
	if name == "" {
		return os.CreateTemp("", "contoso-*.html")
	}
	return os.Create(name)
}
