package rowreader

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

const (
	metadataPrefix = "odata."
	annotation     = "@odata.type"
)

// errRepeatedName reports that a response has a name twice, so that it is unknown which of the two values is
// right.
var errRepeatedName = errors.New("an object in the response has a member twice")

// nameTable holds the names in one response: the meaning of each, whether the current row has it already, and
// which name followed it in the previous row. Most rows have the same names in the same order, so the next
// name is usually found by one comparison instead of a search.
type nameTable struct {
	known   map[string]int // properties to keep, nil for all
	plain   bool           // treat the library's own properties like any others
	entries []nameEntry    // entry 0 stands for the start of a row
	byName  map[string]int32
	row     int32
	last    int32 // index of the entry of the previous name
}

// nameEntry is one name.
type nameEntry struct {
	name  string // without quotes and escapes
	plain bool   // equal to its own quoted form, so that it can be compared with the response's bytes
	use   nameUse
	later bool     // a property of a later version of the library
	text  string   // for useOwn: the value in the last row that had the name
	typ   edm.Type // for a property: its annotation in row typRow
	of    int32    // for an annotation: index of the entry of its property
	next  int32    // index of the entry that followed last time, 0 if unknown
	row   int32    // number of the last row that had the name

	at     int32 // for a property: its index in that row's properties, -1 for none
	typRow int32
}

// nameUse says how the reader uses the value under a name.
type nameUse uint8

const (
	useNothing nameUse = iota // metadata, and properties that are not wanted
	useProperty
	useAnnotation
	usePartitionKey
	useRowKey
	useTimestamp
	useETag
	useOwn // a property of the library that this version knows
)

// fewNames is the number of names up to which a linear search is faster than a map.
const fewNames = 32

func newNameTable(known map[string]int) nameTable {
	return nameTable{known: known, entries: make([]nameEntry, 1, fewNames)}
}

func (t *nameTable) nextRow() { t.row, t.last = t.row+1, 0 }

// see returns the entry of a name, quoted as in the response, and fails if the row already had the name. The entry is
// valid until the next call.
func (t *nameTable) see(raw []byte) (*nameEntry, error) {
	if len(raw) < 2 {
		return nil, errors.New("a property name in the response is cut off")
	}
	i := t.entries[t.last].next
	if n := &t.entries[i]; i == 0 || !n.plain || n.name != string(raw[1:len(raw)-1]) {
		var err error
		if i, err = t.find(raw); err != nil {
			return nil, err
		}
		t.entries[t.last].next = i
	}
	n := &t.entries[i]
	if n.row == t.row {
		return nil, errRepeatedName
	}
	n.row, n.at, t.last = t.row, -1, i
	return n, nil
}

// find returns the entry of a name, quoted as in the response.
func (t *nameTable) find(raw []byte) (int32, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return t.entry(string(raw[1 : len(raw)-1])), nil
	}
	name, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return 0, err
	}
	return t.entry(string(name)), nil
}

// entry returns the entry of a name, and creates it if necessary.
func (t *nameTable) entry(name string) int32 {
	if t.byName != nil {
		if i, ok := t.byName[name]; ok {
			return i
		}
		return t.add(name)
	}
	for i := 1; i < len(t.entries); i++ {
		if t.entries[i].name == name {
			return int32(i)
		}
	}
	return t.add(name)
}

func (t *nameTable) add(name string) int32 {
	n := nameEntry{name: name, plain: strings.IndexByte(name, '\\') < 0, use: t.useOf(name), later: !t.plain && strings.HasPrefix(name, rows.Prefix)}
	if n.use == useAnnotation {
		n.of = t.entry(strings.TrimSuffix(name, annotation))
	}
	i := int32(len(t.entries))
	t.entries = append(t.entries, n)
	switch {
	case t.byName != nil:
		t.byName[name] = i
	case len(t.entries) > fewNames:
		t.byName = make(map[string]int32, 2*len(t.entries))
		for i := range t.entries[1:] {
			t.byName[t.entries[i+1].name] = int32(i + 1)
		}
	}
	return i
}

func (t *nameTable) useOf(name string) nameUse {
	switch name {
	case "PartitionKey":
		return usePartitionKey
	case "RowKey":
		return useRowKey
	case "Timestamp":
		return useTimestamp
	case "odata.etag":
		return useETag
	}
	if !t.plain && rows.IsKnown(name) {
		return useOwn
	}
	if strings.HasPrefix(name, metadataPrefix) {
		return useNothing
	}
	of, annotates := strings.CutSuffix(name, annotation)
	_, wanted := t.known[of]
	wanted = wanted || t.known == nil || strings.HasPrefix(of, rows.Prefix)
	if !wanted || annotates && of == "Timestamp" {
		return useNothing
	}
	if !annotates {
		return useProperty
	}
	if strings.HasSuffix(of, annotation) {
		return useNothing
	}
	return useAnnotation
}

// typeOf returns the type from the property's annotation in this row, TypeNull if it has none.
func (t *nameTable) typeOf(n *nameEntry) edm.Type {
	if n.typRow == t.row {
		return n.typ
	}
	return edm.TypeNull
}
