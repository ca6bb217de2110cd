package largeentities

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// pointer is stored in an entity in place of a value that is in a blob.
type pointer struct {
	name        string // name of the blob in the property's container
	length      int64
	sha256      [sha256.Size]byte
	contentType string
	sealed      bool // the blob is sealed: sha256 is the hash of the sealed form, length the size of the plaintext

	of tables.Key // the entity that has the pointer; not part of the stored form
}

// A pointer begins with one of these marks, which says which form it has.
const (
	pointerMark = "tp1"
	sealedMark  = "tp2" // the blob is sealed
)

// String returns the stored form: mark, length, SHA-256 in hexadecimal, name and content type, separated by spaces. A
// name has no space; everything after the fourth space is the content type.
func (p *pointer) String() string {
	return strings.Join([]string{p.mark(), strconv.FormatInt(p.length, 10), p.hash(), p.name, p.contentType}, " ")
}

func (p *pointer) mark() string {
	if p.sealed {
		return sealedMark
	}
	return pointerMark
}

func (p *pointer) hash() string { return hex.EncodeToString(p.sha256[:]) }

var errNoPointer = errors.New("the stored property is neither a value of its type nor a pointer that this build can read; use a newer build, or restore the row")

// parsePointer is the inverse of String. It refuses every text that String would not return, since it would
// be written back differently.
func parsePointer(of tables.Key, text string) (*pointer, error) {
	parts := strings.SplitN(text, " ", 5)
	if len(parts) != 5 || parts[3] == "" {
		return nil, errNoPointer
	}
	p := &pointer{name: parts[3], contentType: parts[4], sealed: parts[0] == sealedMark, of: of}
	length, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || length < 0 {
		return nil, errNoPointer
	}
	p.length = length
	sum, err := hex.DecodeString(parts[2])
	if err != nil || len(sum) != sha256.Size {
		return nil, errNoPointer
	}
	copy(p.sha256[:], sum)
	if p.String() != text {
		return nil, errNoPointer
	}
	return p, nil
}

// form is the declared type of a property. A pointer is stored with the other EDM type, which distinguishes
// it from a value within the entity.
type form uint8

const (
	binaryForm form = iota + 1 // a []byte: stored as Edm.Binary, its pointer as Edm.String
	stringForm                 // a string: stored as Edm.String, its pointer as Edm.Binary
	streamForm                 // a Stream: stored like a []byte
)

// pointer makes the property value of a pointer.
func (f form) pointer(p *pointer) tables.Value {
	if f == stringForm {
		return tables.Binary([]byte(p.String()))
	}
	return tables.String(p.String())
}

// read parses a value in an entity's row: it returns the pointer, or nil for a value within the entity. blobs.checkOwn
// checks whether the pointer is to a blob of the entity.
func (f form) read(of tables.Key, v tables.Value) (*pointer, error) {
	if v.IsNull() {
		return nil, nil
	}
	text, isString := v.Text()
	data, isBinary := v.Bytes()
	switch {
	case f == stringForm && isString, f != stringForm && isBinary:
		return nil, nil
	case isBinary:
		text = string(data)
	case !isString:
		return nil, errNoPointer
	}
	return parsePointer(of, text)
}

// content returns the bytes of a value of the declared type.
func (f form) content(v tables.Value) ([]byte, error) {
	if f == stringForm {
		if s, ok := v.Text(); ok {
			return []byte(s), nil
		}
	} else if b, ok := v.Bytes(); ok {
		return b, nil
	}
	return nil, fmt.Errorf("the stored property has type %v; it must be a String or Binary, so rewrite the entity", v.Type())
}

// value is the inverse of content.
func (f form) value(content []byte) tables.Value {
	if f == stringForm {
		return tables.String(string(content))
	}
	return tables.Binary(content)
}
