package largeentities

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Discard removes the large values of an entity that are lost or damaged for good, so that it can be read,
// changed and deleted again, and returns the names of their properties. A value counts as lost if in two
// reads its blob does not exist, has another length or hash than the pointer says, or does not belong to the
// entity; a sealed value only if its blob does not exist. If the service does not respond or refuses the
// request, or if a response is cut off, Discard removes nothing. It never removes a Stream, because a lost
// Stream does not prevent reading its entity. It deletes the damaged blobs. If the keys of an index depend on
// a lost value, only Repository.Repair finds the old rows of that index. tables.ErrConflict means that the
// entity was changed meanwhile. Check the entity before you call Discard: if the property is configured with
// the wrong container, every value looks lost. Requests: 1, 1 or 2 for each []byte and string in a blob, and
// those of a Replace if a value was lost.
func Discard[T any](ctx context.Context, repo *patterns.Repository[T], key tables.Key) ([]string, error) {
	if repo == nil {
		return nil, tables.Wiringf("Discard", "", "the repository is nil; give one")
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

// salvage is a read of an entity that leaves out lost values.
type salvage struct {
	key        tables.Key
	properties []string
}

type salvageKey struct{}

func salvageOf(ctx context.Context) *salvage {
	s, _ := ctx.Value(salvageKey{}).(*salvage)
	return s
}

// leavesOut reports whether to leave out a value whose read failed. A writer may just have replaced a missing
// blob; then the entity's ETag has changed, and the write of Discard fails. A sealed blob that cannot be
// opened does not count as lost, because the key may be wrong.
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
