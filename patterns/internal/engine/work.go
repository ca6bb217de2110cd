package engine

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Change is a change of one entity, with what only the repository knows of it.
type Change struct {
	driver.Change

	standIn     bool           // Key stands for one that is not known yet
	incarnation string         // given by the caller, else ""
	beside      *driver.Beside // rows of Apply's caller, nil for none

	Old     *tables.State
	gone    map[string]azcore.ETag // rows that turned out not to be there when they were to be deleted, with the ETag of the entity that had them
	adopted map[string]azcore.ETag // orphaned copies that the change claims, by row key
}

// shared is what the change and its patterns share.
func (c *Change) shared() *driver.ChangeState { return driver.StateOf(pass, &c.Change) }

// Begin gives a change its ID, and its patterns what they remembered.
func (w *Work) Begin() {
	w.Change.ID = rowwriter.NewWriteID()
	w.Change.shared().Prior = func(pattern string) []string { return priorOf(w.Change.Old).patterns[pattern] }
}
