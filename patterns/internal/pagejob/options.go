package pagejob

import (
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// Partitions sorts partition keys and removes duplicates; nil stays nil.
func Partitions(partitions []string) ([]string, error) {
	if partitions == nil {
		return nil, nil
	}
	for _, p := range partitions {
		if err := rows.CheckKey("partition key", p); err != nil {
			return nil, err
		}
	}
	sorted := slices.Sorted(slices.Values(partitions))
	return append([]string{}, slices.Compact(sorted)...), nil
}

// Patterns sorts the names of attached patterns; nil stays nil.
func Patterns(names []string, attached []*engine.Pattern) ([]string, error) {
	if names == nil {
		return nil, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(attached, func(p *engine.Pattern) bool { return p.Name == name }) {
			return nil, fmt.Errorf("JobOptions.Patterns names %q, but no attached pattern has this name; give the names of attached patterns", name)
		}
	}
	return append([]string{}, slices.Sorted(slices.Values(names))...), nil
}

// Heavy reports whether an entity of a repository can take much more memory than its own row, because it has large values in blobs or
// further rows. A job holds only a few such entities at once.
func Heavy(r *engine.Engine) bool {
	return r.Layout != nil || slices.ContainsFunc(r.Transformers, func(p *engine.Pattern) bool { return p.Transform.Stage == driver.StageSpill })
}

// MostHeavy is the maximum number of heavy entities that a reader, or a set, holds at once.
const MostHeavy = 50
