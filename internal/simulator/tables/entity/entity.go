package entity

import (
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// The properties that the service sets itself.
const (
	PartitionKey      = "PartitionKey"
	RowKey            = "RowKey"
	timestampProperty = "Timestamp"
)

// Stored is one stored row. It is never changed: a write stores another one, so a response can be written after the lock is
// released.
type Stored struct {
	Partition, Row string
	Timestamp      edm.Value
	ETag           string
	Properties     []Property
}

// Property is one property of an entity; its value is never null.
type Property struct {
	name  string
	value edm.Value
}

// Stamp sets the entity's timestamp, and its ETag, which is made from the timestamp.
func (e *Stored) Stamp(at time.Time) {
	// The error is nil: the clock ticks by 100 ns and begins after 1601.
	e.Timestamp, _ = edm.DateTime(at)
	ticks, _ := edm.Ticks(at)
	var buf [48]byte
	e.ETag = etagPrefix + strings.ReplaceAll(string(edm.AppendDateTime(buf[:0], ticks)), ":", "%3A") + etagSuffix
}

const (
	etagPrefix = `W/"datetime'`
	etagSuffix = `'"`
)

// IsETag reports whether text has the form of a weak ETag. The service treats a well-formed ETag that no
// entity ever had like an outdated one.
func IsETag(text string) bool {
	inner, weak := strings.CutPrefix(text, `W/"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	return weak && closed && !strings.Contains(inner, `"`)
}

// Get returns a property by name, including the service's own, or the zero Value if there is none.
func (e *Stored) Get(name string) edm.Value {
	switch name {
	case PartitionKey:
		return edm.String(e.Partition)
	case RowKey:
		return edm.String(e.Row)
	case timestampProperty:
		return e.Timestamp
	}
	for i := range e.Properties {
		if e.Properties[i].name == name {
			return e.Properties[i].value
		}
	}
	return edm.Value{}
}

// Sort sorts the properties by name. The service does so for every replace and merge, including one that inserts the
// entity; after an insert the properties keep the order of the request.
func (e *Stored) Sort() {
	slices.SortFunc(e.Properties, func(a, b Property) int { return compoundkey.Compare(a.name, b.name) })
}

// Merged returns the properties of old, with those in changed replaced or added.
func Merged(old, changed []Property) []Property {
	all := slices.Clone(old)
	at := make(map[string]int, len(old))
	for i, p := range old {
		at[p.name] = i
	}
	for _, p := range changed {
		if i, ok := at[p.name]; ok {
			all[i].value = p.value
		} else {
			all = append(all, p)
		}
	}
	return all
}

func (e *Stored) fingerprint(k *snapshot.Writer) {
	k.Text(e.Partition)
	k.Text(e.Row)
	k.Text(e.ETag)
	k.Number(uint64(len(e.Properties)))
	for _, p := range e.Properties {
		k.Text(p.name)
		k.Number(uint64(p.value.Type()))
		k.Bytes(edm.AppendValue(nil, p.value))
	}
}
