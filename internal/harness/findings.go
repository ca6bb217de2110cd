package harness

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RepositoryJob is a job of a repository: Verify, Repair or Rebuild.
type RepositoryJob = func(context.Context, *patterns.JobOptions) (tables.Report, error)

// Findings runs a job and returns its findings, even together with an error.
func Findings(ctx context.Context, job RepositoryJob, options *patterns.JobOptions) (found []patterns.Finding, err error) {
	_, err = job(ctx, withFound(options, func(f patterns.Finding) error {
		found = append(found, f)
		return nil
	}))
	return found, err
}

// Clean runs a job and returns an error at its first finding.
func Clean(ctx context.Context, job RepositoryJob, options *patterns.JobOptions) error {
	_, err := job(ctx, withFound(options, func(f patterns.Finding) error { return fmt.Errorf("found %v", f) }))
	return err
}

func withFound(options *patterns.JobOptions, found func(patterns.Finding) error) *patterns.JobOptions {
	var o patterns.JobOptions
	if options != nil {
		o = *options
	}
	o.Found = found
	return &o
}
