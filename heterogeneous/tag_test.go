package heterogeneous

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTagsAreOneToOne: what a tag prints parses to it, and what parses is what it prints, but for a bare name.
func TestTagsAreOneToOne(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9._-]{1,100}`)
	rapid.Check(t, func(t *rapid.T) {
		given := tag{name.Draw(t, "name"), rapid.IntRange(firstVersion, latestVersion).Draw(t, "version")}
		if back, ok := parseTag(given.String()); !ok || back != given {
			t.Fatalf("%q parses to %v, %v", given.String(), back, ok)
		}
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Z@0-9+-]{0,8}`), rapid.Just(given.String()+"x")).Draw(t, "text")
		if parsed, ok := parseTag(text); ok && parsed.String() != text && (parsed.version != firstVersion || parsed.name != text) {
			t.Fatalf("%q parses to %v", text, parsed)
		}
	})
	for _, text := range []string{"", "@", "@1", "A@", "A@0", "A@-1", "A@+1", "A@01", "A@1@1", "A @1", "A@2147483648", "A@1 ", "Ä@1", strings.Repeat("A", 101)} {
		if parsed, ok := parseTag(text); ok {
			t.Errorf("%q parses to %v", text, parsed)
		}
	}
	if parsed, ok := parseTag("Employee"); !ok || parsed != (tag{"Employee", 1}) {
		t.Errorf("a bare name is %v", parsed)
	}
}

// TestIsSpansAllVersions: the texts of all versions of a type lie where Type.Is looks, and no other type's.
func TestIsSpansAllVersions(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9._-]{1,4}`)
	version := rapid.IntRange(firstVersion, latestVersion)
	rapid.Check(t, func(t *rapid.T) {
		own, other := name.Draw(t, "own"), tag{name.Draw(t, "other"), version.Draw(t, "version")}
		is := func(text string) bool { return text == own || text > own+versionMark && text < own+behindMark }
		if !is(tag{own, other.version}.String()) || is(other.String()) != (own == other.name) {
			t.Fatalf("%s and %s", own, other)
		}
	})
}
