package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the report for people, some 60 lines of at most 120 columns. Keys and names are quoted.
func (r *Report) WriteText(w io.Writer) error {
	t := &printer{tabs: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	r.head(t)
	r.partitions(t)
	r.properties(t)
	r.typed(t)
	r.schema(t)
	if t.err != nil {
		return t.err
	}
	return t.tabs.Flush()
}

// printer keeps the first error.
type printer struct {
	tabs *tabwriter.Writer
	err  error
}

func (t *printer) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tabs, format+"\n", args...)
	}
}

func (t *printer) heading(text string) {
	t.line("")
	t.line("%s", text)
}

func (r *Report) head(t *printer) {
	about := ""
	if !r.Partitions.Exact {
		about = "about "
	}
	t.line("Table %s: %s, %s, in %s", r.Table, some(r.Rows, "row"), size(r.Bytes), about+some(r.Partitions.Count, "partition"))
	if !r.Complete {
		t.line("NOT COMPLETE: the run has ended early, and all numbers are of what it has read")
	}
	if !r.Oldest.IsZero() {
		t.line("last written: the oldest row %s, the newest %s", r.Oldest.UTC().Format(time.DateTime), r.Newest.UTC().Format(time.DateTime))
	}
	t.line("read with %s in %v", some(r.Requests, "request"), time.Duration(float64(r.Elapsed)*float64(time.Second)).Round(time.Millisecond))
	if len(r.Warnings) > 0 {
		t.heading("To decide")
		for _, w := range r.Warnings {
			t.line("  ! %s", w)
		}
	}
}

func (r *Report) partitions(t *printer) {
	if r.Rows == 0 {
		return
	}
	t.heading("Largest partitions")
	for _, p := range r.Partitions.Largest {
		rows := some(p.Rows, "row")
		if p.Uncertain > 0 {
			rows = count(p.Rows-p.Uncertain) + " to " + rows
		}
		t.line("  %s\t%s\t%s\t%.1f %%", short(p.Partition), rows, size(p.Bytes), 100*float64(p.Rows)/float64(r.Rows))
	}
	if r.Partitions.Exact && len(r.Partitions.Rows) > 0 {
		t.heading("Partitions by rows")
		buckets(t, r.Partitions.Rows, count)
	}
	if r.Garbled > 0 {
		t.heading("Rows with a value that cannot be read")
		t.line("  %s: %s", count(r.Garbled), list(r.GarbledExamples))
	}
	t.heading("Rows by size")
	buckets(t, r.RowSizes, size)
	t.heading("Largest rows")
	for i, row := range r.LargestRows {
		if i == 3 {
			break
		}
		t.line("  %s\t%s", row.Key, size(row.Bytes))
	}
}

const barWidth = 40

func buckets(t *printer, all []Bucket, unit func(int64) string) {
	most := int64(1)
	for _, b := range all {
		most = max(most, b.Count)
	}
	for _, b := range all {
		bar := strings.Repeat("#", int((b.Count*barWidth+most-1)/most))
		t.line("  %s up to %s\t%s\t%s", unit(b.From), unit(b.To), count(b.Count), bar)
	}
}

func (r *Report) properties(t *printer) {
	if l := r.Library; l.rows()+l.Entities > 0 {
		t.heading("Rows of this library")
		t.line("  %s, %s, %s, of other partitions %s and %s, %s",
			some(l.Entities, "entity"), some(l.Copies, "copy"), some(l.FurtherRows, "further row"), some(l.OutsideCopies, "copy"), some(l.Shared, "shared row"))
	}
	if len(r.Properties) == 0 {
		return
	}
	t.heading("Properties of " + some(r.Entities, "entity"))
	for _, p := range r.Properties {
		var types []string
		for _, each := range p.Types {
			text := each.Type
			if len(p.Types) > 1 {
				text = count(each.Rows) + " " + text
			}
			types = append(types, text)
		}
		absent := "in all"
		if p.Absent > 0 {
			absent = count(p.Absent) + " lack it"
		}
		t.line("  %s\t%s\t%s\t%s, the largest %s", name(p.Name), strings.Join(types, ", "), absent, size(p.Bytes), size(p.Largest))
	}
}

func (r *Report) typed(t *printer) {
	if r.Type == nil {
		return
	}
	t.heading(fmt.Sprintf("%s reads %s, and refuses %s", r.Type.Name, some(r.Type.Read, "entity"), count(r.Type.Refused)))
	for _, p := range r.Type.Problems {
		t.line("  %s: %s", some(p.Rows, "row"), p.Reason)
		t.line("    such as %s", list(p.Examples))
	}
	if r.Type.OtherProblems > 0 {
		t.line("  and %s for more reasons", some(r.Type.OtherProblems, "value"))
	}
	for _, z := range r.Type.Zero {
		does := "would become its zero value"
		if z.Refused {
			does = "would get a zero value, which cannot be stored"
		}
		t.line("  field %s: without %s in %s, which %s", z.Field, name(z.Property), some(z.Absent, "entity"), does)
	}
	for _, u := range r.Type.Unknown {
		t.line("  no field for %s, in %s", name(u.Property), some(u.Rows, "entity"))
	}
}

func (r *Report) schema(t *printer) {
	s := r.Schema
	if s == nil {
		return
	}
	t.heading("Repository " + s.Repository)
	t.line("  rows that are its entities: %s; copies and further rows: %s; neither: %s", count(s.Own), count(s.Library), count(s.Neither))
	if s.OtherKeys > 0 {
		t.line("  another key than Schema.Key returns: %s, such as %s", some(s.OtherKeys, "entity"), list(s.OtherKeysExamples))
	}
	if s.Sealed > 0 {
		t.line("  in a form that only the repository reads, for Verify: %s", some(s.Sealed, "entity"))
	}
	for _, x := range s.Refused {
		t.line("  %s refuses %s: %s", x.Pattern, some(x.Rows, "entity"), x.Reason)
		t.line("    such as %s", list(x.Examples))
	}
	for _, k := range s.TakenKeys {
		var of []string
		for _, p := range k.Patterns {
			if p == "" {
				p = "a row that stands there"
			}
			of = append(of, p)
		}
		t.line("  %s: %s rows want %s in %s: %s", strings.Join(of, " and "), count(k.Wanted), k.Key, k.Table, list(k.By))
	}
	if s.OtherTakenKeys > 0 {
		t.line("  and %s more that several rows want", some(s.OtherTakenKeys, "key"))
	}
	c := s.Rebuild
	if c.Fill == 0 {
		t.line("  Rebuild: nothing to fill, %s", some(c.Least.All(), "request"))
		return
	}
	t.line("  Rebuild: %s to fill, %s to %s, %s to %s", some(c.Fill, "entity"), count(c.Least.All()), some(c.Most.All(), "request"),
		price(c.Least.Price), price(c.Most.Price)+" "+c.Prices.Currency)
	t.line("    prices: %s", c.Prices.Source)
}

// String quotes the key.
func (k Key) String() string { return "(" + short(k.Partition) + ", " + short(k.Row) + ")" }

// longest is in characters.
const longest = 60

// short quotes and shortens a text: it may be a whole document, or contain control sequences of a terminal.
func short(text string) string {
	if runes := []rune(text); len(runes) > longest {
		return strconv.QuoteToGraphic(string(runes[:longest])) + "..."
	}
	return strconv.QuoteToGraphic(text)
}

// name is short without needless quotes.
func name(text string) string {
	quoted := short(text)
	if len(text) <= longest && quoted == `"`+text+`"` {
		return text
	}
	return quoted
}

func list(keys []Key) string {
	var all []string
	for i, k := range keys {
		if i == 3 {
			all = append(all, "...")
			break
		}
		all = append(all, k.String())
	}
	return strings.Join(all, ", ")
}

func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, at := float64(n), 0
	for f >= 1024 && at+1 < len(units) {
		f, at = f/1024, at+1
	}
	if at == 0 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f %s", f, units[at])
	}
	return fmt.Sprintf("%.1f %s", f, units[at])
}

// price shows a sum below a cent, too.
func price(p float64) string {
	if p > 0 && p < 0.01 {
		return "< 0.01"
	}
	return fmt.Sprintf("%.2f", p)
}

// some adds the noun, in the plural unless n is 1.
func some(n int64, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "y"); ok {
			noun = stem + "ie"
		}
		noun += "s"
	}
	return count(n) + " " + noun
}
