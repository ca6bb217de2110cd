package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// sample is a report whose texts could break the page.
func sample() *report {
	const hostile = `</script><script>alert("1")</script>&`
	r := &report{Account: hostile, Emulator: "simulator", Employees: 5000, Departments: 10}
	for i := range 20 {
		r.Patterns = append(r.Patterns, &shown{show: show{Pattern: fmt.Sprint("Inter-partition secondary index ", i), What: fmt.Sprint(hostile, i)},
			With: spent{1 + i, 2, 3}, Without: &spent{1000 * (i + 1), 1 + i, 4}})
		r.Growth = append(r.Growth, &growth{Question: r.Patterns[i].What, Points: []growthPoint{
			{500, cost{spent: spent{Searched: 1}}, cost{spent: spent{Searched: 500 + i}}}, {20_000, cost{spent: spent{Searched: 2 + i}}, cost{spent: spent{Searched: 20_000}}}}})
	}
	r.Growth = r.Growth[:4]
	r.Patterns[19].Without = nil
	r.Sections = []*section{{Title: "Events", Loads: []partitionLoad{{"by the hour", "2014082209", 1800, .9}, {"by a hash", hostile, 450, .2}, {"by a hash", "event_1", 440, .2}, {"by the employee", "event_000001", 30, .01}}}}
	return r
}

// pageOf is the page of a report, written as the program does.
func pageOf(t *testing.T, r *report) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	assert.Check(t, r.save(assert.Must[*os.File](t)(newPage(name))))
	return string(assert.Must[[]byte](t)(os.ReadFile(name)))
}

// TestPage: each part has a plot and a table with the same numbers, which are those of the summary, and nothing is loaded from elsewhere.
func TestPage(t *testing.T) {
	r := sample()
	checkPage(t, r, pageOf(t, r))
}

var (
	elements = regexp.MustCompile(`<(canvas|table|script|link|img|iframe)\b[^>]*>`)
	data     = regexp.MustCompile(`(?m)^const charts = (\[.*\]);$`)
	cells    = regexp.MustCompile(`<td class="n">([^<]*)</td>`)
	tableOf  = regexp.MustCompile(`(?s)<table>(.*?)</table>`)
)

func checkPage(t *testing.T, r *report, page string) {
	t.Helper()
	count := map[string]int{}
	for _, m := range elements.FindAllStringSubmatch(page, -1) {
		count[m[1]]++
		if strings.Contains(m[0], "src=") || strings.Contains(m[0], "href=") {
			t.Errorf("the page loads %s", m[0])
		}
	}
	if count["canvas"] != 4 || count["table"] != 4 || count["script"] != 2 || len(count) != 3 {
		t.Errorf("the page has %v", count)
	}
	if strings.Contains(strings.ToLower(chartLibrary), "</script") || !strings.Contains(page, "Released under the MIT License") {
		t.Error("the library ends its script, or has lost its license")
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") || strings.Contains(page, "alert(\"1\")") {
		t.Error("the page loads something, or a text is not escaped")
	}
	m := data.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("no data of the charts")
	}
	var charts []*chart
	if err := json.Unmarshal([]byte(m[1]), &charts); err != nil {
		t.Fatal(err)
	}
	tables := tableOf.FindAllStringSubmatch(page, -1)
	for i, c := range charts {
		var plotted, tabled []string
		for _, v := range valuesOf(c) {
			plotted = append(plotted, grouped(v))
		}
		for _, cell := range cells.FindAllStringSubmatch(tables[i][1], -1) {
			tabled = append(tabled, cell[1])
		}
		if len(plotted) == 0 || strings.Join(plotted, " ") != strings.Join(tabled, " ") {
			t.Errorf("%s: the plot has %v, the table %v", c.Title, plotted, tabled)
		}
	}
	checkCharts(t, r, charts)
}

// valuesOf returns the numbers of a plot in the order of its table: line by line, or bar by bar.
func valuesOf(c *chart) (all []int) {
	if c.Lines {
		for _, s := range c.Series {
			for _, v := range s.Values {
				all = append(all, *v)
			}
		}
		return all
	}
	for i := range c.Labels {
		for _, s := range c.Series {
			if s.Values[i] != nil {
				all = append(all, *s.Values[i])
			}
		}
	}
	return all
}

// checkCharts compares the plots with the report.
func checkCharts(t *testing.T, r *report, charts []*chart) {
	t.Helper()
	byID := map[string]*chart{}
	for _, c := range charts {
		byID[c.ID] = c
	}
	for _, row := range r.Patterns {
		for id, of := range map[string]func(*spent) int{"rows": func(x *spent) int { return x.Searched }, "requests": func(x *spent) int { return x.Requests }} {
			at := -1
			for i, label := range byID[id].Labels {
				if label == row.Pattern {
					at = i
				}
			}
			if compared := row.Without != nil && of(&row.With) > 0 && of(row.Without) > 0; compared != (at >= 0) {
				t.Errorf("%s of %s: compared %v, at %d", id, row.Pattern, compared, at)
			} else if compared && (*byID[id].Series[0].Values[at] != of(&row.With) || *byID[id].Series[1].Values[at] != of(row.Without)) {
				t.Errorf("%s of %s: other numbers than in the summary", id, row.Pattern)
			}
		}
	}
	if growth := byID["growth"]; len(growth.Series) < 2 || len(growth.Labels) != len(r.Growth[0].Points) {
		t.Errorf("the growth has %d series at %v", len(growth.Series), growth.Labels)
	}
	if hot := byID["partitions"]; *hot.Series[0].Values[0] != 1800 || hot.Series[1].Values[0] != nil {
		t.Error("the busiest partition is not the first")
	}
}

// seen is what the browser tells of the page.
type seen struct {
	Width, ScrollWidth int
	Errors             []string
	Canvases           []struct {
		ID           string
		Width, Space int
		Drawn        bool
	}
	SmallestFont float64
}

const frame = `<!DOCTYPE html><body style="margin:0"><iframe id="page" style="border:0" width="%d" height="900" srcdoc="%s"></iframe><pre id="seen"></pre><script>
addEventListener("load", () => setTimeout(() => {
  const w = document.getElementById("page").contentWindow, d = w.document, root = d.documentElement;
  const fonts = [...d.querySelectorAll("body *")].filter(e => e.textContent.trim()).map(e => parseFloat(w.getComputedStyle(e).fontSize));
  document.getElementById("seen").textContent = "seen:" + JSON.stringify({
    Width: root.clientWidth, ScrollWidth: root.scrollWidth, Errors: w.errors, SmallestFont: Math.min(...fonts),
    Canvases: [...d.querySelectorAll("canvas")].map(c => ({ ID: c.id, Width: Math.round(c.getBoundingClientRect().width), Space: c.parentElement.clientWidth,
      Drawn: new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size > 3 })),
  }) + ":seen";
}, 300));
</script>`

// TestPageInBrowser: in Chromium no script of the page fails, all plots are drawn, and at the width of a phone nothing reaches beyond it. It
// needs Chromium or Chrome on PATH, and fails without it.
func TestPageInBrowser(t *testing.T) {
	if !harness.Thorough() {
		t.Log("only with TABLEPATTERNS_THOROUGH=1")
		return
	}
	var chromium string
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
		}
	}
	if chromium == "" {
		t.Fatal("chromium is not on PATH: apt-get install chromium")
	}
	page := strings.Replace(pageOf(t, sample()), "<style>", `<script>window.errors = []; addEventListener("error", e => errors.push(e.message));
addEventListener("securitypolicyviolation", e => errors.push("refused to load " + e.blockedURI));</script><style>`, 1)
	for _, width := range []int{360, 1280} {
		file := filepath.Join(t.TempDir(), "frame.html")
		assert.Check(t, os.WriteFile(file, fmt.Appendf(nil, frame, width, html.EscapeString(page)), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--window-size=1300,1000",
			"--virtual-time-budget=4000", "--dump-dom", "file://"+file)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		_, text, _ := strings.Cut(string(dom), `"seen">seen:`)
		text, _, _ = strings.Cut(text, ":seen")
		var x seen
		if err := json.Unmarshal([]byte(html.UnescapeString(text)), &x); err != nil {
			t.Fatalf("%v in %q\n%s", err, text, &stderr)
		}
		if len(x.Errors) > 0 || x.ScrollWidth > x.Width || x.Width > width || x.SmallestFont < 14 || len(x.Canvases) != 4 {
			t.Errorf("at %d pixels: %+v", width, x)
		}
		for _, c := range x.Canvases {
			if !c.Drawn || c.Width == 0 || c.Width > c.Space {
				t.Errorf("at %d pixels, %s is %d wide in %d, drawn: %v", width, c.ID, c.Width, c.Space, c.Drawn)
			}
		}
	}
}

// TestPageThatCannotBeWritten: a wrong name ends the run before it begins, so nothing of its result is lost.
func TestPageThatCannotBeWritten(t *testing.T) {
	find := func(context.Context, options, *progress) (*place, error) {
		t.Error("a storage service was looked for")
		return nil, errors.New("none")
	}
	err := run(t.Context(), []string{"-report", filepath.Join(t.TempDir(), "none", "report.html")}, find, nil, io.Discard, io.Discard)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
