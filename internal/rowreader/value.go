package rowreader

import (
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// readProperty reads the value of a property.
func (r *Reader[P]) readProperty(n *nameEntry) error {
	v, err := r.readValue(r.names.typeOf(n))
	if err != nil {
		return fmt.Errorf("property %s: %w", n.name, err)
	}
	if !v.IsNull() {
		n.at = int32(len(r.row.Properties))
		r.row.Properties = r.access.Append(r.row.Properties, n.name, v)
		r.later = r.later || n.later
	}
	return nil
}

// readAnnotation records the type of a property. The service writes the annotation before the value; the
// reader also accepts it after the value.
func (r *Reader[P]) readAnnotation(n *nameEntry) error {
	of := &r.names.entries[n.of]
	t, err := r.readType(of)
	if err != nil {
		return err
	}
	if of.at >= 0 && of.row == r.names.row {
		_, p := r.access(&r.row.Properties[of.at])
		*p, err = p.Retype(t)
		return err
	}
	of.typ, of.typRow = t, r.names.row
	return nil
}

// readOwn reads one of the library's own properties that this version knows. All are texts, except the term of a
// reservation.
func (r *Reader[P]) readOwn(n *nameEntry) error {
	if n.name == rows.Term {
		term, err := r.readTerm()
		if term > 0 {
			r.row.System = r.access.Append(r.row.System, n.name, edm.Int32(int32(term/time.Second)))
		}
		return err
	}
	var err error
	n.text, err = r.readString(n.text) // usually the same as in the previous row
	if n.name == rows.WriteID {
		r.row.WriteID = n.text
		return err
	}
	r.row.System = r.access.Append(r.row.System, n.name, edm.String(n.text))
	return err
}
