package entity

import (
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// The properties that the service keeps itself.
const (
	PartitionKey      = "PartitionKey"
	RowKey            = "RowKey"
	timestampProperty = "Timestamp"
)

// Stored is one stored row. It does not change once it is stored: a write stores another, so that an answer can be
// written after the lock is gone.
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

// Stamp gives the entity its timestamp and the ETag made of it.
func (e *Stored) Stamp(at time.Time) {
	// The clock ticks by 100 ns and begins after 1601; nothing else is an error here.
	e.Timestamp, _ = edm.DateTime(at)
	ticks, _ := edm.Ticks(at)
	var buf [48]byte
	e.ETag = etagPrefix + strings.ReplaceAll(string(edm.AppendDateTime(buf[:0], ticks)), ":", "%3A") + etagSuffix
}

const (
	etagPrefix = `W/"datetime'`
	etagSuffix = `'"`
)

// IsETag tells whether text has the form of a weak ETag. Whether it can be that of an entity is no question of form: one that
// cannot is like one that was.
func IsETag(text string) bool {
	inner, weak := strings.CutPrefix(text, `W/"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	return weak && closed && !strings.Contains(inner, `"`)
}

// Get returns a property by name, the service's own included, and the zero Value for one that is not there.
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

// Sort puts the properties in the order the service gives them to an entity that was replaced or merged, also where that
// inserted it: by name. One that was only inserted keeps the order of its request.
func (e *Stored) Sort() {
	slices.SortFunc(e.Properties, func(a, b Property) int { return compoundkey.Compare(a.name, b.name) })
}

// Merged returns the properties of old with those of changed in place of them or added.
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
