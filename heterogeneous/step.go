package heterogeneous

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Step turns an entity of one version of a type into one of the next.
type Step struct {
	version  int
	from, to reflect.Type
	known    []string // the properties of from, nil for any
	run      func(key tables.Key, p tables.Properties) (tables.Properties, error)
	err      error
}

// From is the step from a version to the next one: F is the entity as the version has it, G as the next one does. Either may
// be tables.Entity, the property bag. Properties that F does not know are carried over as they are, unless G sets them.
//
// upgrade is pure, and gets what is stored only; of a projection, what was asked for. It must not change what follows from
// the entity outside of its own row: its key, and its keys in indexes.
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
		s.err = fmt.Errorf("the step from version %d has no function", version)
		return s
	}
	s.known = from.PropertyNames()
	s.run = func(key tables.Key, p tables.Properties) (tables.Properties, error) {
		old := new(F)
		if err := from.Decode(p, old); err != nil {
			return nil, err
		}
		setSystem(old, key, time.Time{})
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

// carry adds to what a step has made what it did not know of.
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

// checkSteps tells whether steps lead, one after the other, to a version of an entity type. They are in their order.
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
			return fmt.Errorf("the step to version %d is from version %d: each step is to the next version, and the last to version %d", expected+1, s.version, version)
		case s.to != next && s.to != bag && next != bag:
			return fmt.Errorf("the step from version %d makes a %s, and version %d is a %s", s.version, s.to, expected+1, next)
		}
		next = s.from
	}
	if expected < firstVersion {
		return fmt.Errorf("the step's version is too low; versions begin with %d", firstVersion)
	}
	return nil
}
