package patterns

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
)

// repairAll repairs findings concurrently: spurious rows first, since they may block the other repairs. It
// tries to repair findings in groups, and repairs the remaining ones one by one.
func (v *verifier) repairAll(ctx context.Context, findings []*finding) error {
	var spurious, rest []*finding
	for _, f := range findings {
		switch {
		case f.Kind == Undecodable:
			f.NotRepaired = f.Err
		case v.options.DryRun:
		case f.Kind == Spurious:
			spurious = append(spurious, f)
		default:
			rest = append(rest, f)
		}
	}
	for _, group := range [][]*finding{spurious, rest} {
		err := v.repairSets(ctx, group)
		if err == nil {
			alone := slices.DeleteFunc(slices.Clone(group), func(f *finding) bool { return f.Repaired })
			err = pagejob.Each(ctx, v.options.Concurrency, alone, func(ctx context.Context, f *finding) error {
				err := v.repairAlone(ctx, f)
				f.Repaired, f.NotRepaired = err == nil, err
				return fatal(ctx, err)
			})
		}
		for _, f := range group {
			if f.Repaired {
				v.state.Repaired++
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
