package patterns

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// change is a change of one entity, with what only the repository knows of it.
type change struct {
	driver.Change

	standIn     bool           // Key stands for one that is not known yet
	incarnation string         // given by the caller, else ""
	beside      *driver.Beside // rows of Apply's caller, nil for none

	old     *tables.State
	gone    map[string]azcore.ETag // rows that turned out not to be there when they were to be deleted, with the ETag of the entity that had them
	adopted map[string]azcore.ETag // orphaned copies that the change claims, by row key
}

// shared is what the change and its patterns share.
func (c *change) shared() *driver.ChangeState { return driver.StateOf(pass, &c.Change) }

// begin gives a change its ID, and its patterns what they remembered.
func (w *work) begin() {
	w.change.ID = newWriteID()
	w.change.shared().Prior = func(pattern string) []string { return priorOf(w.change.old).patterns[pattern] }
}
