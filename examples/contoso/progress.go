package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// progress tells a person what takes long.
type progress struct {
	w    io.Writer
	last time.Time
}

// say writes a line.
func (p *progress) say(message string) { fmt.Fprintln(p.w, message) }

// bulk reports on the loading of a number of employees, every two seconds and at the end.
func (p *progress) bulk(what string, total int) func(tables.Report) {
	p.last = time.Now()
	return func(b tables.Report) {
		done := int(b.Written + b.Unchanged)
		if time.Since(p.last) < 2*time.Second && done != total {
			return
		}
		p.last = time.Now()
		p.say(fmt.Sprintf("%s: %7s of %s employees, %3d %%, %s a second", what, grouped(done), grouped(total),
			done*100/total, grouped(int(float64(done)/max(b.Elapsed.Seconds(), 1e-9)))))
	}
}
