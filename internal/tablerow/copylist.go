package tablerow

import (
	"iter"
	"slices"
	"strings"
)

// CopyList names the patterns that have written copies of an entity, as Own.Copies stores it: separated by commas, and with '>' before a
// pattern whose copies are in other partitions.
type CopyList string

const (
	listSeparator = ","
	elsewhere     = ">"
)

// With returns the list with one more pattern with copies in the entity's partition.
func (l CopyList) With(pattern string) CopyList {
	return CopyList(strings.TrimPrefix(string(l)+listSeparator+pattern, listSeparator))
}

// WithElsewhere returns the list with one more pattern with copies in other partitions.
func (l CopyList) WithElsewhere(pattern string) CopyList { return l.With(elsewhere + pattern) }

// Names reports whether the list names a pattern with copies in the entity's partition.
func (l CopyList) Names(pattern string) bool {
	return slices.Contains(slices.Collect(l.all()), pattern)
}

// NamesElsewhere reports whether the list names a pattern with copies in other partitions.
func (l CopyList) NamesElsewhere(pattern string) bool { return l.Names(elsewhere + pattern) }

// Elsewhere yields the patterns with copies in other partitions.
func (l CopyList) Elsewhere() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range l.all() {
			if pattern, is := strings.CutPrefix(name, elsewhere); is && !yield(pattern) {
				return
			}
		}
	}
}

func (l CopyList) all() iter.Seq[string] { return strings.SplitSeq(string(l), listSeparator) }
