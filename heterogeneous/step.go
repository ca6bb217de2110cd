package heterogeneous

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Step converts an entity of one version of a type to the next version.
type Step struct {
	version  int
	from, to reflect.Type
	known    []string // the properties that F has fields for; nil if F accepts any
	run      func(key tables.Key, p tables.Properties) (tables.Properties, error)
	err      error
}

// From returns the step from a version to the next one. F is the Go type of the entity in that version, and G
// its type in the next version; either may be tables.Entity, the property bag. Properties for which F has no
// field are kept unchanged, unless G sets them.
//
// upgrade must be pure. It gets only stored properties, and after a projection only the selected ones. It
// must not change the entity's key and its index keys, which determine the other rows of the entity.
func From[F, G any](version int, upgrade func(old *F) (*G, error)) Step {
	s := Step{version: version, from: reflect.TypeFor[F](), to: reflect.TypeFor[G]()}
	from, err := tables.NewCodec[F]()
	if err != nil {
		s.err = err
		return s
	}
	to, err := tables.NewCodec[G]()
	if err != nil {
		s.err = err
		return s
	}
	if upgrade == nil {
		s.err = fmt.Errorf("the upgrade function of the step from version %d is nil; give one to From", version)
		return s
	}
	s.known = from.PropertyNames()
	s.run = func(key tables.Key, p tables.Properties) (tables.Properties, error) {
		old := new(F)
		if err := from.Decode(p, old); err != nil {
			return nil, err
		}
		tables.CodecOf(rows.Open, from).Finish(&tables.RawRow{}, key, old)
		next, err := upgrade(old)
		if err != nil {
			return nil, err
		}
		upgraded, err := to.Encode(next)
		if err != nil {
			return nil, err
		}
		return s.carry(p, upgraded), nil
	}
	return s
}

// carry adds the properties for which F has no field to the result of a step.
func (s *Step) carry(p, upgraded tables.Properties) tables.Properties {
	if s.known == nil {
		return upgraded
	}
	for _, property := range p {
		if !slices.Contains(s.known, property.Name) && !upgraded.Has(property.Name) {
			upgraded = append(upgraded, property)
		}
	}
	return upgraded
}

// checkSteps returns an error unless the steps, in their order, lead without a gap to a version of an entity type.
func checkSteps(steps []Step, version int, entity reflect.Type) error {
	bag := reflect.TypeFor[tables.Entity]()
	next, expected := entity, version
	for _, s := range slices.Backward(steps) {
		expected--
		switch {
		case s.err != nil:
			return fmt.Errorf("the step from version %d: %w", s.version, s.err)
		case s.run == nil:
			return fmt.Errorf("a Step is the zero value; make it with From")
		case s.version != expected:
			return fmt.Errorf("the step to version %d is from version %d; steps must be in order without a gap, and the last must lead to version %d", expected+1, s.version, version)
		case s.to != next && s.to != bag && next != bag:
			return fmt.Errorf("the step from version %d returns a %s, but version %d is a %s; both must be one type", s.version, s.to, expected+1, next)
		}
		next = s.from
	}
	if expected < firstVersion {
		return fmt.Errorf("there are %d steps to version %d, and versions begin with %d; remove the first steps", len(steps), version, firstVersion)
	}
	return nil
}
