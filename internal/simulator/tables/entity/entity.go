package simulator

import (
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// The properties that the service keeps itself.
const (
	partitionKeyName = "PartitionKey"
	rowKeyName       = "RowKey"
	timestampName    = "Timestamp"
)

// entity is one stored row. It does not change once it is stored: a write stores another, so that an answer can be
// written after the lock is gone.
type entity struct {
	pk, rk     string
	timestamp  edm.Value
	etag       string
	properties []property
}

// property is one property of an entity; its value is never null.
type property struct {
	name  string
	value edm.Value
}

// stamp gives the entity its timestamp and the ETag made of it.
func (e *entity) stamp(at time.Time) {
	// The clock ticks by 100 ns and begins after 1601; nothing else is an error here.
	e.timestamp, _ = edm.DateTime(at)
	ticks, _ := edm.Ticks(at)
	var buf [48]byte
	e.etag = etagPrefix + strings.ReplaceAll(string(edm.AppendDateTime(buf[:0], ticks)), ":", "%3A") + etagSuffix
}

const (
	etagPrefix = `W/"datetime'`
	etagSuffix = `'"`
)

// isETag tells whether text has the form of a weak ETag. Whether it can be that of an entity is no question of form: one that
// cannot is like one that was.
func isETag(text string) bool {
	inner, weak := strings.CutPrefix(text, `W/"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	return weak && closed && !strings.Contains(inner, `"`)
}

// get returns a property by name, the service's own included, and the zero Value for one that is not there.
func (e *entity) get(name string) edm.Value {
	switch name {
	case partitionKeyName:
		return edm.String(e.pk)
	case rowKeyName:
		return edm.String(e.rk)
	case timestampName:
		return e.timestamp
	}
	for i := range e.properties {
		if e.properties[i].name == name {
			return e.properties[i].value
		}
	}
	return edm.Value{}
}

// sorted puts the properties in the order the service gives them to an entity that was replaced or merged, also where that
// inserted it: by name. One that was only inserted keeps the order of its request.
func (e *entity) sorted() {
	slices.SortFunc(e.properties, func(a, b property) int { return compoundkey.Compare(a.name, b.name) })
}

// merged returns the properties of old with those of changed in place of them or added.
func merged(old, changed []property) []property {
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

func (e *entity) fingerprint(k *fingerprint) {
	k.Text(e.pk)
	k.Text(e.rk)
	k.Text(e.etag)
	k.Number(uint64(len(e.properties)))
	for _, p := range e.properties {
		k.Text(p.name)
		k.Number(uint64(p.value.Type()))
		k.Bytes(edm.AppendValue(nil, p.value))
	}
}
