// Package tablerow has the one form of a row: a pattern derives it, the write path checks it and encodes it into the body of a request,
// and a reader returns it.
package tablerow

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Row is a row on its way to the service or from it. A reader of pages reuses the row that it returns: Clone what must outlive the call.
type Row struct {
	Key        entity.Key
	Properties entity.Properties // the program's
	Own        Own               // the library's

	// How to write the row.
	Verb    wire.Verb
	IfMatch azcore.ETag // "" for an insert or an upsert
	Pattern string      // the pattern that the row belongs to, "" for an entity's own rows; errors name it
	Role    Role
	Lists   azcore.ETag // for RoleStale: the ETag under which the entity's own row listed this row
	Version string      // of a further row, as in driver.FurtherRow; "" if unknown, and for other rows
	Plain   bool        // Properties has the library's own properties too: the row is written as it is, without a write ID
	Made    string      // of a copy in another partition: the write ID of the entity of which it was made, which it stores instead of its own

	// What the service says about the row.
	ETag      azcore.ETag
	Timestamp time.Time
	Answered  time.Time // the service's time when it answered the read
	WriteID   string    // ID of the last write, "" if the row does not contain one
	Problem   error     // which value could not be read, and why; Properties lacks that value
	Lossy     bool      // Meta.Lossy
}

// Own has the library's own properties of a row, but for the write ID.
type Own struct {
	Incarnation string
	Copies      string
	IsCopy      bool   // the row is not an entity's own
	Primary     string // row key of the entity's own row, on a copy or further row
	Layout      string // if an entity has several rows: the layout's directory on the first row, rows.FurtherRow on the others
	IsShared    bool   // the row belongs to several entities
	Shared      string // name of the pattern that keeps such a row
	Outside     Outside
	Later       entity.Properties // properties that only a later version of the library knows, written back as they are
}

// Outside has the properties of a copy outside of its entity's partition; package marks says what they mean.
type Outside struct {
	Is        bool
	Partition string // partition key of the entity
	Version   string
	Mark      string
	Acquirer  string
	Base      string
	Next      string
}

// Role says how the failure of a row that is written is handled.
type Role uint8

// The roles.
const (
	RoleEntity  Role = iota
	RoleUnique       // a row that must be new: if it exists, ErrDuplicate
	RoleStale        // the removal of a row that may no longer exist
	RoleShared       // a row that other entities change as well: plan again on a conflict
	RoleBeside       // a row of Apply's caller, who handles the conflict
	RoleClaimed      // an orphaned copy that is claimed under its ETag: plan again on a conflict
)

// Explain adds the row's pattern to its failure, and converts a taken key into ErrDuplicate.
func (r *Row) Explain(e *entity.Error) *entity.Error {
	e.Pattern = r.Pattern
	if r.Role == RoleUnique && errors.Is(e.Kind, entity.ErrExists) {
		e.Kind = entity.ErrDuplicate
	}
	return e
}

// Clone returns a copy that shares nothing with the reader's memory.
func (r *Row) Clone() *Row {
	c := *r
	c.Properties, c.Own.Later = slices.Clone(r.Properties), slices.Clone(r.Own.Later)
	return &c
}

// With returns the row with other properties.
func (r *Row) With(p entity.Properties) *Row {
	c := *r
	c.Properties = p
	return &c
}

// IsNearCopy reports whether the row belongs to an entity of its own partition but is not the entity's own row: it is
// a copy, or a further row.
func (r *Row) IsNearCopy() bool { return r.Own.IsCopy && !r.Own.IsShared && !r.Own.Outside.Is }

// NewWriteID makes an ID that no other write has.
func NewWriteID() string { return rand.Text() }

// AnyWriteID has the length of every write ID, to compute the size of rows.
const AnyWriteID = "00000000000000000000000000"

// IDSize returns the number of bytes that the write ID adds to the size of a row.
func IDSize() int { return edm.PropertySize(rows.WriteID, edm.String(AnyWriteID)) }

const mostOwn = 14 // a row has at most so many properties of the library, but for those of later versions

// AppendOwn appends the library's own properties of a row, without the write ID.
func (r *Row) AppendOwn(to entity.Properties) entity.Properties {
	o := &r.Own
	text := func(name, value string) { to = append(to, entity.Property{Name: name, Value: entity.String(value)}) }
	to = append(to, o.Later...)
	if o.Incarnation != "" {
		text(rows.Incarnation, o.Incarnation)
	}
	if o.Copies != "" || o.Incarnation != "" && r.Verb == wire.VerbMerge {
		text(rows.Copies, o.Copies) // a merge without copies must clear the stored list, which would become wrong
	}
	if o.IsShared {
		text(rows.Shared, o.Shared)
	} else if o.IsCopy {
		text(rows.Primary, o.Primary)
	}
	if o.Layout != "" {
		text(rows.Layout, o.Layout)
	}
	if o.Outside.Is {
		text(rows.Partition, o.Outside.Partition)
	}
	for _, p := range [...]struct{ name, text string }{{rows.Version, o.Outside.Version}, {rows.Mark, o.Outside.Mark},
		{rows.Acquirer, o.Outside.Acquirer}, {rows.Base, o.Outside.Base}, {rows.Next, o.Outside.Next}} {
		if p.text != "" {
			text(p.name, p.text)
		}
	}
	return to
}

// Check returns the size of the row in bytes, by the service's formula, and refuses a row that the service would not store.
func (r *Row) Check() (size int, e *entity.Error) {
	size, _, e = r.pass(func(string, edm.Value) {})
	return size, e
}

// Encode checks the row, and appends its JSON with the write ID, if the row has room for it; carries reports whether it has. Of a row to
// delete it appends nothing.
func (r *Row) Encode(dst []byte, writeID string) (_ []byte, carries bool, e *entity.Error) {
	if r.Verb != wire.VerbDelete {
		dst = edm.AppendQuoted(append(dst, `{"PartitionKey":`...), r.Key.Partition)
		dst = edm.AppendQuoted(append(dst, `,"RowKey":`...), r.Key.Row)
	}
	size, n, e := r.pass(func(name string, value edm.Value) { dst = edm.AppendProperty(append(dst, ','), name, value) })
	if e != nil || r.Verb == wire.VerbDelete {
		return dst, false, e
	}
	if !r.Plain && n < edm.MaxProperties && size+IDSize() <= edm.MaxEntitySize {
		dst = edm.AppendProperty(append(dst, ','), rows.WriteID, edm.String(cmp.Or(r.Made, writeID)))
		carries = r.Made == ""
	}
	return append(dst, '}'), carries, nil
}

// Hint is about as many bytes as Encode appends.
func (r *Row) Hint() int {
	n := 256
	for i := range r.Properties {
		n += len(r.Properties[i].Name) + r.Properties[i].Value.StoredSize() + 32 // two bytes for a character leave room for the annotations
	}
	return n
}

// pass checks the row and passes each property of it to the function each. It returns the size of the row and the number of its properties.
func (r *Row) pass(each func(name string, value edm.Value)) (size, n int, e *entity.Error) {
	size, n, err := r.properties(each)
	if err == nil {
		return size, n, nil
	}
	e = errs.Invalid("", err)
	e.Key = errs.Loggable(r.Key)
	return 0, 0, r.Explain(e)
}

func (r *Row) properties(each func(name string, value edm.Value)) (size, n int, err error) {
	if err := rows.CheckKeys(r.Key.Partition, r.Key.Row); err != nil || r.Verb == wire.VerbDelete {
		return 0, 0, err
	}
	size = edm.KeySize(r.Key.Partition, r.Key.Row)
	var room [mostOwn]entity.Property
	own := r.AppendOwn(room[:0])
	for _, list := range [...]entity.Properties{r.Properties, own} {
		var seen map[string]struct{} // nil for few properties: comparing all pairs of them allocates nothing
		if len(list) > 16 {
			seen = make(map[string]struct{}, len(list))
		}
		for i := range list {
			name, value := list[i].Name, edm.Value(list[i].Value)
			if err := checkProperty(name, value); err != nil {
				return 0, 0, err
			}
			if repeats(name, list[:i], seen) {
				return 0, 0, fmt.Errorf("property %s occurs twice; give each property once", name)
			}
			size += edm.PropertySize(name, value)
			each(name, value)
		}
	}
	n = len(r.Properties) + len(own)
	atLeast, needed := n, size
	if r.Own.Incarnation != "" { // copies are compared with their entity by the write ID, so that the row must have room for it
		atLeast, needed = n+1, size+IDSize()
	}
	if atLeast > edm.MaxProperties {
		return 0, 0, &edm.SizeError{What: "an entity", Size: atLeast, Limit: edm.MaxProperties, Unit: "properties", Library: atLeast - len(r.Properties)}
	}
	if needed > edm.MaxEntitySize {
		return 0, 0, &edm.SizeError{What: "an entity", Size: needed, Limit: edm.MaxEntitySize, Unit: "bytes"}
	}
	return size, n, nil
}

func checkProperty(name string, value edm.Value) error {
	if err := edm.CheckName(name); err != nil {
		return err
	}
	switch name {
	case "PartitionKey", "RowKey", "Timestamp":
		return fmt.Errorf("%s is a system property, which an entity's properties must not contain; set the key in the entity's own fields", name)
	}
	if err := value.Check(); err != nil {
		return fmt.Errorf("property %s: %w", name, err)
	}
	return nil
}

// repeats reports whether one of the earlier properties has the name. It looks the name up in seen and adds it, or
// compares the name with all earlier names if seen is nil.
func repeats(name string, earlier entity.Properties, seen map[string]struct{}) bool {
	if seen != nil {
		_, twice := seen[name]
		seen[name] = struct{}{}
		return twice
	}
	return earlier.Has(name)
}
