// Package rowreader reads rows from the table service's JSON responses: one row, or a page of them. It is
// strict: it returns kinds.ErrCutOff for a response that is not JSON or has a name twice.
package rowreader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/jsonscan"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Reader reads the rows of one response, token by token, in one call of One, Lines or Page. The rows share nothing with the response. The
// Reader checks for repeated names of a row itself: the rows of a page mostly have the same names in the same order, so that a comparison
// with the previous row's name finds most of them.
type Reader struct {
	tokens
	row   tablerow.Row // its slices are used again for the next row
	later bool         // the current row has a property that only a later version of the library knows
}

// New returns a reader that keeps the properties in known and the library's own; with a nil known it keeps all.
func New(answer []byte, known map[string]int) *Reader {
	return &Reader{tokens: newTokens(answer, known, false)}
}

// NewPlain returns a reader that keeps all properties, and puts the library's own into Properties like any other, so
// that a row can be copied unchanged.
func NewPlain(answer []byte) *Reader {
	return &Reader{tokens: newTokens(answer, nil, true)}
}

// One reads a response that is a single entity.
func (r *Reader) One() (*tablerow.Row, error) {
	defer r.release()
	if err := r.readRow(); err != nil {
		return nil, Garbled(err)
	}
	row := r.row // without the reader, which holds the response
	return &row, r.end()
}

// Lines reads consecutive rows, and calls each for every row. The row is valid only during the call.
func (r *Reader) Lines(each func(*tablerow.Row) error) error {
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
func (r *Reader) Page(each func(*tablerow.Row) error) error {
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

func (r *Reader) rows(each func(*tablerow.Row) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.peek() == '{' {
		if err := r.readRow(); err != nil {
			return Garbled(err)
		}
		if !wire.IsETag(string(r.row.ETag)) {
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

func (r *Reader) readRow() error {
	partition := r.row.Key.Partition // most rows of a page share it
	r.row, r.later = tablerow.Row{Properties: r.row.Properties[:0], Own: tablerow.Own{Later: r.row.Own.Later[:0]}}, false
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
			r.row.Key.Partition, err = r.readString(partition)
			r.broken = r.broken || err != nil // without its keys, the row cannot be identified
		case useRowKey:
			keys++
			r.row.Key.Row, err = r.readString("")
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

// setAside moves the properties that only a later version of the library knows to Own.Later.
func (r *Reader) setAside() {
	r.row.Properties = slices.DeleteFunc(r.row.Properties, func(p entity.Property) bool {
		own := strings.HasPrefix(p.Name, rows.Prefix)
		if own {
			r.row.Own.Later = append(r.row.Own.Later, p)
		}
		return own
	})
}

// readSystem reads a value that is not one of the caller's properties, such as a key or the timestamp.
func (r *Reader) readSystem(n *nameEntry) (err error) {
	if r.peek() == 'n' {
		return r.skip() // the service returns null for a projected property that the row does not have
	}
	switch n.use {
	case useTimestamp:
		v, err := r.readValue(edm.TypeDateTime)
		r.row.Timestamp, _ = v.Time()
		return err
	case useETag:
		var etag string
		etag, err = r.readString("")
		r.row.ETag = azcore.ETag(etag)
	case useOwn:
		err = r.readOwn(n)
	}
	return err
}

// readProperty reads the value of a property.
func (r *Reader) readProperty(n *nameEntry) error {
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
		r.row.Properties = append(r.row.Properties, entity.Property{Name: n.name, Value: entity.Value(v)})
		r.later = r.later || n.later
	}
	return nil
}

// readAnnotation records the type of a property. The service writes the annotation before the value; the
// reader also accepts it after the value.
func (r *Reader) readAnnotation(n *nameEntry) error {
	of := &r.names.entries[n.of]
	t, err := r.readType(of)
	if err != nil {
		return err
	}
	if of.at >= 0 && of.row == r.names.row {
		p := (*edm.Value)(&r.row.Properties[of.at].Value)
		*p, err = p.Retype(t)
		return err
	}
	of.typ, of.typRow = t, r.names.row
	return nil
}

// readOwn reads one of the library's own properties that this version knows. All are texts.
func (r *Reader) readOwn(n *nameEntry) error {
	o := &r.row.Own
	var err error
	n.text, err = r.readString(n.text) // usually the same as in the previous row
	switch n.name {                    // also beside an error: a damaged copy is still a copy
	case rows.WriteID:
		r.row.WriteID = n.text
	case rows.Incarnation:
		o.Incarnation = n.text
	case rows.Copies:
		o.Copies = n.text
	case rows.Shared:
		o.IsCopy, o.IsShared, o.Shared = true, true, n.text
	case rows.Primary:
		o.IsCopy, o.Primary = true, n.text
	case rows.Layout:
		o.Layout = n.text
	case rows.Partition:
		o.Outside.Is, o.Outside.Partition = true, n.text
	case rows.Version:
		o.Outside.Version = n.text
	case rows.Mark:
		o.Outside.Mark = n.text
	case rows.Acquirer:
		o.Outside.Acquirer = n.text
	case rows.Base:
		o.Outside.Base = n.text
	case rows.Next:
		o.Outside.Next = n.text
	}
	return err
}
