package engine

import (
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Work is one change of one entity on its way through the repository, as a member of a Set.
type Work struct {
	Op     string
	Change driver.Change       // without what seenBy adds for a pattern
	State  *driver.ChangeState // the state that the change shares with its patterns
	Entity any                 // the value whose Meta is updated, nil for none
	Etag   azcore.ETag         // the ETag under which the entity is written; Old is the state with this ETag
	Old    *core.State
	base   entity.Properties // for a merge: the entity's stored properties, if the merge had to read them
	merged entity.Properties // for a merge: the given properties in stored form

	merges    entity.Properties // for a merge: State.Given before patterns have completed the entity
	completed []string          // for a merge: the properties that patterns have changed to complete the entity
	Fetched   Fetched           // rows that a bulk write or job has already read, so that rebase need not
	engine    *Engine
	number    int                     // number of the change in the caller's transaction, from 1; 0 for a single verb
	forgets   []string                // patterns with copies in other partitions that the change removes from the entity's list
	asStored  bool                    // a job writes the entity again as it is stored: the job has set Change.Stored
	given     any                     // the caller's value, if Entity is a copy of it that patterns complete or edit
	after     *snapshot               // the state that the transaction stored, nil if unknown
	written   func()                  // called after the commit, nil for nothing
	rest      []func(context.Context) // what transforms have left to do

	first int         // index of the entity's own row in the present plan
	next  *core.State // state of the entity after the present plan

	standIn     bool                   // Change.Key is a substitute for one that is still unknown
	incarnation string                 // the incarnation that Apply's caller has given, "" for a new one
	beside      *driver.Beside         // rows of Apply's caller, nil for none
	copies      EntityCopies           // copies of Change.Entity, cached at first use
	claimed     map[string]azcore.ETag // orphaned copies that the change claims, by row key

	companionOf string // the pattern that has added the change, "" for the caller's own
	lent        any    // the copy of the entity that GetIn has last returned, nil after a pattern has staged it
	edited      bool   // a pattern has replaced the entity by a copy that GetIn returned
	unedited    any    // the entity before that replacement
}

// seenBy returns the change as a pattern gets it.
func (w *Work) seenBy(p *driver.Implementation) *driver.Change {
	c := w.Change
	c.Prior = priorOf(w.Old).patterns[p.Name]
	if w.Old != nil && w.companionOf == "" {
		c.PriorWriteID = w.Old.WriteID
	}
	return driver.NewChange(p.Name, w.State, c)
}

// Copies returns the copies of Entity. It makes a new cache if a pattern has replaced Entity since the last
// call.
func (w *Work) Copies() EntityCopies {
	if w.copies.entity != w.Change.Entity || w.copies.near == nil {
		w.copies = keptCopiesOf(w.Change.Entity)
	}
	return w.copies
}

// Begin gives a change its ID.
func (w *Work) Begin() {
	w.Change.ID = tablerow.NewWriteID()
	if w.State == nil {
		w.State = &driver.ChangeState{}
	}
}

// snapshot is an entity as it was at one moment; both fields are nil if the entity did not exist.
type snapshot struct {
	entity any
	row    *tablerow.Row // the entity's own row, with every property as stored
	copies EntityCopies
}

// snapshotAfter returns the snapshot of an entity after a committed change, or nil if the entity's ETag is
// unknown.
func snapshotAfter(w *Work, etag azcore.ETag) *snapshot {
	if w.Change.Kind == driver.ChangeDelete {
		return &snapshot{}
	}
	if etag == "" {
		return nil
	}
	row := &tablerow.Row{Key: w.Change.Key, ETag: etag, WriteID: w.next.WriteID, Properties: w.Change.Stored,
		Own: tablerow.Own{Incarnation: w.next.Incarnation, Copies: w.next.Copies, Later: w.next.Carried}}
	return &snapshot{entity: w.Change.Entity, copies: w.Copies(), row: row}
}

// shows reports whether a row has the version of the snapshot; nil means that the entity does not exist.
func (s *snapshot) shows(row *tablerow.Row) bool {
	if s.row == nil || row == nil {
		return s.row == row
	}
	return s.row.ETag == row.ETag
}

// prior is what the next change of an entity needs to know of the entity as it was last read or written.
type prior struct {
	rows     []noted       // the entity's rows except the first
	Orphans  []noted       // rows of patterns that the entity's row does not list; they may be orphaned copies
	outside  []outsideCopy // copies in other partitions
	patterns map[string][]string
}

// outsideCopy is a copy in another partition.
type outsideCopy struct {
	pattern string
	key     entity.Key
	kept    entity.Properties // of a projection: what it holds; nil if that is not known
}

// priorOf returns the prior state of an entity, never nil.
func priorOf(s *core.State) *prior {
	if s == nil {
		return &prior{}
	}
	if p, ok := s.Prior.(*prior); ok {
		return p
	}
	return &prior{}
}

// several reports whether the entity has rows beside its first.
func (p *prior) several() bool { return len(p.rows)+len(p.outside) > 0 }

// noted is what identifies a row of an entity between a read and the next change.
type noted struct{ pattern, key, version string }

// note appends rows to list.
func note(list []noted, rows []tablerow.Row) []noted {
	for i := range rows {
		list = append(list, noted{rows[i].Pattern, rows[i].Key.Row, rows[i].Version})
	}
	return list
}

// lists reports whether an entity's noted rows have a row key.
func lists(all []noted, rowKey string) bool {
	return slices.ContainsFunc(all, func(n noted) bool { return n.key == rowKey })
}

// outsideOf returns a pattern's copies in other partitions.
func (p *prior) outsideOf(pattern string) []outsideCopy {
	var copies []outsideCopy
	for _, c := range p.outside {
		if c.pattern == pattern {
			copies = append(copies, c)
		}
	}
	return copies
}

// isCopy reports whether the entity was read through a copy that does not say all about the entity's own row.
func isCopy(s *core.State) bool { return !s.Current && (s.Version != "" || s.Row != s.Key.Row) }
