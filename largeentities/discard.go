package largeentities

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Discard takes away the large values of an entity that are lost or damaged for good, so that it can be read, changed and
// deleted again, and returns the names of their properties. A value counts as lost when its blob is not there, or two readings
// give whole answers that are not the value. While the service does not answer, or refuses to, or answers are cut off, nothing is
// discarded. A Stream never is, since it keeps nobody from its entity. What is left of the blobs is deleted. Rows of an index
// whose keys follow from a lost value cannot be found by anybody any more but Repository.Repair. tables.ErrConflict says that
// the entity was changed meanwhile. It is for entities that somebody has looked at: to a program whose property has the wrong
// container, every value is lost. Requests: 1, 1 or 2 for each []byte and string in a blob, and those of a Replace
// where a value was lost.
func Discard[T any](ctx context.Context, repo *patterns.Repository[T], key tables.Key) ([]string, error) {
	if repo == nil {
		return nil, tables.Invalidf("Discard", "the repository is nil")
	}
	lost := &salvage{key: key}
	v, err := repo.Get(context.WithValue(ctx, salvageKey{}, lost), key)
	if err != nil || len(lost.properties) == 0 {
		return nil, err
	}
	if err := repo.Replace(ctx, v); err != nil {
		return nil, err
	}
	return lost.properties, nil
}

// salvage is a read of an entity that leaves out what is lost.
type salvage struct {
	key        tables.Key
	properties []string
}

type salvageKey struct{}

func salvageOf(ctx context.Context) *salvage {
	s, _ := ctx.Value(salvageKey{}).(*salvage)
	return s
}

// leavesOut reports whether a value that read has failed to read is to be left out. A blob that is not there may have been
// replaced just now: then the entity's ETag is another one, and nothing is written. A sealed blob that does not open is not
// lost: it may be the key that is wrong.
func (s *salvage) leavesOut(of driver.Reading, property string, sealed bool, err error, read func() error) bool {
	isLost := func(err error) bool {
		damaged := errors.Is(err, tables.ErrGarbled) && !errors.Is(err, errIncomplete) && !sealed
		return damaged || errors.Is(err, driver.ErrOutdated)
	}
	if s == nil || of.Key != s.key || !isLost(err) || !isLost(read()) {
		return false
	}
	if !slices.Contains(s.properties, property) {
		s.properties = append(s.properties, property)
	}
	return true
}
