package patterns

import "context"

// repairAll repairs findings concurrently: spurious rows first, since they may block the rest.
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
		err := each(ctx, v.options.Concurrency, group, func(ctx context.Context, f *finding) error {
			err := v.repairAlone(ctx, f)
			f.Repaired, f.NotRepaired = err == nil, err
			return fatal(ctx, err)
		})
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
