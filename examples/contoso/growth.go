package main

import (
	"context"
	"fmt"
	"io"
)

// growth is what one question costs with more and more employees.
type growth struct {
	Question string        `json:"question"`
	Points   []growthPoint `json:"points"`
}

type growthPoint struct {
	Employees int  `json:"employees"`
	With      cost `json:"with"`
	Without   cost `json:"without"`
}

// measureGrowth runs the scenarios that only read, at each of the sizes, on simulators: requests and rows are the same on every service,
// and there it is quick. What it returns are the questions for which the pattern searches fewer rows.
func measureGrowth(ctx context.Context, o options, p *progress) ([]*growth, error) {
	byQuestion := map[string]*growth{}
	var all []*growth
	for _, n := range o.growth {
		at, err := newSimulator()
		if err != nil {
			return nil, err
		}
		p.say(fmt.Sprintf("Measuring the reads with %s employees, on a simulator", grouped(n)))
		c, err := openCompany(options{employees: n, seed: o.seed}, at, &progress{w: io.Discard})
		if err != nil {
			return nil, err
		}
		c.repeat = 1
		r := &report{}
		if err := c.play(ctx, reads(), r, io.Discard); err != nil {
			return nil, err
		}
		for _, s := range r.Sections {
			for _, l := range s.Lookups {
				g := byQuestion[l.Question]
				if g == nil && l.With.Searched < l.Without.Searched {
					g = &growth{Question: l.Question}
					byQuestion[l.Question], all = g, append(all, g)
				}
				if g != nil {
					g.Points = append(g.Points, growthPoint{n, l.With, l.Without})
				}
			}
		}
	}
	return all, nil
}

func (r *report) writeGrowth(w io.Writer) {
	if len(r.Growth) == 0 {
		return
	}
	fmt.Fprintf(w, "\nRows searched as the company grows, on a simulator\n")
	head := ""
	for _, point := range r.Growth[0].Points {
		head += fmt.Sprintf("%14s", grouped(point.Employees))
	}
	fmt.Fprintf(w, "  %-*s%s employees, with the pattern / without it\n", nameWidth, "", head)
	for _, g := range r.Growth {
		line := ""
		for _, point := range g.Points {
			line += fmt.Sprintf("%14s", grouped(point.With.Searched)+" / "+grouped(point.Without.Searched))
		}
		fmt.Fprintf(w, "  %-*s%s\n", nameWidth, g.Question, line)
	}
}
