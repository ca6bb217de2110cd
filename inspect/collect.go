package inspect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// kind classifies a row by the library's own properties on it.
type kind uint8

const (
	isEntity kind = iota
	isCopy
	isFurtherRow
	isOutsideCopy
	isClaim
	isShared
)

// kindOf returns the kind of a row.
func kindOf(row *tables.RawRow) kind {
	var copied, outside, claim, shared, further bool
	for _, p := range row.System {
		switch p.Name {
		case rows.Shared:
			shared = true
		case rows.Primary:
			copied = true
		case rows.Partition:
			outside = true
		case rows.Claim, rows.Reserved:
			claim = true
		case rows.Layout:
			text, _ := p.Value.Text()
			further = text == furtherRow
		}
	}
	switch {
	case shared:
		return isShared
	case claim:
		return isClaim
	case outside:
		return isOutsideCopy
	case further && copied:
		return isFurtherRow
	case copied:
		return isCopy
	}
	return isEntity
}

// furtherRow is the value of _tpLayout in the further rows of an entity.
const furtherRow = "further"

// collector counts rows.
type collector struct {
	rows, bytes, entities int64
	written               int64 // number of entities that a repository has written
	kinds                 [isShared + 1]int64
	oldest, newest        time.Time
	partitions            *partitions
	sizes                 distribution
	largest               []LargeRow
	properties            map[string]*property
	most                  int // the largest number of properties of a row
	other                 int64
	garbled               int64
	garbledExamples       []Key
	lossy                 int64
	lossyExamples         []Key
}

type property struct {
	rows, bytes, largest int64
	types                [tables.TypeGUID + 1]int64
}

func newCollector(o *Options) *collector {
	return &collector{partitions: newPartitions(o.MaxPartitions), properties: map[string]*property{}, most: o.MaxProperties}
}

// add counts a row.
func (c *collector) add(row *tables.RawRow) kind {
	size := sizeOf(row)
	c.rows++
	if row.Lossy {
		if c.lossy++; len(c.lossyExamples) < mostExamples {
			c.lossyExamples = append(c.lossyExamples, keyOf(row.Key))
		}
	}
	c.bytes += size
	c.sizes.add(size)
	c.partitions.add(row.Key.Partition, size)
	c.large(row.Key, size)
	if t := row.Timestamp; !t.IsZero() {
		if c.oldest.IsZero() || t.Before(c.oldest) {
			c.oldest = t
		}
		if t.After(c.newest) {
			c.newest = t
		}
	}
	k := kindOf(row)
	if c.kinds[k]++; k != isEntity {
		return k
	}
	c.entities++
	if slices.ContainsFunc(row.System, func(p tables.Property) bool { return p.Name == rows.Incarnation }) {
		c.written++
	}
	for _, p := range row.Properties {
		c.property(p)
	}
	return k
}

// garble counts a row with a value that cannot be read.
func (c *collector) garble(key tables.Key) {
	c.rows++
	c.partitions.add(key.Partition, 0)
	if c.garbled++; len(c.garbledExamples) < mostExamples {
		c.garbledExamples = append(c.garbledExamples, keyOf(key))
	}
}

func (c *collector) property(p tables.Property) {
	of := c.properties[p.Name]
	if of == nil {
		if len(c.properties) >= c.most {
			c.other++
			return
		}
		of = &property{}
		c.properties[p.Name] = of
	}
	size := int64(edm.PropertySize(p.Name, edm.Value(p.Value)))
	of.rows++
	of.bytes += size
	of.largest = max(of.largest, size)
	of.types[p.Value.Type()]++
}

// large keeps the largest rows.
func (c *collector) large(key tables.Key, size int64) {
	if len(c.largest) == mostListed && size <= c.largest[mostListed-1].Bytes {
		return
	}
	at, _ := slices.BinarySearchFunc(c.largest, size, func(r LargeRow, size int64) int { return cmp.Compare(size, r.Bytes) })
	for at < len(c.largest) && c.largest[at].Bytes == size {
		at++
	}
	c.largest = slices.Insert(c.largest, at, LargeRow{keyOf(key), size})
	c.largest = c.largest[:min(len(c.largest), mostListed)]
}

// sizeOf returns the size of a row by the service's formula, including the library's properties.
func sizeOf(row *tables.RawRow) int64 {
	n := edm.KeySize(row.Key.Partition, row.Key.Row)
	for _, all := range []tables.Properties{row.System, row.Properties} {
		for _, p := range all {
			n += edm.PropertySize(p.Name, edm.Value(p.Value))
		}
	}
	if row.WriteID != "" {
		n += edm.PropertySize(rows.WriteID, edm.String(row.WriteID))
	}
	return int64(n)
}

// report returns the counts as a Report.
func (c *collector) report() *Report {
	r := &Report{Warnings: []string{}, Rows: c.rows, Bytes: c.bytes, Oldest: c.oldest, Newest: c.newest, Partitions: c.partitions.report(), RowSizes: c.sizes.buckets(),
		LargestRows: append([]LargeRow{}, c.largest...), Entities: c.entities, Properties: []Property{}, OtherProperties: c.other,
		Garbled: c.garbled, GarbledExamples: append([]Key{}, c.garbledExamples...),
		Lossy: c.lossy, LossyExamples: append([]Key{}, c.lossyExamples...),
		Library: Library{Copies: c.kinds[isCopy], FurtherRows: c.kinds[isFurtherRow], OutsideCopies: c.kinds[isOutsideCopy], Claims: c.kinds[isClaim],
			Shared: c.kinds[isShared], Entities: c.written}}
	for _, name := range slices.Sorted(maps.Keys(c.properties)) {
		of := c.properties[name]
		p := Property{Name: name, Rows: of.rows, Absent: c.entities - of.rows, Bytes: of.bytes, Largest: of.largest, Types: []TypeCount{}}
		for t, n := range of.types {
			if n > 0 {
				p.Types = append(p.Types, TypeCount{tables.Type(t).String(), n})
			}
		}
		slices.SortStableFunc(p.Types, func(a, b TypeCount) int { return cmp.Compare(b.Rows, a.Rows) })
		r.Properties = append(r.Properties, p)
	}
	return r
}
