package patterns

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// RepairOptions are the options of Repair; nil is the same as the zero value.
type RepairOptions struct {
	VerifyOptions
	// DryRun yields what Repair would repair, without writing anything.
	DryRun bool
}

// Repaired is a discrepancy and the result of its repair.
type Repaired struct {
	Discrepancy
	// Done reports that the discrepancy is repaired or, with Schema.Async, queued
	// for a worker.
	Done bool
	// Err is why it was not repaired: ErrDuplicate if two entities require one key, ErrConflict if concurrent writers
	// changed it at every attempt, the decoding error if it cannot be decoded.
	Err error
}

// repairAll is Repository.Repair.
func repairAll(ctx context.Context, r *engine.Engine, o *RepairOptions) iter.Seq2[Repaired, error] {
	return func(yield func(Repaired, error) bool) {
		if o == nil {
			o = &RepairOptions{}
		}
		v, err := newVerifier(r, "Repair", &o.VerifyOptions)
		if err != nil {
			yield(Repaired{}, err)
			return
		}
		v.found = func(ctx context.Context, findings []*finding) error {
			results, err := v.repairAll(ctx, findings, o.DryRun)
			for i := range results {
				if !yield(results[i], nil) {
					return errStopped
				}
			}
			return err
		}
		if err := v.run(ctx); err != nil && err != errStopped {
			yield(Repaired{}, err)
		}
	}
}

// repairAll repairs findings concurrently: spurious rows first, since they may block the rest.
func (v *verifier) repairAll(ctx context.Context, findings []*finding, dryRun bool) ([]Repaired, error) {
	results := make([]Repaired, len(findings))
	var spurious, rest []int
	for i, f := range findings {
		results[i].Discrepancy = f.Discrepancy
		switch {
		case f.Kind == Undecodable:
			results[i].Err = f.Err
		case dryRun:
		case f.Kind == Spurious:
			spurious = append(spurious, i)
		default:
			rest = append(rest, i)
		}
	}
	for _, group := range [][]int{spurious, rest} {
		err := each(ctx, v.options.Concurrency, group, func(ctx context.Context, i int) error {
			err := v.repairAlone(ctx, findings[i])
			results[i].Done, results[i].Err = err == nil, err
			return fatal(ctx, err)
		})
		if err != nil {
			return results, err
		}
	}
	v.state.Repaired += int64(len(slices.DeleteFunc(slices.Clone(results), func(r Repaired) bool { return !r.Done })))
	return results, nil
}
