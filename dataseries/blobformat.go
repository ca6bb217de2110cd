package dataseries

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	documentVersion = 1
	annotation      = "@odata.type"
)

// document is the content of a blob: the slots of a series, including slots that only later versions of the program
// declare, and the marks of operations.
type document struct {
	write string // ID of the last write of the document
	slots tables.Properties
	marks []blobMark // oldest first
}

// blobMark is the marker of an AddOnce, in the blob of its series.
type blobMark struct {
	hash  string
	slot  string
	call  string
	at    time.Time // by the service's clock
	delta tables.Value
}

func (d *document) mark(hash string) (blobMark, bool) {
	at := slices.IndexFunc(d.marks, func(m blobMark) bool { return m.hash == hash })
	if at < 0 {
		return blobMark{}, false
	}
	return d.marks[at], true
}

// encode writes
//
//	{"v":1,"write":"...","slots":{"Count_000@odata.type":"Edm.Int64","Count_000":"5"},
//	"marks":[{"id":"...","at":"2026-11-20T12:00:00Z","call":"...","slot":"Count_000","delta":5}]}
func (d *document) encode() []byte {
	text := fmt.Appendf(nil, `{"v":%d,"write":%q,"slots":{`, documentVersion, d.write)
	for i, p := range d.slots {
		if i > 0 {
			text = append(text, ',')
		}
		text = edm.AppendProperty(text, p.Name, edm.Value(p.Value))
	}
	text = append(text, `},"marks":[`...)
	for i, m := range d.marks {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `{"id":%q,"at":%q,"call":%q,"slot":`, m.hash, m.at.Format(time.RFC3339), m.call)
		text = append(edm.AppendQuoted(text, m.slot), ',')
		text = append(edm.AppendProperty(text, "delta", edm.Value(m.delta)), '}')
	}
	return append(text, "]}\n"...)
}

// decodeDocument decodes what encode has written. A text that was cut off is not valid JSON.
func decodeDocument(text []byte) (*document, error) {
	var raw struct {
		V     int                          `json:"v"`
		Write string                       `json:"write"`
		Slots map[string]json.RawMessage   `json:"slots"`
		Marks []map[string]json.RawMessage `json:"marks"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, damaged("its %d bytes are not the JSON of a series", len(text))
	}
	if raw.V != documentVersion {
		return nil, fmt.Errorf("the blob has format version %d, and this build reads version %d; use a newer build", raw.V, documentVersion)
	}
	d := &document{write: raw.Write}
	for name := range raw.Slots {
		if strings.HasSuffix(name, annotation) {
			continue
		}
		value, err := decodeValue(raw.Slots, name)
		if err != nil {
			return nil, err
		}
		d.slots = append(d.slots, tables.Property{Name: name, Value: value})
	}
	d.sort()
	for _, m := range raw.Marks {
		mark, err := decodeMark(m)
		if err != nil {
			return nil, err
		}
		d.marks = append(d.marks, mark)
	}
	return d, nil
}

// damaged returns the error for a text that encode cannot have written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the blob is damaged: "+format+"; restore it from a backup, or delete it to begin the series again", args...)
}

// sort sorts the slots by name, and so by number, since all numbers have the same number of digits.
func (d *document) sort() {
	slices.SortFunc(d.slots, func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) })
}

func decodeMark(raw map[string]json.RawMessage) (m blobMark, err error) {
	for name, text := range map[string]*string{"id": &m.hash, "call": &m.call, "slot": &m.slot} {
		if json.Unmarshal(raw[name], text) != nil {
			return m, damaged("a marker has no text in member %s", name)
		}
	}
	if json.Unmarshal(raw["at"], &m.at) != nil {
		return m, damaged("a marker has no time in member at")
	}
	m.delta, err = decodeValue(raw, "delta")
	return m, err
}

// decodeValue decodes the value of a member, whose type may be in a member of its own.
func decodeValue(object map[string]json.RawMessage, name string) (tables.Value, error) {
	var typ edm.Type
	if text, ok := object[name+annotation]; ok {
		var known bool
		if typ, known = edm.ParseType([]byte(strings.Trim(string(text), `"`))); !known {
			return tables.Value{}, fmt.Errorf("member %s in the blob has a type that this build does not know; use a newer build", name)
		}
	}
	raw := object[name]
	switch {
	case len(raw) == 0 || raw[0] == 'n' || raw[0] == '{' || raw[0] == '[':
		return tables.Value{}, damaged("member %s has no value", name)
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return tables.Value{}, damaged("member %s is not a string", name)
		}
		if typ == edm.TypeNull {
			typ = edm.TypeString
		}
		v, err := edm.FromText(typ, []byte(text))
		return member(name, v, err)
	case raw[0] == 't' || raw[0] == 'f':
		return tables.Boolean(raw[0] == 't'), nil
	}
	v, err := edm.FromNumber(typ, raw)
	return member(name, v, err)
}

// member adds the name of a member to the error of its value.
func member(name string, v edm.Value, err error) (tables.Value, error) {
	if err != nil {
		err = damaged("member %s: %w", name, err)
	}
	return tables.Value(v), err
}
