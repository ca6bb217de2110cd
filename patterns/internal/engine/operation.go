package engine

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Operation is one row of a plan, with the library's own properties as fields.
type Operation struct {
	Verb       wire.Verb
	Key        tables.Key
	IfMatch    azcore.ETag // "" for an insert or an upsert
	properties tables.Properties

	incarnation string // this field and the next five are written unless they are empty
	copies      string
	primary     *string
	layout      string
	outside     outsideFacts
	carried     tables.Properties // properties that only a later version of the library knows, written back as they are
	Meaning
}

// Meaning describes how to handle the failure of a row.
type Meaning struct {
	Pattern string // the pattern that owns the row, "" for the entity's own
	role    role
	owner   azcore.ETag // for roleStale: ETag that the entity had when it had the row
}

// role determines how the failure of an operation is handled.
type role uint8

const (
	roleEntity  role = iota
	roleUnique       // a row that must be new: if it exists, ErrDuplicate
	roleStale        // the removal of a row that may no longer exist
	roleShared       // a row that other entities change as well: retry on conflict
	roleBeside       // a row of Apply's caller, who handles a conflict
	roleClaimed      // an orphaned copy that is claimed under its ETag: retry on conflict
)

// Explain adds the pattern's name to the error of a row, and converts a taken key into ErrDuplicate.
func (m *Meaning) Explain(e *tables.Error) {
	e.Pattern = m.Pattern
	if m.role == roleUnique && errors.Is(e.Kind, tables.ErrExists) {
		e.Kind = tables.ErrDuplicate
	}
}

// MeaningOf returns the Meaning of a row; a plain row has the zero Meaning.
func MeaningOf(w *tables.RawWrite) Meaning {
	if m, ok := w.Meaning.(*Meaning); ok {
		return *m
	}
	return Meaning{}
}

// write returns the row in the form in which it is sent.
func (o *Operation) write() tables.RawWrite {
	w := tables.RawWrite{Verb: o.Verb, Key: o.Key, IfMatch: o.IfMatch, Properties: o.properties, Marked: o.incarnation != ""}
	if o.Meaning != (Meaning{}) {
		w.Meaning = &o.Meaning
	}
	if o.Verb != wire.VerbDelete {
		w.System = o.system()
	}
	return w
}

// system lists the library's own properties of the row, without the write ID.
func (o *Operation) system() (all tables.Properties) {
	set := func(name, value string) { all = append(all, tables.Property{Name: name, Value: tables.String(value)}) }
	all = append(all, o.carried...)
	if o.incarnation != "" {
		set(rows.Incarnation, o.incarnation)
	}
	if o.copies != "" || o.incarnation != "" && o.Verb == wire.VerbMerge {
		set(rows.Copies, o.copies) // a merge without copies must clear the stored list, which would become wrong
	}
	if o.primary != nil {
		set(rows.Primary, *o.primary)
	}
	if o.layout != "" {
		set(rows.Layout, o.layout)
	}
	return o.outside.append(all)
}

// check returns an error for a row that the service would not store.
func (o *Operation) check() error {
	w := o.write()
	if _, e := w.Check(); e != nil {
		return e
	}
	return nil
}

// writesOf converts operations into the writes to send.
func writesOf(operations []Operation) []tables.RawWrite {
	writes := make([]tables.RawWrite, len(operations))
	for i := range operations {
		writes[i] = operations[i].write()
	}
	return writes
}

// Commit writes rows in one transaction.
func Commit(ctx context.Context, t *tables.Table, op string, operations ...Operation) ([]azcore.ETag, error) {
	return Raw(t).Commit(ctx, op, writesOf(operations), rowwriter.NewWriteID())
}
