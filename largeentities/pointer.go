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

// pointer is what an entity holds in the place of a value that is in a blob.
type pointer struct {
	name        string // of the blob, in the property's container
	length      int64
	sha256      [sha256.Size]byte
	contentType string
	sealed      bool // sha256 is that of the sealed form, length that of the value

	of tables.Key // the entity in whose row it is; not part of the stored form
}

// The marks begin a pointer, and say which form it has.
const (
	pointerMark = "tp1"
	sealedMark  = "tp2" // the blob is sealed
)

// String is the stored form: mark, length, SHA-256 in hexadecimal, name and content type, with a space between. A name has
// no space; what follows the fourth is the content type.
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

var errNoPointer = errors.New("it is neither a value of its type nor a pointer to a blob that this build can read")

// parsePointer is the reverse of String. Each pointer has one form: another one would be written back as something else.
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

// form is how a property is declared, which decides how a value within the entity is told from a pointer: the pointer has
// the other type.
type form uint8

const (
	binaryForm form = iota + 1 // []byte: Edm.Binary, the pointer Edm.String
	stringForm                 // string: Edm.String, the pointer Edm.Binary
	streamForm                 // Stream: stored as a []byte is
)

// pointer makes the value that holds a pointer.
func (f form) pointer(p *pointer) tables.Value {
	if f == stringForm {
		return tables.Binary([]byte(p.String()))
	}
	return tables.String(p.String())
}

// read tells what a value in the row of an entity is: a pointer, or, with nil, the value itself. Whether the pointer leads to a
// blob of the entity is for blobs.checkOwn to say.
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
	return nil, fmt.Errorf("its value is of type %v", v.Type())
}

// value is the reverse of content.
func (f form) value(content []byte) tables.Value {
	if f == stringForm {
		return tables.String(string(content))
	}
	return tables.Binary(content)
}
