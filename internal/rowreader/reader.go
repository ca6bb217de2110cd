// Package rowreader reads rows from the table service's JSON responses: one row, or a page of them. It is
// strict: it returns kinds.ErrCutOff for a response that is not JSON or has a name twice. The caller chooses
// the type of a property; an edm.Access says where its name and value are.
package rowreader

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/jsonscan"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Row is a row as the service stores it. The Reader reuses its slices for the next row.
type Row[P any] struct {
	Partition, Row string
	ETag           string
	Timestamp      time.Time
	// WriteID is the ID of the row's last write, "" if the row does not contain one.
	WriteID string
	// System holds the library's own properties, Properties the caller's properties.
	System, Properties []P
	// Problem says why a value of the row could not be read; Properties lacks it. Nil for none.
	Problem error
	// Lossy reports that a text has half of a surrogate pair, which was read as U+FFFD.
	Lossy bool
}

// Reader reads the rows of one response, token by token, in one call of One, Lines or Page. The rows share nothing with the response. The
// Reader checks for repeated names of a row itself: the rows of a page mostly have the same names in the same order, so that a comparison
// with the previous row's name finds most of them.
type Reader[P any] struct {
	tokens
	access edm.Access[P]
	row    Row[P]
	later  bool // the current row has a property that only a later version of the library knows
}

// New returns a reader that keeps the properties in known and the library's own; with a nil known it keeps all.
func New[P any](answer []byte, known map[string]int, access edm.Access[P]) *Reader[P] {
	return &Reader[P]{tokens: newTokens(answer, known, false), access: access}
}

// NewPlain returns a reader that keeps all properties, and puts the library's own into Properties like any other, so
// that a row can be copied unchanged.
func NewPlain[P any](answer []byte, access edm.Access[P]) *Reader[P] {
	return &Reader[P]{tokens: newTokens(answer, nil, true), access: access}
}

// One reads a response that is a single entity.
func (r *Reader[P]) One() (*Row[P], error) {
	defer r.release()
	if err := r.readRow(); err != nil {
		return nil, Garbled(err)
	}
	return &r.row, r.end()
}

// Lines reads consecutive rows, and calls each for every row. The row is valid only during the call.
func (r *Reader[P]) Lines(each func(*Row[P]) error) error {
	defer r.release()
	for r.peek() == '{' {
		if err := r.readRow(); err != nil {
			return Garbled(err)
		}
		if err := each(&r.row); err != nil {
			return err
		}
	}
	return r.end()
}

// Page reads a response that is a list of entities, and calls each for every entity. The row is valid only during the call.
// For a value that cannot be read Page sets Problem of the row and continues; any other error ends it.
func (r *Reader[P]) Page(each func(*Row[P]) error) error {
	defer r.release()
	if err := r.expect('{'); err != nil {
		return err
	}
	var seen []string
	for r.peek() == '"' {
		name, err := r.readString("")
		if err != nil {
			return Garbled(err)
		}
		if slices.Contains(seen, name) {
			return Garbled(jsonscan.ErrRepeatedName)
		}
		seen = append(seen, name)
		if name != "value" {
			if err := r.skip(); err != nil {
				return Garbled(err)
			}
			continue
		}
		if err := r.rows(each); err != nil {
			return err
		}
	}
	if err := r.expect('}'); err != nil {
		return err
	}
	if !slices.Contains(seen, "value") {
		return Garbled(errors.New("the response has no list of entities (member \"value\")"))
	}
	return r.end()
}

func (r *Reader[P]) rows(each func(*Row[P]) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.peek() == '{' {
		if err := r.readRow(); err != nil {
			return Garbled(err)
		}
		if !wire.IsETag(r.row.ETag) {
			return Garbled(ErrNoETag)
		}
		if err := each(&r.row); err != nil {
			return err
		}
	}
	return r.expect(']')
}

// ErrNoETag means that a row has no ETag.
var ErrNoETag = errors.New("the ETag of an entity is missing or cut off")

// Garbled returns an error of kind kinds.ErrCutOff for err.
func Garbled(err error) error {
	if errors.Is(err, kinds.ErrCutOff) {
		return err
	}
	return fmt.Errorf("%w: %v", kinds.ErrCutOff, err)
}

func (r *Reader[P]) readRow() error {
	partition := r.row.Partition // most rows of a page share it
	r.row, r.later = Row[P]{Properties: r.row.Properties[:0], System: r.row.System[:0]}, false
	if err := r.beginRow(); err != nil {
		return err
	}
	keys := 0
	for r.peek() == '"' {
		n, err := r.readName()
		if err != nil {
			return err
		}
		switch n.use {
		case usePartitionKey:
			keys++
			r.row.Partition, err = r.readString(partition)
			r.broken = r.broken || err != nil // without its keys, the row cannot be identified
		case useRowKey:
			keys++
			r.row.Row, err = r.readString("")
			r.broken = r.broken || err != nil
		case useProperty:
			err = r.readProperty(n)
		case useAnnotation:
			err = r.readAnnotation(n)
		case useNothing:
			err = r.skip()
		default:
			err = r.readSystem(n)
		}
		if r.lossy && r.row.Problem == nil && (n.use == usePartitionKey || n.use == useRowKey) {
			err = errors.New("a key has half of a surrogate pair, so that it cannot be addressed")
		}
		switch {
		case err != nil && r.broken:
			return err
		case err != nil && r.row.Problem == nil:
			r.row.Problem = fmt.Errorf("%w; correct the row with the program that wrote it", err)
		}
	}
	if err := r.endRow(); err != nil {
		return err
	}
	if keys != 2 {
		return errors.New("an entity in the response has no PartitionKey or no RowKey")
	}
	if r.later {
		r.setAside()
	}
	r.row.Lossy = r.lossy
	return nil
}

// setAside moves the properties that only a later version of the library knows to System.
func (r *Reader[P]) setAside() {
	r.row.Properties = slices.DeleteFunc(r.row.Properties, func(p P) bool {
		name, _ := r.access(&p)
		own := strings.HasPrefix(*name, rows.Prefix)
		if own {
			r.row.System = append(r.row.System, p)
		}
		return own
	})
}

// readSystem reads a value that is not one of the caller's properties, such as a key or the timestamp.
func (r *Reader[P]) readSystem(n *nameEntry) (err error) {
	if r.peek() == 'n' {
		return r.skip() // the service returns null for a projected property that the row does not have
	}
	switch n.use {
	case useTimestamp:
		v, err := r.readValue(edm.TypeDateTime)
		r.row.Timestamp, _ = v.Time()
		return err
	case useETag:
		r.row.ETag, err = r.readString("")
	case useOwn:
		err = r.readOwn(n)
	}
	return err
}

// readProperty reads the value of a property.
func (r *Reader[P]) readProperty(n *nameEntry) error {
	typ := edm.TypeNull
	if n.typRow == r.names.row { // the row has an annotation for the property
		typ = n.typ
	}
	v, err := r.readValue(typ)
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
		raw, err := r.next()
		// A text that is not a number of seconds gives no term, so that a damaged row does not make its page unreadable.
		// A reservation without a term never expires.
		if term := lease.ParseTerm(string(raw)); term > 0 {
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
