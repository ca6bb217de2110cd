package inspect

import (
	"cmp"
	"container/heap"
	"hash/maphash"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/tables"
)

// kind classifies a row by the library's own properties.
type kind uint8

const (
	isEntity kind = iota
	isCopy
	isFurtherRow
	isOutsideCopy
	isShared
)

func kindOf(row *tablerow.Row) kind {
	switch {
	case row.Own.IsShared:
		return isShared
	case row.Own.Outside.Is:
		return isOutsideCopy
	case row.Own.IsCopy && row.Own.Layout == furtherRow:
		return isFurtherRow
	case row.Own.IsCopy:
		return isCopy
	}
	return isEntity
}

// furtherRow is the value of _tpLayout in the further rows of an entity.
const furtherRow = "further"

type collector struct {
	rows, bytes, entities int64
	written               int64 // that a repository has written
	kinds                 [isShared + 1]int64
	oldest, newest        time.Time
	partitions            *partitions
	sizes                 distribution
	largest               []LargeRow
	properties            map[string]*property
	most                  int // Options.MaxProperties
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

func (c *collector) add(row *tablerow.Row) kind {
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
	if row.Own.Incarnation != "" {
		c.written++
	}
	for _, p := range row.Properties {
		c.property(p)
	}
	return k
}

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

// sizeOf uses the service's formula, with the library's own properties.
func sizeOf(row *tablerow.Row) int64 {
	n := edm.KeySize(row.Key.Partition, row.Key.Row)
	for _, all := range []tables.Properties{row.AppendOwn(nil), row.Properties} {
		for _, p := range all {
			n += edm.PropertySize(p.Name, edm.Value(p.Value))
		}
	}
	if row.WriteID != "" {
		n += edm.PropertySize(rows.WriteID, edm.String(row.WriteID))
	}
	return int64(n)
}

func (c *collector) report() *Report {
	r := &Report{Warnings: []string{}, Rows: c.rows, Bytes: c.bytes, Oldest: c.oldest, Newest: c.newest, Partitions: c.partitions.report(), RowSizes: c.sizes.buckets(),
		LargestRows: append([]LargeRow{}, c.largest...), Entities: c.entities, Properties: []Property{}, OtherProperties: c.other,
		Garbled: c.garbled, GarbledExamples: append([]Key{}, c.garbledExamples...),
		Lossy: c.lossy, LossyExamples: append([]Key{}, c.lossyExamples...),
		Library: Library{Copies: c.kinds[isCopy], FurtherRows: c.kinds[isFurtherRow], OutsideCopies: c.kinds[isOutsideCopy],
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

// partitions counts rows by partition in bounded memory, by the space-saving algorithm: exactly up to the limit; then a new partition replaces the
// one with the fewest rows, and begins with that count as its uncertainty. So the largest partitions are not missed.
type partitions struct {
	most    int // the limit
	by      map[string]*counted
	fewest  fewestFirst
	evicted bool
	sketch  sketch
}

type counted struct {
	Partition
	at int // index in the heap
}

func newPartitions(most int) *partitions {
	return &partitions{most: most, by: map[string]*counted{}, sketch: sketch{maphash.MakeSeed(), make([]uint8, 1<<sketchBits)}}
}

func (p *partitions) add(key string, size int64) {
	c := p.by[key]
	switch {
	case c != nil:
	case len(p.by) < p.most:
		c = &counted{Partition: Partition{Partition: key}}
		p.by[key] = c
		if p.most == len(p.by) { // order the partitions as a heap
			for _, each := range p.by {
				each.at = len(p.fewest)
				p.fewest = append(p.fewest, each)
			}
			for each := range p.by {
				p.sketch.add(each)
			}
			heap.Init(&p.fewest)
		}
	default:
		c = p.fewest[0]
		delete(p.by, c.Partition.Partition)
		p.evicted, p.by[key] = true, c
		c.Partition = Partition{Partition: key, Rows: c.Rows, Uncertain: c.Rows}
		p.sketch.add(key)
	}
	c.Rows++
	c.Bytes += size
	if p.fewest != nil {
		heap.Fix(&p.fewest, c.at)
	}
}

func (p *partitions) report() Partitions {
	r := Partitions{Count: int64(len(p.by)), Exact: !p.evicted, Largest: []Partition{}, Rows: []Bucket{}}
	var sizes distribution
	for _, c := range p.by {
		r.Largest = append(r.Largest, c.Partition)
		sizes.add(c.Rows)
	}
	slices.SortFunc(r.Largest, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Partition, b.Partition))
	})
	r.Largest = slices.Clip(r.Largest[:min(len(r.Largest), mostListed)])
	if r.Exact {
		r.Rows = sizes.buckets()
	} else {
		r.Count = max(r.Count, p.sketch.count())
	}
	return r
}

type fewestFirst []*counted

// For heap.Interface; nothing is pushed or popped.
func (f fewestFirst) Len() int           { return len(f) }
func (f fewestFirst) Less(i, j int) bool { return f[i].Rows < f[j].Rows }
func (f fewestFirst) Push(any)           { panic("a partition takes the place of another") }
func (f fewestFirst) Pop() any           { panic("a partition takes the place of another") }
func (f fewestFirst) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].at, f[j].at = i, j
}

// sketch is a HyperLogLog; with 4,096 registers the standard error is 1.6 %.
type sketch struct {
	seed      maphash.Seed
	registers []uint8
}

const sketchBits = 12

func (s *sketch) add(key string) {
	h := maphash.String(s.seed, key)
	register := &s.registers[h>>(64-sketchBits)]
	*register = max(*register, uint8(bits.LeadingZeros64(h<<sketchBits|1)+1))
}

func (s *sketch) count() int64 {
	sum, empty := 0.0, 0
	for _, r := range s.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			empty++
		}
	}
	m := float64(len(s.registers))
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty))
	}
	return int64(math.Round(estimate))
}

// distribution counts by powers of two.
type distribution [65]int64

func (d *distribution) add(n int64) { d[bits.Len64(uint64(max(n, 0)))]++ }

// buckets omits the empty ones at both ends.
func (d *distribution) buckets() []Bucket {
	all := []Bucket{}
	for i, n := range d {
		if n == 0 && len(all) == 0 {
			continue
		}
		b := Bucket{From: 0, To: 1, Count: n}
		if i > 0 {
			b.From, b.To = 1<<(i-1), 1<<min(i, 62)
		}
		all = append(all, b)
	}
	for len(all) > 0 && all[len(all)-1].Count == 0 {
		all = all[:len(all)-1]
	}
	return all
}
