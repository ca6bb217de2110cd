package engine

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Change is a driver.Change whose T is unknown at compile time, with the repository's own data about it.
type Change struct {
	Kind   driver.ChangeKind
	Key    tables.Key
	ID     string
	Entity any
	Given  any
	Stored tables.Properties
	DryRun bool
	State  *driver.ChangeState // the state that the change shares with its patterns

	standIn     bool           // Key is a substitute for one that is still unknown
	incarnation string         // given by the caller, else ""
	beside      *driver.Beside // rows of Apply's caller, nil for none

	copies  EntityCopies // copies of Entity, cached at first use
	Old     *tables.State
	gone    map[string]azcore.ETag // rows that were missing when they were to be deleted, with the ETag of the entity that had them
	claimed map[string]azcore.ETag // orphaned copies that the change claims, by row key
}

// Prior is what a pattern's Prior returned for the entity's old state, nil for an insert.
func (c *Change) Prior(pattern string) []string { return priorOf(c.Old).patterns[pattern] }

// Copies returns the copies of the present Entity: patterns that complete it replace the value.
func (c *Change) Copies() EntityCopies {
	if c.copies.entity != c.Entity || c.copies.near == nil {
		c.copies = keptCopiesOf(c.Entity)
	}
	return c.copies
}

// Begin gives a change its ID.
func (w *Work) Begin() {
	w.Change.ID = rowwriter.NewWriteID()
	if w.Change.State == nil {
		w.Change.State = &driver.ChangeState{}
	}
}
