package logtail

import "time"

// Entry is what makes a value an entry of a log. Embed it, beside tables.Meta, in the type that a Log keeps. Both fields are
// stored as properties of their names and make the row key; they never change once the entry was stamped. A caller who must
// not append twice, whatever crashes, saves them with the entry before Append.
type Entry struct {
	// LoggedAt is the time by which the entry is sorted, to 100 ns; Stamp sets it to the present if it is zero.
	LoggedAt time.Time
	// LogID tells apart the entries of one tick; Stamp draws one if it is empty. An id of the caller's own, such as a
	// message's, is as good: entries of one time and id are the same entry.
	LogID string
}

func (e *Entry) logEntry() *Entry { return e }

// entered is a value with an embedded Entry.
type entered interface{ logEntry() *Entry }

// entryOf returns v's Entry, nil where T has none.
func entryOf[T any](v *T) *Entry {
	if e, ok := any(v).(entered); ok {
		return e.logEntry()
	}
	return nil
}
