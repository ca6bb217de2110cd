package largeentities

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
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

// String returns the stored form: mark, length, SHA-256 in hexadecimal, name and content type, separated by spaces. Only the content type
// can contain spaces.
func (p *pointer) String() string {
	mark := pointerMark
	if p.sealed {
		mark = sealedMark
	}
	return strings.Join([]string{mark, strconv.FormatInt(p.length, 10), p.hash(), p.name, p.contentType}, " ")
}

func (p *pointer) hash() string { return hex.EncodeToString(p.sha256[:]) }

var errNoPointer = errors.New("the stored property is neither a value of its type nor a pointer that this build can read; use a newer build, or restore the row")

// parsePointer is the inverse of String. It refuses every text that String would not return: the library would write such a pointer back
// as another text.
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
	p.sha256 = [sha256.Size]byte(sum)
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

// read parses a value in an entity's row: it returns the pointer, or nil for a value within the entity. It does not check whether the
// pointer is to a blob of the entity.
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

// The names of the blobs' metadata; the service ignores their case.
const (
	metaTerm = "tpterm"   // Options.Deadline in seconds: later than this after Last-Modified, no transaction that points at the blob is sent
	metaKey  = "tpkey"    // the entity: partition key, tab, row key, in base64
	metaHash = "tpsha256" // SHA-256 of the content, in hexadecimal
)

// entityPrefix returns how the names of an entity's blobs begin. A name ends with the id of the change that wrote the blob, so no name is
// used twice.
func entityPrefix(prefix string, key tables.Key) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%s", len(key.Partition), key.Partition, key.Row)
	return prefix + "/" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:15]) + "/"
}

// encodeKey encodes a key for metadata, which must be ASCII.
func encodeKey(key tables.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(driver.JoinKey(key)))
}

func decodeKey(text string) (tables.Key, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return tables.Key{}, false
	}
	key, err := driver.SplitKey(string(raw))
	return key, err == nil
}
