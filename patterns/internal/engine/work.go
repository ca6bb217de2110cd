package engine

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Change is a driver.Change whose T is not known at compile time, with what only the repository knows of it.
type Change struct {
	Kind   driver.ChangeKind
	Key    tables.Key
	ID     string
	Entity any
	Given  any
	Stored tables.Properties
	DryRun bool
	State  *driver.ChangeState // what the change shares with its patterns

	standIn     bool           // Key stands for one that is not known yet
	incarnation string         // given by the caller, else ""
	beside      *driver.Beside // rows of Apply's caller, nil for none

	copies  EntityCopies // of Entity, once they were asked for
	Old     *tables.State
	gone    map[string]azcore.ETag // rows that turned out not to be there when they were to be deleted, with the ETag of the entity that had them
	claimed map[string]azcore.ETag // orphaned copies that the change claims, by row key
}

// Prior is what a pattern's Prior returned of the entity's old state, nil for an insert.
func (c *Change) Prior(pattern string) []string { return priorOf(c.Old).patterns[pattern] }

// Copies are those of the entity as it is now: patterns that complete it put another value in its place.
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
