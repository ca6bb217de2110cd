package patterns

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
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// storedRow is one row as the service holds it. A rowReader reuses it: what outlives the row is copied out.
type storedRow struct {
	key         Key
	etag        azcore.ETag
	timestamp   Value
	answered    time.Time // the service's time when it answered a point read of a reserved key
	writeID     string
	incarnation string
	copies      string
	primary     string // row key of the entity's own row, on a copy or further row
	shared      bool   // belongs to no one entity
	layout      string // of a row that is one of several: the layout's directory on the first, else furtherRow
	outside     outsideFacts
	carried     Properties // system properties of a later version of the library
	later       bool       // there are such among the properties being read
	isCopy      bool
	properties  Properties
}

// isNearCopy reports whether the row is of an entity of its own partition, and not the entity's own: a copy, or a further row.
func (r *storedRow) isNearCopy() bool { return r.isCopy && !r.shared && !r.outside.is }

func (r *storedRow) time() time.Time {
	t, _ := r.timestamp.Time()
	return t
}

// rowReader reads rows out of the service's JSON, token by token. It looks for repeated names itself: the rows of a
// page have the same names, and jsontext would compare them all anew for each.
type rowReader struct {
	decoder *jsontext.Decoder
	names   nameTable
	row     storedRow
	copies  string
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
func (r *rowReader) one() (*storedRow, error) {
	if err := r.readRow(); err != nil {
		return nil, garbledAnswer(err)
	}
	return &r.row, r.end()
}

// page reads an answer that is a list of entities, and calls each for every one. The row is valid during the call.
func (r *rowReader) page(each func(*storedRow) error) error {
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

func (r *rowReader) rows(each func(*storedRow) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.decoder.PeekKind() == '{' {
		if err := r.readRow(); err != nil {
			return garbledAnswer(err)
		}
		if !wire.IsETag(string(r.row.etag)) {
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
	partition := r.row.key.Partition // rows of one page mostly share it
	r.row = storedRow{properties: r.row.properties[:0]}
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
			r.row.key.Partition, err = r.readString(partition)
		case useRowKey:
			keys++
			r.row.key.Row, err = r.readString("")
		case useProperty:
			err = r.readProperty(n)
		case useAnnotation:
			err = r.readAnnotation(n)
		case useNothing:
			err = r.skip()
		default:
			err = r.readSystem(n.use)
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
	r.row.setAside()
	return nil
}

// setAside takes the system properties of a later version out of the entity's own.
func (r *storedRow) setAside() {
	if !r.later {
		return
	}
	own := r.properties[:0]
	for _, p := range r.properties {
		if strings.HasPrefix(p.Name, propertyPrefix) {
			r.carried = append(r.carried, p)
		} else {
			own = append(own, p)
		}
	}
	r.properties = own
}

// readSystem reads a value that every row has or may have beside the caller's properties.
func (r *rowReader) readSystem(use nameUse) (err error) {
	if r.decoder.PeekKind() == 'n' {
		return r.skip() // the service answers null for what a projection names and the row does not have
	}
	switch use {
	case useTimestamp:
		r.row.timestamp, err = r.readValue(edm.TypeDateTime)
	case useETag:
		var etag string
		etag, err = r.readString("")
		r.row.etag = azcore.ETag(etag)
	case useWriteID:
		r.row.writeID, err = r.readString("")
	case useIncarnation:
		r.row.incarnation, err = r.readString("")
	case useCopies:
		r.copies, err = r.readString(r.copies) // the same for most rows of a page
		r.row.copies = r.copies
	case useShared:
		r.row.isCopy, r.row.shared = true, true
		_, err = r.readString("")
	case usePrimary:
		r.row.isCopy = true
		r.row.primary, err = r.readString("")
	case usePartition:
		r.row.outside.is = true
		r.row.outside.partition, err = r.readString("")
	case useVersion:
		r.row.outside.version, err = r.readString("")
	case useReserved:
		r.row.outside.reserved, err = r.readString("")
	case useTerm:
		r.row.outside.term, err = r.readTerm()
	case useLayout:
		r.row.layout, err = r.readString("")
	case useClaim:
		r.row.outside.isClaim = true
		r.row.outside.claim, err = r.readString("")
	}
	return err
}
