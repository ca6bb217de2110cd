package heterogeneous

import (
	"context"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Upgrade writes the entities of older versions as the current version, each under its ETag, while programs read and write. If
// Schema.Rows is set and the type has no steps, it also adds EntityType to entities without it. Upgrade writes the entities of a
// partition in change sets. If one entity makes a set fail, Upgrade writes that entity alone, so an entity that programs change
// constantly delays only itself. You can interrupt Upgrade at any time and run it again, or resume it with JobOptions.Resume.
//
// An entity that cannot be upgraded does not end the run: Upgrade gives it to JobOptions.Found, as
// Undecodable if a step refuses it and Different otherwise, with the error in Finding.Err. Upgrade returns
// ErrWiring if Patterns, Lag, Rows or DryRun is set. In the Report, even together with an error, Read counts
// the entities that were not of the current version, Written those that this run has written as the current
// version, and Failed those that could not be upgraded; concurrent writers have written or deleted the others.
// The counts do not include the runs that this run resumes. You can remove the steps after a complete run
// without failures, if no program writes older versions any more.
//
// Requests: 1 for each page of at most 1,000 older rows, and 1 for each change set of 100 rows, so 11 for
// 1,000 old entities of a partition without other patterns; 2 more for each conflict, and with several pages
// the additional requests of Query.AllParallel. If the type has no steps, it reads all rows of the type.
func (t *Type[T]) Upgrade(ctx context.Context, options *patterns.JobOptions) (tables.Report, error) {
	const op = "Upgrade"
	host, err := t.repository.Host(op, typeName)
	if err != nil {
		return tables.Report{}, err
	}
	if t.options.ByKey {
		return tables.Report{}, nil
	}
	job := &patterns.RewriteJob{Op: op, Pattern: typeName, Kind: driver.ChangeReplace, Where: t.older(),
		Outdated: func(_ tables.Key, p tables.Properties, _ bool) (outdated, known bool) { return t.upgradable(p), true }}
	return patterns.RewriteAll(ctx, rows.Open, host, job, options)
}

// older returns the conditions of the rows that may not be of the current version. A row without EntityType
// matches no condition on it, so all rows are read if such rows may need an upgrade.
func (t *Type[T]) older() []tables.Condition {
	if len(t.options.Steps) == 0 {
		return nil
	}
	return []tables.Condition{t.Is(), tables.Ne(EntityType, t.tag.String())}
}

// upgradable reports whether a row belongs to the type and, according to EntityType, is not of the current version.
func (t *Type[T]) upgradable(p tables.Properties) bool {
	value := p.Get(EntityType)
	if value.IsNull() {
		return len(t.options.Steps) == 0 && t.host().Rows() != (compoundkey.Span{})
	}
	text, _ := value.Text()
	stored, ok := parseTag(text)
	return ok && t.reads(stored) && !t.current(p)
}
