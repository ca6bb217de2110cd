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
	behindMark    = "A" // the character after '@', so that all versions of a type lie between the two
	longestName   = 100
	firstVersion  = 1
	latestVersion = math.MaxInt32
)

// tag is what EntityType says.
type tag struct {
	name    string
	version int
}

// String is the tag as it is stored.
func (t tag) String() string { return t.name + versionMark + strconv.Itoa(t.version) }

// parseTag reads what is stored. A name without a version, as other programs store it, is version 1. Each text that is a tag
// but that one is the String of it, so that no two texts are one version.
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

// checkName holds the rules for the name of a type: letters, digits, '-', '_' and '.'.
func checkName(name string) error {
	if name == "" || len(name) > longestName {
		return fmt.Errorf("the name of a type has 1 to %d characters, and this one %d", longestName, len(name))
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r) {
			return fmt.Errorf("the name of a type has letters, digits, '-', '_' and '.', and this one %q", r)
		}
	}
	return nil
}

// VersionError is why an entity cannot be read as what it was to be: it is of another type, or of a version that this program
// does not know. errors.As finds it.
type VersionError struct {
	Stored         string // what EntityType says; "" where it is missing or names no type
	Type           string // that the program reads
	Oldest, Newest int    // versions of it that the program knows
}

// Error tells what is stored and what is known.
func (e *VersionError) Error() string {
	known := tag{e.Type, e.Oldest}.String()
	if e.Oldest < e.Newest {
		known += " to " + strconv.Itoa(e.Newest)
	}
	if e.Stored == "" {
		return fmt.Sprintf("it has no %s to tell its version, and this program reads %s; a projection selects it", EntityType, known)
	}
	return fmt.Sprintf("it is stored as %s, and this program reads %s", e.Stored, known)
}
