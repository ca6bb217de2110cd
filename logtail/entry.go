package logtail

import "time"

// Entry makes a struct an entry of a log. Embed it, next to tables.Meta, in the type that a Log stores. Both fields are
// stored as properties of their names and make the row key; they never change after the entry was stamped. If you must
// not append twice even after a crash, call Stamp and save both fields before Append.
type Entry struct {
	// LoggedAt is the time by which entries are sorted, to 100 ns; Stamp sets it to the current time if it is zero.
	LoggedAt time.Time
	// LogID distinguishes the entries of one tick; if it is empty, Stamp generates an id of 26 characters.
	// You can set an id of your own, such as that of a message: entries with the same time and id are the
	// same entry.
	LogID string
}

func (e *Entry) logEntry() *Entry { return e }

// entered is a value with an embedded Entry.
type entered interface{ logEntry() *Entry }

// entryOf returns v's Entry, or nil if T does not embed an Entry.
func entryOf[T any](v *T) *Entry {
	if e, ok := any(v).(entered); ok {
		return e.logEntry()
	}
	return nil
}
