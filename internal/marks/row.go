package marks

import (
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The times of the protocol. Term is part of the stored format: a cleaner of an older build waits for the term that it knows.
const (
	Term   = 30 * time.Second // from before the first mark until after the commit
	Margin = 5 * time.Second  // what a request may take until it arrives, and the change's clock may lose
	Grace  = 5 * time.Second  // what the clocks of the service may differ by
)

// Deadline returns when a change that began before its first mark must have sent its commit. began needs a monotonic clock reading.
func Deadline(began time.Time) time.Time { return began.Add(Term - Margin) }

// Key is the key of a row. It converts to an entity.Key.
type Key struct{ Partition, Row string }

// Site is the key of a row in a table of the account.
type Site struct {
	Table string
	Key
}

// Row is a copy of an entity, in a partition of an index, without its content.
type Row struct {
	// Names are the entities that may have the key: the owner and, if a change set passes the key, its taker. The last one is that
	// of the acquirer. A row that is no copy has none.
	Names    []Key
	Version  string // on a settled full copy: the ETag of the owner's own row that it was made of
	Mark     string // the ID of the last change or job that marked the row; a row without it is settled
	Acquirer string // the ID of the change that takes the key
	Base     string // the ETag of its entity from which that change started; "" for an insert

	ETag     string    // "" if the row does not exist
	Written  time.Time // the row's Timestamp
	Answered time.Time // the Date of the answer that contained the row
}

// Marked returns a row that sends its readers to an entity. Rebuild, Repair, Copy and Restore write it.
func Marked(owner Key, id string) Row { return Row{Names: []Key{owner}, Mark: id} }

// Settled returns a settled row of an entity; a copy that does not store the ETag has none.
func Settled(owner Key, etag string) Row { return Row{Names: []Key{owner}, Version: etag} }

// nameSeparator stands between the parts of the key in rows.Next; no key contains it.
const nameSeparator = "\t"

// Parse returns what the library's own properties of a stored row say. get returns the text of a property, and whether there is one.
func Parse(get func(name string) (text string, ok bool)) Row {
	var r Row
	if partition, ok := get(rows.Partition); ok {
		primary, _ := get(rows.Primary)
		r.Names = append(r.Names, Key{partition, primary})
		next, _ := get(rows.Next)
		if partition, row, ok := strings.Cut(next, nameSeparator); ok {
			r.Names = append(r.Names, Key{partition, row})
		}
	}
	r.Version, _ = get(rows.Version)
	r.Mark, _ = get(rows.Mark)
	r.Acquirer, _ = get(rows.Acquirer)
	r.Base, _ = get(rows.Base)
	return r
}

// Each calls put for each property that Parse reads.
func (r *Row) Each(put func(name, text string)) {
	if len(r.Names) > 0 {
		put(rows.Partition, r.Names[0].Partition)
		put(rows.Primary, r.Names[0].Row)
	}
	if len(r.Names) > 1 {
		put(rows.Next, r.Names[1].Partition+nameSeparator+r.Names[1].Row)
	}
	for _, p := range [...]struct{ name, text string }{{rows.Version, r.Version}, {rows.Mark, r.Mark}, {rows.Acquirer, r.Acquirer}, {rows.Base, r.Base}} {
		if p.text != "" {
			put(p.name, p.text)
		}
	}
}

// Expired reports whether no change that has marked the row can still commit, by the service's clock alone.
func (r *Row) Expired() bool {
	return !r.Written.IsZero() && !r.Answered.IsZero() && r.Answered.Sub(r.Written) >= Term+Grace
}

// over reports whether the change that acquires the key can no longer commit. now is its entity, as read after the row.
func (r *Row) over(now Seen, without Rules) bool {
	switch {
	case r.Acquirer == "" || without.Has(WaitTerm) || r.Expired():
		return true
	case r.Base == "" && !without.Has(InsertByTerm):
		return false // the entity may have been inserted and deleted again since, and then this insert still succeeds
	}
	return r.Base != now.ETag
}

// Filter returns the filter of a query with conditions, for the rows of an index: marked copies hold old content or none, so the caller
// evaluates the conditions on their entities.
func Filter(conditions string) string {
	return "(" + conditions + ") or " + rows.Mark + " gt ''"
}
