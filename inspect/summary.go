package inspect

import (
	"cmp"
	"container/heap"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
)

// partitions counts rows by partition in bounded memory, by the space-saving algorithm: while there are at
// most most partitions, every count is exact. After that, a new partition replaces the partition with the
// fewest rows and inherits its count as an uncertainty. So a partition with more than rows/most rows is never
// missed.
type partitions struct {
	most    int
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
	return &partitions{most: most, by: map[string]*counted{}, sketch: newSketch()}
}

func (p *partitions) add(key string, size int64) {
	c := p.by[key]
	switch {
	case c != nil:
	case len(p.by) < p.most:
		c = &counted{Partition: Partition{Partition: key}}
		p.by[key] = c
		if p.most == len(p.by) { // the limit is reached: order the partitions as a heap
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

// report returns the part of the Report about partitions.
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

// fewestFirst is a heap of partitions.
type fewestFirst []*counted

// Len, Less, Swap, Push and Pop implement heap.Interface; nothing is pushed or popped.
func (f fewestFirst) Len() int           { return len(f) }
func (f fewestFirst) Less(i, j int) bool { return f[i].Rows < f[j].Rows }
func (f fewestFirst) Push(any)           { panic("a partition takes the place of another") }
func (f fewestFirst) Pop() any           { panic("a partition takes the place of another") }
func (f fewestFirst) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].at, f[j].at = i, j
}

// sketch estimates the number of different keys (HyperLogLog, 4,096 registers: a standard error of 1.6 %).
type sketch struct {
	seed      maphash.Seed
	registers []uint8
}

const sketchBits = 12

func newSketch() sketch {
	return sketch{maphash.MakeSeed(), make([]uint8, 1<<sketchBits)}
}

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

// distribution counts numbers by powers of two.
type distribution [65]int64

func (d *distribution) add(n int64) { d[bits.Len64(uint64(max(n, 0)))]++ }

// buckets returns the steps from the first with a count to the last.
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
