package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// RawRow is a row as the service holds it. A reader of pages reuses it: what outlives the call is cloned.
type RawRow struct {
	Key       Key
	ETag      azcore.ETag
	Timestamp time.Time
	// Answered is the service's time when it answered a point read, zero for a row of a page.
	Answered time.Time
	// WriteID is the ID of the write that left the row, "" where it is not stored.
	WriteID string
	// System are the library's other properties, Properties the caller's.
	System, Properties Properties
}

// Clone returns a copy that shares nothing with the reader's memory.
func (r *RawRow) Clone() *RawRow {
	c := *r
	c.System, c.Properties = slices.Clone(r.System), slices.Clone(r.Properties)
	return &c
}

// rowReader reads rows out of the service's JSON, token by token. It looks for repeated names itself: the rows of a
// page have the same names, and jsontext would compare them all anew for each.
type rowReader struct {
	decoder *jsontext.Decoder
	names   nameTable
	row     RawRow
	later   bool // the row at hand has a property of a later version of the library
	scratch []byte
}

// newRowReader reads the properties that known names, nil for all.
func newRowReader(answer []byte, known map[string]int) *rowReader {
	return &rowReader{
		decoder: jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true)),
		names:   newNameTable(known),
	}
}

// one reads an answer that is a single entity.
func (r *rowReader) one() (*RawRow, error) {
	if err := r.readRow(); err != nil {
		return nil, garbledAnswer(err)
	}
	return &r.row, r.end()
}

// page reads an answer that is a list of entities, and calls each for every one. The row is valid during the call.
func (r *rowReader) page(each func(*RawRow) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	var seen []string
	for r.decoder.PeekKind() == '"' {
		token, err := r.decoder.ReadToken()
		if err != nil {
			return garbledAnswer(err)
		}
		name := token.String()
		if slices.Contains(seen, name) {
			return garbledAnswer(errRepeatedName)
		}
		seen = append(seen, name)
		if name != "value" {
			if err := r.skip(); err != nil {
				return garbledAnswer(err)
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
		return garbledAnswer(errors.New("a page without value"))
	}
	return r.end()
}

func (r *rowReader) rows(each func(*RawRow) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.decoder.PeekKind() == '{' {
		if err := r.readRow(); err != nil {
			return garbledAnswer(err)
		}
		if !wire.IsETag(string(r.row.ETag)) {
			return garbledAnswer(errNoETag)
		}
		if err := each(&r.row); err != nil {
			return err
		}
	}
	return r.expect(']')
}

func (r *rowReader) end() error {
	if _, err := r.decoder.ReadToken(); err != io.EOF {
		return garbledAnswer(errors.New("something follows its end"))
	}
	return nil
}

func (r *rowReader) expect(kind jsontext.Kind) error {
	token, err := r.decoder.ReadToken()
	if err != nil {
		return garbledAnswer(err)
	}
	if token.Kind() != kind {
		return garbledAnswer(fmt.Errorf("%s where %s belongs", token.Kind(), kind))
	}
	return nil
}

// garbledAnswer hides the syntax error's excerpt of the answer: it may hold a secret property.
func garbledAnswer(err error) error {
	if errors.Is(err, wire.ErrGarbled) {
		return err
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: not JSON at byte %d", wire.ErrGarbled, syntax.ByteOffset)
	}
	return fmt.Errorf("%w: %v", wire.ErrGarbled, err)
}

func (r *rowReader) readRow() error {
	partition := r.row.Key.Partition // rows of one page mostly share it
	r.row, r.later = RawRow{Properties: r.row.Properties[:0], System: r.row.System[:0]}, false
	r.names.nextRow()
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	keys := 0
	for r.decoder.PeekKind() == '"' {
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return err
		}
		n, err := r.names.see(raw)
		if err != nil {
			return err
		}
		switch n.use {
		case usePartitionKey:
			keys++
			r.row.Key.Partition, err = r.readString(partition)
		case useRowKey:
			keys++
			r.row.Key.Row, err = r.readString("")
		case useProperty:
			err = r.readProperty(n)
		case useAnnotation:
			err = r.readAnnotation(n)
		case useNothing:
			err = r.skip()
		default:
			err = r.readSystem(n)
		}
		if err != nil {
			return err
		}
	}
	if token, err := r.decoder.ReadToken(); err != nil || token.Kind() != '}' {
		return errors.Join(errors.New("an entity does not end"), err)
	}
	if keys != 2 {
		return errors.New("an entity without keys")
	}
	if r.later {
		r.setAside()
	}
	return nil
}

// setAside moves the properties of a later version of the library to the library's own.
func (r *rowReader) setAside() {
	r.row.Properties = slices.DeleteFunc(r.row.Properties, func(p Property) bool {
		own := strings.HasPrefix(p.Name, rows.Prefix)
		if own {
			r.row.System = append(r.row.System, p)
		}
		return own
	})
}

// readSystem reads a value that every row has or may have beside the caller's properties.
func (r *rowReader) readSystem(n *nameEntry) (err error) {
	if r.decoder.PeekKind() == 'n' {
		return r.skip() // the service answers null for what a projection names and the row does not have
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
