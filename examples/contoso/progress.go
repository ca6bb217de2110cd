package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// progress tells a person what takes long: on a terminal in one line that changes, else in a line now and then.
type progress struct {
	w     io.Writer
	live  bool
	every time.Duration
	last  time.Time
	open  bool // a line on the terminal is not ended
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, every: 2 * time.Second}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.live, p.every = true, 100*time.Millisecond
		}
	}
	return p
}

// say writes a line.
func (p *progress) say(message string) {
	p.end()
	fmt.Fprintln(p.w, message)
}

// bulk reports on the loading of a number of employees.
func (p *progress) bulk(what string, total int) func(tables.Report) {
	p.last = time.Now()
	return func(b tables.Report) {
		done := b.Written + b.Unchanged
		finished := done == int64(total)
		if time.Since(p.last) < p.every && !finished {
			return
		}
		p.last = time.Now()
		line := fmt.Sprintf("%s: %7s of %s employees, %3d %%, %s a second", what, grouped(int(done)), grouped(total),
			done*100/int64(total), grouped(int(float64(done)/max(b.Elapsed.Seconds(), 1e-9))))
		if !p.live {
			fmt.Fprintln(p.w, line)
			return
		}
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.open = true
	}
}

// end ends the line that changes.
func (p *progress) end() {
	if p.open {
		fmt.Fprintln(p.w)
		p.open = false
	}
}
