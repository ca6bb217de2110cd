package heterogeneous

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// EntityType is the property that names the type of an entity and its version, such as "Employee@2".
const EntityType = "EntityType"

const (
	versionMark   = "@"
	behindMark    = "A" // the character after '@', so all versions of a type sort between the two
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

// parseTag parses a stored tag. A name without a version, which other programs store, means version 1. Any other text is
// accepted only if String would return it, so no version has two texts.
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
