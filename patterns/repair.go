package patterns

import (
	"context"
	"iter"
	"slices"
)

// RepairOptions are the options of Repair; nil is the same as the zero value.
type RepairOptions struct {
	VerifyOptions
	// DryRun yields what would be repaired, and writes nothing.
	DryRun bool
}

// Repaired is a discrepancy and what became of it.
type Repaired struct {
	Discrepancy
	// Done says that it is no more. A runner that leaves effects to workers has taken it on then.
	Done bool
	// Err is why it could not be repaired: ErrDuplicate where two entities ask for one key, ErrConflict where it was changed
	// all the time, the reason where it cannot be decoded.
	Err error
}

// Repair is Verify that mends what it finds, and yields what became of each. What cannot be mended is told and does not end it.
// An error of the service comes once, last.
//
// Each discrepancy is mended by a write that is right whenever it arrives, so that a crash, a repetition or a rival does no
// harm and another Repair finds what is left:
//
//   - what is missing or different in the entity's partition: the entity is written again as it was read, under its ETag, with
//     all its rows. A row in the way that belongs to another entity is left alone;
//   - what is spurious: deleted under the ETag with which it was found to be wrong. A claim that says something else than its name
//     is made right where a copy has a claim of this name, since without it the copy would have none;
//   - a copy outside that is missing or different: by an intent, as with every write of the entity;
//   - what an auditor holds: by Mender.Mend or by writing the entity again; of an IntentContributor by an intent.
//
// What cannot be decoded is only reported. Requests: those of Verify, and for each discrepancy 2 to 5 to look at it again, and
// those of one write of the entity, or 1 delete; for a claim that says something else than its name 1 for each page of its partition.
func (r *Repository[T]) Repair(ctx context.Context, o *RepairOptions) iter.Seq2[Repaired, error] {
	return func(yield func(Repaired, error) bool) {
		if o == nil {
			o = &RepairOptions{}
		}
		v, err := r.newVerifier("Repair", &o.VerifyOptions)
		if err != nil {
			yield(Repaired{}, err)
			return
		}
		v.found = func(ctx context.Context, findings []*finding) error {
			results, err := v.mendAll(ctx, findings, o.DryRun)
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

// mendAll mends findings, several at once: what is spurious first, since it may be in the way of the rest.
func (v *verifier[T]) mendAll(ctx context.Context, findings []*finding, dryRun bool) ([]Repaired, error) {
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
			err := v.mendAlone(ctx, findings[i])
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
