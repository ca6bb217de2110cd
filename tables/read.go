package tables

import (
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
)

// RawRow is a row as the service holds it. The reader of pages reuses it: Clone what must outlive the call.
type RawRow struct {
	Key       Key
	ETag      azcore.ETag
	Timestamp time.Time
	// Answered is the service's time when it answered a point read, zero for a row of a page.
	Answered time.Time
	// WriteID is the ID of the write that left the row, "" where it is not stored.
	WriteID string
	// System are the library's other properties, Properties the caller's.
	System, Properties Properties
	// Problem says which value of a row in a page could not be read, and why; Properties lacks that value.
	// Nil means no problem.
	Problem error
	// Lossy is Meta.Lossy.
	Lossy bool
}

// Clone returns a copy that shares nothing with the reader's memory.
func (r *RawRow) Clone() *RawRow {
	c := *r
	c.System, c.Properties = slices.Clone(r.System), slices.Clone(r.Properties)
	return &c
}

// set fills r with a row that was read.
func (r *RawRow) set(row *rowreader.Row[Property]) {
	*r = RawRow{
		Key: Key{row.Partition, row.Row}, ETag: azcore.ETag(row.ETag), Timestamp: row.Timestamp, WriteID: row.WriteID,
		System: row.System, Properties: row.Properties, Problem: row.Problem, Lossy: row.Lossy,
	}
}

// accessProperty gives the internal packages access to a property; they know edm.Value only.
func accessProperty(p *Property) (name *string, value *edm.Value) {
	return &p.Name, (*edm.Value)(&p.Value)
}
