package heterogeneous

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/tables"
)

// EntityType is the property that names the type of an entity and its version, such as "Employee@2".
const EntityType = "EntityType"

const (
	versionMark   = "@"
	behindMark    = "A" // the character after '@': all versions of a type sort between the two
	longestName   = 100
	firstVersion  = 1
	latestVersion = math.MaxInt32
)

// tag is the parsed value of EntityType.
type tag struct {
	name    string
	version int
}

// String returns the tag as it is stored.
func (t tag) String() string { return t.name + versionMark + strconv.Itoa(t.version) }

// parseTag is the inverse of String. It also accepts a name without a version, which other programs store: it means version 1.
func parseTag(text string) (tag, bool) {
	name, number, versioned := strings.Cut(text, versionMark)
	t := tag{name, firstVersion}
	if checkName(name) != nil {
		return tag{}, false
	}
	if !versioned {
		return t, true
	}
	version, err := strconv.ParseInt(number, 10, 32)
	t.version = int(version)
	return t, err == nil && version >= firstVersion && t.String() == text
}

// checkName checks the name of a type: letters, digits, '-', '_' and '.'.
func checkName(name string) error {
	if name == "" || len(name) > longestName {
		return fmt.Errorf("the name of the type has %d characters; it must have 1 to %d", len(name), longestName)
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r) {
			return fmt.Errorf("the name of the type contains %q; it must have only letters, digits, '-', '_' and '.'", r)
		}
	}
	return nil
}

// VersionError is the cause of an error: an entity cannot be read because it is of another type, or of a
// version that this program does not know. errors.As finds it.
type VersionError struct {
	Stored         string // the stored EntityType; "" if it is missing or names no type
	Type           string // the type that the program reads
	Oldest, Newest int    // the versions of Type that the program knows
}

// Error names the stored version and the known versions.
func (e *VersionError) Error() string {
	known := tag{e.Type, e.Oldest}.String()
	if e.Oldest < e.Newest {
		known += " to " + strconv.Itoa(e.Newest)
	}
	if e.Stored == "" {
		return fmt.Sprintf("the entity has no %s, which names its version, and this program reads %s; add %[1]s to the projection if the query has one", EntityType, known)
	}
	return fmt.Sprintf("the entity is stored as %s, and this program reads %s; use a build that declares the stored version", e.Stored, known)
}

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
// upgrade must be pure. It gets only stored properties, and after a projection only the selected ones. upgrade must
// not change the entity's key and its index keys, which determine the other rows of the entity.
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
		(*core.Codec)(from).Finish(&tablerow.Row{}, key, old)
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

// carry adds the properties of p for which F has no field to the result of a step, unless the step has set them.
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

// checkSteps returns an error unless the steps, in their order and without a gap, lead to the version whose Go type is entity.
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
		return fmt.Errorf("TypeOptions.Steps has %d steps, and at most %d can lead from version %d to version %d; remove the first %d", len(steps), version-firstVersion, firstVersion, version, firstVersion-expected)
	}
	return nil
}
