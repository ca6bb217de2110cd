// Package eachof runs a long job on several repositories, one after another, as one job with one report.
package eachof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tally"
)

// Job is a job on several repositories.
type Job struct {
	Op     string
	Of     string   // what the job is about, beside the repositories: a run with another one cannot continue it
	Names  []string // names of the repositories, sorted, so that another process can resume the run
	Resume string
	// Run runs the job on the repository with this index in Names. resume is the token of an earlier run on it,
	// "" to begin.
	Run      func(ctx context.Context, repository int, resume string, progress func(entity.Progress)) (tally.Report, error)
	Progress func(entity.Progress) // nil for none
}

// token is the position of a run, as Report.Resume encodes it.
type token struct {
	Version    int    `json:"v"`
	Op         string `json:"o"`
	Of         string `json:"p,omitempty"`
	Repository string `json:"r"`           // the repository that the job has reached
	Token      string `json:"t,omitempty"` // token of the job on that repository, "" at its beginning
	Done       tally.Report
}

const version = 1

// All runs the job of each repository. It returns the sum of their reports.
func (j Job) All(ctx context.Context) (tally.Report, error) {
	began := time.Now()
	at := token{Version: version, Op: j.Op, Of: j.Of}
	if j.Resume != "" {
		if err := at.parse(j.Resume, j.Names); err != nil {
			return tally.Report{}, errs.Invalid(j.Op, err)
		}
	}
	report := at.Done
	for i, name := range j.Names {
		if name < at.Repository {
			continue
		}
		at.Repository = name
		inner, err := j.Run(ctx, i, at.Token, func(p entity.Progress) {
			if j.Progress != nil {
				var sum entity.Progress
				tally.Into(j.sum(at, tally.Report{Read: p.Read, Rows: p.Rows, Failed: p.Failed, Resume: p.Resume}, began), &sum)
				j.Progress(sum)
			}
		})
		if err != nil {
			return j.sum(at, inner, began), err
		}
		at.Done, at.Token = plus(at.Done, inner), ""
		report = at.Done
	}
	report.Elapsed = time.Since(began)
	return report, nil
}

// sum returns the report of the whole run. at is its position, and inner the report of the job on the
// repository there.
func (j Job) sum(at token, inner tally.Report, began time.Time) tally.Report {
	sum := plus(at.Done, inner)
	at.Token = inner.Resume
	if at.Token != "" || at.Repository != j.Names[0] {
		sum.Resume = continuation.Encode(&at)
	}
	sum.Elapsed = time.Since(began)
	return sum
}

func (t *token) parse(text string, names []string) error {
	var c token
	switch {
	case continuation.Decode(text, &c) != nil:
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier Store.%s", len(text), t.Op)
	case c.Version != version:
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", c.Version, version)
	case c.Op != t.Op || c.Of != t.Of || !slices.Contains(names, c.Repository):
		return errors.New("JobOptions.Resume is the token of another job, or of a store with other repositories; begin again without it")
	}
	*t = c
	return nil
}

// plus adds the counts of two reports.
func plus(a, b tally.Report) tally.Report {
	names := slices.DeleteFunc([]string{a.Unmatched, b.Unmatched}, func(s string) bool { return s == "" })
	return tally.Report{Read: a.Read + b.Read, Rows: a.Rows + b.Rows, Transactions: a.Transactions + b.Transactions, Written: a.Written + b.Written,
		Deleted: a.Deleted + b.Deleted, Unchanged: a.Unchanged + b.Unchanged, Conflicts: a.Conflicts + b.Conflicts, Failed: a.Failed + b.Failed,
		Candidates: a.Candidates + b.Candidates, Findings: a.Findings + b.Findings, Repaired: a.Repaired + b.Repaired, Marked: a.Marked + b.Marked, Unmatched: strings.Join(names, ", ")}
}
