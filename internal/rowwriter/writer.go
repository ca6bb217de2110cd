// Package rowwriter checks a row by the table service's rules and writes it as JSON, with the ID of the write. The caller chooses the type
// of a property; an edm.Access returns where its name and value are.
package rowwriter

import (
	"crypto/rand"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// Row is a row to write.
type Row[P any] struct {
	Partition, Row     string
	Properties, System []P // the caller's properties, and the library's own without the write ID
}

// NewWriteID makes an ID that no other write has.
func NewWriteID() string { return rand.Text() }

// AnyWriteID has the length of every write ID, to compute the size of rows.
const AnyWriteID = "00000000000000000000000000"

// Check returns the size of the row in bytes, by the service's formula, and refuses a row that the service would not store. marked says
// that the row must have room for the write ID.
func (r Row[P]) Check(access edm.Access[P], marked bool) (size int, err error) {
	if err := rows.CheckKeys(r.Partition, r.Row); err != nil {
		return 0, err
	}
	size = edm.KeySize(r.Partition, r.Row)
	for _, list := range [...][]P{r.Properties, r.System} {
		var seen map[string]struct{} // nil for few properties: comparing all pairs of them allocates nothing
		if len(list) > 16 {
			seen = make(map[string]struct{}, len(list))
		}
		for i := range list {
			name, value := access(&list[i])
			if err := checkProperty(*name, *value); err != nil {
				return 0, err
			}
			if repeats(*name, list[:i], access, seen) {
				return 0, fmt.Errorf("property %s occurs twice; give each property once", *name)
			}
			size += edm.PropertySize(*name, *value)
		}
	}
	n, needed := len(r.Properties)+len(r.System), size
	if marked {
		n, needed = n+1, size+IDSize()
	}
	if n > edm.MaxProperties {
		return 0, &edm.SizeError{What: "an entity", Size: n, Limit: edm.MaxProperties, Unit: "properties", Library: n - len(r.Properties)}
	}
	if needed > edm.MaxEntitySize {
		return 0, &edm.SizeError{What: "an entity", Size: needed, Limit: edm.MaxEntitySize, Unit: "bytes"}
	}
	return size, nil
}

// IDSize returns the number of bytes that the write ID adds to the size of a row.
func IDSize() int { return edm.PropertySize(rows.WriteID, edm.String(AnyWriteID)) }

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
func repeats[P any](name string, earlier []P, access edm.Access[P], seen map[string]struct{}) bool {
	if seen != nil {
		_, twice := seen[name]
		seen[name] = struct{}{}
		return twice
	}
	for i := range earlier {
		if other, _ := access(&earlier[i]); *other == name {
			return true
		}
	}
	return false
}

// Append appends the JSON of a row of the given size, with the write ID if there is one and the row has room for it;
// marked reports whether it has.
func (r Row[P]) Append(dst []byte, access edm.Access[P], size int, writeID string) (_ []byte, marked bool) {
	dst = append(dst, `{"PartitionKey":`...)
	dst = edm.AppendQuoted(dst, r.Partition)
	dst = append(dst, `,"RowKey":`...)
	dst = edm.AppendQuoted(dst, r.Row)
	for _, list := range [...][]P{r.Properties, r.System} {
		for i := range list {
			name, value := access(&list[i])
			dst = edm.AppendProperty(append(dst, ','), *name, *value)
		}
	}
	if writeID != "" && len(r.Properties)+len(r.System) < edm.MaxProperties && size+IDSize() <= edm.MaxEntitySize {
		dst = edm.AppendProperty(append(dst, ','), rows.WriteID, edm.String(writeID))
		marked = true
	}
	return append(dst, '}'), marked
}
